"""The plain completion: its JSON, its media type, and where its body ends."""

from __future__ import annotations

import time

from tinyllm.conformance.case import INFORMATIVE, RECOMMENDED, REQUIRED, case
from tinyllm.conformance.evidence import check
from tinyllm.conformance.response import Framing, Response, read_response
from tinyllm.conformance.session import Completion, Session

FINISH_REASONS = ("stop", "length", "content_filter")

# Quotes, a backslash, control characters, characters of 2, 3 and 4 bytes, and the line
# separators that JSON allows but some readers of lines do not.
AWKWARD_NAMES = ('a"b\\c', "tab\tnewline\nnul\x00", "modèle", "模型", "😀", "a\u2028b\x7fc")


@case(
    "v0.plain.shape",
    rule="OpenAI API reference, completion object; engine specification, section 2.7",
    why="Client libraries read these fields by name and by type; one that is missing is an"
    " exception in the caller's program.",
    openai=REQUIRED,
)
def shape(session: Session) -> None:
    """A plain completion has id, object, created, model and one choice with index, text and
    finish_reason, each of its type.
    """
    answer = session.complete(prompt="a", max_tokens=3, temperature=0)
    wrong = wrong_member(answer)
    check(wrong is None, f"{wrong}", answer.response.body_mark())


def wrong_member(answer: Completion) -> str | None:
    """Return what is wrong with a completion's members, or None."""
    value, choice = answer.value, answer.value["choices"][0]
    created = value.get("created")
    rules = {
        "id is not a non-empty string": isinstance(value.get("id"), str) and value["id"] != "",
        'object is not "text_completion"': value.get("object") == "text_completion",
        "created is not an integer": isinstance(created, int) and not isinstance(created, bool),
        "model is not a string": isinstance(value.get("model"), str),
        "the choice's index is not 0": choice.get("index") == 0,
        f"finish_reason is none of {', '.join(FINISH_REASONS)}": answer.finish_reason
        in FINISH_REASONS,
    }
    return next((problem for problem, holds in rules.items() if not holds), None)


@case(
    "v0.plain.exact_members",
    rule="Engine specification, section 3 (the completion's members) and 2.7",
    why="A member that v0 does not know is a promise nobody made; clients come to depend on it.",
)
def exact_members(session: Session) -> None:
    """The completion has exactly the members of the worked example, the model's name as it was
    sent, and finish_reason "length".
    """
    answer = session.complete(prompt="a", max_tokens=3, temperature=0)
    mark = answer.response.body_mark()
    members = ["id", "object", "created", "model", "choices", "usage"]
    check(list(answer.value) == members, f"members {list(answer.value)}, not {members}", mark)
    choice = list(answer.value["choices"][0])
    check(choice == ["index", "text", "finish_reason"], f"the choice's members are {choice}", mark)
    check(answer.value["model"] == session.settings.model, "another model's name", mark)
    check(answer.finish_reason == "length", f"finish_reason {answer.finish_reason!r}", mark)


@case(
    "v0.plain.content_type",
    rule="OpenAI API reference; RFC 8259, section 11",
    why="Clients choose the reader of a body by its media type.",
    openai=REQUIRED,
)
def content_type(session: Session) -> None:
    """A plain completion is application/json."""
    response = session.complete(max_tokens=1).response
    mark = response.header_mark("Content-Type")
    check(response.media_type == "application/json", f"media type {response.media_type!r}", mark)


@case(
    "v0.plain.content_length",
    rule="RFC 9110, section 8.6: Content-Length counts octets; RFC 9112, section 6.3",
    why="A length counted in characters cuts a multi-byte answer short: the client's JSON reader"
    " fails on a document that stops in the middle. One too large makes it wait.",
    openai=REQUIRED,
)
def content_length(session: Session) -> None:
    """With non-ASCII text all around, the announced length ends the body exactly, and nothing
    follows it until the connection closes.
    """
    for fields in ({"prompt": "é", "model": "modèle-😀"}, {"prompt": "héllo 😀"}):
        body = session.completion_body(max_tokens=4, temperature=0, **fields)
        response = ends_exactly(session, session.request("POST", "/v1/completions", body))
        response.json()


def ends_exactly(session: Session, raw: bytes) -> Response:
    """Return the response, after the connection's end showed that nothing follows its body."""
    connection = session.connect()
    connection.send(raw)
    response = read_response(connection, "POST")
    connection.receive_to_end()
    extra = len(connection.exchange.received) - connection.position
    mark = connection.exchange.mark(connection.position)
    check(extra == 0, f"{extra} bytes after the end that the head announced", mark)
    return response


@case(
    "v0.plain.has_length",
    rule="Engine specification, section 2.7: one JSON Completion with Content-Length (in bytes)",
    why="Without a length, a cut connection looks like a whole answer.",
)
def has_length(session: Session) -> None:
    """A plain completion is framed by Content-Length."""
    response = session.complete(max_tokens=1).response
    check(response.framing is Framing.LENGTH, f"ends by {response.framing.value}", response.head)


@case(
    "v0.plain.model_echo",
    rule="Engine specification, section 2.4 and pitfalls; contract, points 10 and 12",
    why="A quote, a control byte or a NUL that is written raw breaks the JSON of every answer"
    " that holds it.",
)
def model_echo(session: Session) -> None:
    """Any model's name comes back as it was sent: quotes, controls, every plane of Unicode."""
    for name in session.rows(AWKWARD_NAMES):
        answer = session.complete(model=name, max_tokens=1)
        echoed = answer.value.get("model")
        mark = answer.response.body_mark()
        check(echoed == name, f"model {name!r} came back as {echoed!r}", mark)


@case(
    "v0.plain.unique_ids",
    rule="OpenAI API reference: id is a unique identifier for the completion",
    why="Logs, bills and retries tell completions apart by their id.",
    openai=RECOMMENDED,
)
def unique_ids(session: Session) -> None:
    """Eight equal requests get eight ids."""
    answers = [session.complete(max_tokens=1, temperature=0) for _ in session.times(8)]
    ids = [answer.value.get("id") for answer in answers]
    mark = answers[-1].response.body_mark()
    different = len(set(map(str, ids)))
    check(different == len(ids), f"{different} ids for {len(ids)} requests", mark)


@case(
    "v0.plain.created",
    rule="OpenAI API reference: created is a Unix timestamp in seconds",
    why="A clock of another kind (milliseconds, time since boot) puts requests in the wrong year.",
    openai=INFORMATIVE,
)
def created(session: Session) -> None:
    """`created` is within a day of the runner's own clock."""
    answer = session.complete(max_tokens=1)
    stamp = answer.value.get("created")
    near = isinstance(stamp, int) and abs(stamp - time.time()) < 86400
    check(near, f"created is {stamp!r}", answer.response.body_mark())
