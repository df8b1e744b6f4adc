"""Several clients at once: none may stand in another's way, or receive another's answer."""

from __future__ import annotations

from typing import Any

from tinyllm.conformance.case import REQUIRED, case
from tinyllm.conformance.cases.health import ask_health
from tinyllm.conformance.cases.requests import expect_ok
from tinyllm.conformance.cases.stream import chunk_objects
from tinyllm.conformance.cases.text import joined
from tinyllm.conformance.edge import small_post
from tinyllm.conformance.evidence import check
from tinyllm.conformance.response import read_response
from tinyllm.conformance.session import COMPLETIONS, Session

STALLED = 4  # clients that stop in mid-request
CROWD = 24  # clients at once
TRIES = 3  # a busy machine can hold one try up


@case(
    "v0.http.stalled_client",
    "wire.http.stalled_client",
    rule="Engine specification, test serves_a_second_client_while_one_stalls",
    why="With one thread for all connections, a single slow phone takes the server down.",
    openai=REQUIRED,
)
def stalled_client(session: Session) -> None:
    """While clients stand still in their head or body, and one said nothing, others are served."""
    raw = small_post(session)
    for cut in (0, 12, len(raw) - 2, 40)[:STALLED]:
        session.connect().send(raw[:cut])
    expect_ok(session.send(raw))


@case(
    "v0.http.crowd",
    "wire.http.crowd",
    rule="Engine specification, section 2.1: each connection carries one request",
    why="State shared by mistake shows as one caller's text in another's answer.",
    openai=REQUIRED,
)
def crowd(session: Session) -> None:
    """24 clients that have all connected before the first one sends are all answered."""
    connections = [session.connect() for _ in session.times(CROWD)]
    for connection in connections:
        connection.send(small_post(session))
    for connection in connections:
        expect_ok(read_response(connection, "POST"))


@case(
    "v0.crowd.own_answers",
    rule="OpenAI API reference; engine specification, section 2.7",
    why="A mixed-up answer is another user's private text.",
    openai=REQUIRED,
)
def own_answers(session: Session) -> None:
    """Eight streams open at once have eight ids and, in `tinyllm`, each carries what the same
    request carries alone.
    """
    prompts = [chr(ord("a") + i) * (i + 1) for i in range(8)]
    fields: dict[str, Any] = {"max_tokens": 12, "temperature": 0}
    alone = [session.complete(prompt=prompt, **fields).text for prompt in prompts]
    streams = [session.open_stream(prompt=prompt, **fields) for prompt in prompts]
    for stream in reversed(streams):
        stream.read_on()
    for stream, text in zip(streams, alone, strict=True):
        got, mark = joined(stream.events), stream.events.response.body_mark()
        same = got == text or not session.repeats_itself
        check(same, f"{got!r} instead of {text!r}", mark)
    ids = {str(chunk_objects(stream.events)[0][1].get("id")) for stream in streams}
    check(len(ids) == len(streams), "streams share an id", streams[0].connection.exchange)


@case(
    "v0.healthz.busy",
    rule="Engine specification, test healthz_answers_200: Kubernetes waits on it",
    why="A probe that has to wait for the model makes Kubernetes kill a server that only works.",
)
def busy(session: Session) -> None:
    """While long answers are being made, /healthz answers before all of them are done; in one of
    three tries.
    """
    early = any(_probe_while_busy(session) for _ in range(TRIES))
    check(early, "the probe was answered after all the work", session.exchanges[-1])


def _probe_while_busy(session: Session) -> bool:
    """Whether a probe is answered before all of eight long answers, asked for before it, are."""
    fields = {"prompt": "Once", "max_tokens": session.long_tokens(), "temperature": 0}
    raw = session.request("POST", COMPLETIONS, session.completion_body(**fields))
    working = [session.connect() for _ in range(8)]
    for connection in working:
        connection.send(raw)
    expect_ok(ask_health(session))
    early = not all(connection.readable() for connection in working)
    for connection in working:
        expect_ok(read_response(connection, "POST"))
    return early
