"""GET /count: events as bytes, and in time."""

from __future__ import annotations

import time

from tinyllm.conformance.case import case
from tinyllm.conformance.client import Connection
from tinyllm.conformance.evidence import check
from tinyllm.conformance.session import Session

HEAD = (
    b"HTTP/1.1 200 OK\r\n"
    b"Content-Type: text/event-stream\r\n"
    b"Cache-Control: no-cache\r\n"
    b"Connection: close\r\n"
    b"\r\n"
)
PAUSE_MS = 120
RULE = "Wire specification, sections 2.5 and 3, test_sse_stream_framing"


def _count(session: Session, query: str) -> Connection:
    """Ask for a stream and read it to the close."""
    connection = session.connect()
    connection.send(session.request("GET", f"/count{query}"))
    connection.receive_to_end()
    return connection


def _expect_events(connection: Connection, count: int) -> None:
    events = b"".join(b'data: {"i":%d}\n\n' % i for i in range(count)) + b"data: [DONE]\n\n"
    got, wanted = bytes(connection.exchange.received), HEAD + events
    differs = (i for i, (a, b) in enumerate(zip(got, wanted, strict=False)) if a != b)
    at = next(differs, min(len(got), len(wanted)))
    check(got == wanted, f"not the bytes of {count} events", connection.exchange.mark(at))


@case(
    "wire.count.bytes",
    rule=RULE,
    why="The v0 API streams exactly this way; with one newline less, events run together.",
)
def count_bytes(session: Session) -> None:
    """/count?n=2 is the worked example's bytes, and then the connection closes."""
    _expect_events(_count(session, "?n=2"), 2)


@case(
    "wire.count.defaults",
    rule="Wire specification, section 4",
    why="n and delay_ms may be left out.",
)
def count_defaults(session: Session) -> None:
    """Without a query there are three events, without delay; a query of other keys changes
    nothing.
    """
    _expect_events(_count(session, ""), 3)
    _expect_events(_count(session, "?x=1"), 3)


@case(
    "wire.count.limits",
    rule="Wire specification, section 4",
    why="Limits are part of the contract.",
)
def count_limits(session: Session) -> None:
    """n may be 0, which is [DONE] alone, and 1000."""
    for count in session.rows((0, 1000)):
        _expect_events(_count(session, f"?n={count}"), count)


@case(
    "wire.count.as_made",
    rule="Wire specification, section 2.6, test_sse_events_leave_as_they_happen",
    why="A buffer that is flushed at the end, or Nagle's algorithm, shows the reader nothing for"
    " seconds and then everything.",
)
def as_made(session: Session) -> None:
    """With a pause between events, the first arrives before the first pause is over, and the rest
    one pause apart.
    """
    connection = _count(session, f"?n=3&delay_ms={PAUSE_MS}")
    exchange = connection.exchange
    offsets = [bytes(exchange.received).find(b'{"i":%d}' % i) for i in range(3)]
    _expect_events(connection, 3)
    times = [exchange.arrival(offset) - exchange.writes[0][1] for offset in offsets]
    said = ", ".join(f"{seconds * 1000:.0f}" for seconds in times)
    spread = times[2] - times[0] >= 1.5 * PAUSE_MS / 1000
    check(spread, f"events arrived after {said} ms: together", exchange.mark(offsets[0]))


@case(
    "wire.count.aside",
    rule="Wire specification, section 4: one thread per connection; engine specification, 2.1",
    why="A stream that pauses must not hold up everybody else.",
)
def aside(session: Session) -> None:
    """While a stream pauses for a second, another request is answered."""
    connection = session.connect()
    connection.send(session.request("GET", "/count?n=3&delay_ms=500"))
    connection.receive()
    begun = time.monotonic()
    response = session.get("/health")
    check(response.status == 200, f"status {response.status}", response.status_line)
    waited = time.monotonic() - begun
    check(waited < 0.9, f"answered after {waited:.1f} s: after the stream", response.head)
