"""The stream in time: events leave as they are made, and stop when nobody reads."""

from __future__ import annotations

import time

from tinyllm.conformance.case import RECOMMENDED, REQUIRED, case
from tinyllm.conformance.evidence import CaseSkipped, check
from tinyllm.conformance.session import OpenStream, Session

TRIES = 3  # a busy machine can delay one try; a buffering server delays each
FEW_EVENTS = 8  # with fewer, "early" has no meaning
ABANDONED = 16  # streams that are left by their clients
SLOWDOWN = 4.0  # how many times slower a request may be after that


def _timed(session: Session, count: int) -> tuple[float, float, OpenStream]:
    """Return the seconds to a stream's first event, to its last, and the stream."""
    stream = session.open_stream(prompt="Once", max_tokens=count, temperature=0)
    stream.read_on()
    sent = stream.connection.exchange.writes[0][1]
    times = [payload.time - sent for payload in stream.events.payloads]
    if not times:
        raise CaseSkipped("the stream carried nothing")
    return times[0], times[-1], stream


@case(
    "v0.stream.as_made",
    rule="Contract, point 17: an event is never held back; wire specification, section 2.6",
    why="A buffer between the model and the socket turns a stream into a long wait and a burst:"
    " the reader sees nothing for seconds, then everything.",
    openai=REQUIRED,
)
def as_made(session: Session) -> None:
    """In a long stream the first event arrives in the first half of its time, or as soon as
    that of a short stream; in one of three tries.
    """
    tries = []
    for _ in range(TRIES):
        first, last, stream = _timed(session, session.long_tokens())
        if len(stream.events.chunks) < FEW_EVENTS:
            raise CaseSkipped("the stream was too short to tell")
        short, _, _ = _timed(session, 2)
        if first < 0.5 * last or first < 2 * short:
            return
        tries.append(f"{first * 1000:.1f} of {last * 1000:.1f} ms")
    mark = stream.events.chunks[0].mark
    check(False, f"the first event came after {', '.join(tries)}: all events at the end", mark)


@case(
    "v0.stream.disconnect",
    rule="Contract, point 17: when the client goes away, generation stops at once",
    why="Answers that nobody reads take the machine from those that somebody waits for.",
    openai=RECOMMENDED,
)
def disconnect(session: Session) -> None:
    """After 16 clients left their long streams, a long answer takes less than four times as long
    as alone; in one of three tries. Cannot be seen where answers do not share one machine.
    """
    count = session.long_tokens()
    alone, tries = _seconds(session, count), []
    for _ in range(TRIES):
        streams = [_started(session, count) for _ in range(ABANDONED)]
        for stream in streams:
            stream.connection.abort()
        after = _seconds(session, count)
        alone = min(alone, _seconds(session, count)) if after > SLOWDOWN * alone else alone
        if after < SLOWDOWN * alone + 0.02:
            return
        tries.append(f"{after * 1000:.0f}")
    check(
        False,
        f"{', '.join(tries)} ms for an answer that takes {alone * 1000:.0f} ms alone:"
        " generation goes on for clients that have left",
        streams[-1].connection.exchange,
    )


def _started(session: Session, count: int) -> OpenStream:
    stream = session.open_stream(prompt="Once", max_tokens=count, temperature=0)
    stream.first_event()
    return stream


def _seconds(session: Session, count: int) -> float:
    begun = time.monotonic()
    session.complete(prompt="Once", max_tokens=count, temperature=0)
    return time.monotonic() - begun


@case(
    "v0.stream.slow_reader",
    rule="Contract, point 17: with a slow reader, generation pauses; the others go on",
    why="One client that does not read must cost the server neither its memory nor its time, and"
    " must find its stream whole when it reads on.",
    openai=REQUIRED,
)
def slow_reader(session: Session) -> None:
    """While four clients do not read their long streams, a fifth is answered; then the four read
    on and find every event.
    """
    fields = session.heavy_stream()
    slow = [session.open_stream(**fields) for _ in range(4)]
    session.complete(max_tokens=2, temperature=0)
    whole = len(session.stream(**fields).payloads)
    for stream in slow:
        stream.read_on()
        found = len(stream.events.payloads)
        mark = stream.events.response.exchange
        check(found == whole, f"{found} events for a slow reader, {whole} for a fast one", mark)
