"""The stream's bytes as the v0 contract spells them, one by one."""

from __future__ import annotations

from tinyllm.conformance.case import case
from tinyllm.conformance.cases.stream import asked, chunk_objects
from tinyllm.conformance.evidence import check
from tinyllm.conformance.response import read_head
from tinyllm.conformance.session import COMPLETIONS, Session


@case(
    "v0.stream.head",
    rule="Engine specification, section 2.7; wire specification, sections 2.3 and 3",
    why="no-cache keeps proxies from holding the stream back; with a Content-Length it was held"
    " back already.",
)
def head(session: Session) -> None:
    """The head says text/event-stream, no-cache and close, and announces no length or chunks."""
    response = asked(session, max_tokens=1).response
    for name, token in (
        ("Content-Type", "text/event-stream"),
        ("Cache-Control", "no-cache"),
        ("Connection", "close"),
    ):
        mark = response.header_mark(name)
        check(response.has_token(name, token), f"no {name}: {token}", mark)
    for name in ("Content-Length", "Transfer-Encoding"):
        mark = response.header_mark(name)
        check(response.header(name) is None, f"{name} in a stream that the close ends", mark)


@case(
    "v0.stream.event_bytes",
    rule="Engine specification, sections 2.7 and 3: data: <CompletionChunk>, a blank line",
    why="The gateway and simple clients cut the stream at these very bytes.",
)
def event_bytes(session: Session) -> None:
    """Each event is `data: `, one line, two newlines; no other field, comment or CR."""
    events = asked(session)
    body = bytes(events.response.body)
    expected = b"".join(f"data: {payload.text}\n\n".encode() for payload in events.payloads)
    differs = (
        i for i, (got, wanted) in enumerate(zip(body, expected, strict=False)) if got != wanted
    )
    at = next(differs, min(len(body), len(expected)) - 1)
    check(body == expected, "other bytes than `data: ` events", events.response.body_mark(at))


@case(
    "v0.stream.exact_members",
    rule="Contract, point 15: the chunk keys are exactly those of the worked example",
    why="Nothing is added in v0, so that what is there can be relied on.",
)
def exact_members(session: Session) -> None:
    """A chunk's members are id, object, created, model, choices; a choice's index, text,
    finish_reason; created and model are the same in all; the last reason is "length".
    """
    chunks = chunk_objects(asked(session))
    first = chunks[0][1]
    for payload, value in chunks:
        members = ["id", "object", "created", "model", "choices"]
        check(list(value) == members, f"members {list(value)}, not {members}", payload.mark)
        same = (value["created"], value["model"]) == (first["created"], session.settings.model)
        check(same, "created or model changed", payload.mark)
        match value["choices"]:
            case [{"index": 0, "text": str(), "finish_reason": None | "length", **more}]:
                check(not more, f"the choice also has {list(more)}", payload.mark)
            case _:
                check(False, "the choice is not index, text, finish_reason", payload.mark)


@case(
    "v0.stream.one_event_per_token",
    rule="Engine specification, section 2.7: one event per generated token",
    why="Clients measure time per token, and gateways count tokens, by counting events.",
)
def one_event_per_token(session: Session) -> None:
    """max_tokens n gives n chunks and [DONE], for 1, 2 and 7."""
    for count in session.rows((1, 2, 7)):
        events = asked(session, prompt="héllo", max_tokens=count)
        found = len(events.chunks)
        mark = events.response.body_mark()
        check(found == count, f"{found} chunks for {count} tokens", mark)


@case(
    "v0.stream.closes",
    rule="Contract, point 6: streams always close; RFC 9112, section 6.3",
    why="Without a length, the close is what ends the body: the client waits for it.",
)
def closes(session: Session) -> None:
    """After [DONE] the connection closes, also for a client that asked to keep it."""
    body = session.completion_body(stream=True, max_tokens=1)
    connection = session.connect()
    connection.send(session.request("POST", COMPLETIONS, body, connection="keep-alive"))
    response = read_head(connection, "POST")
    check(response.status == 200, f"status {response.status}", response.status_line)
    mark = response.header_mark("Connection")
    check(response.has_token("Connection", "close"), "no Connection: close", mark)
    connection.receive_to_end()  # no close in time is a NoAnswer
