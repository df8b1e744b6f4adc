"""Clients that stall for good: how long a server holds a connection for them (only with --slow)."""

from __future__ import annotations

from tinyllm.conformance.case import INFORMATIVE, Need, case
from tinyllm.conformance.edge import small_post
from tinyllm.conformance.evidence import CaseSkipped, NoAnswer, check, fail
from tinyllm.conformance.response import read_response
from tinyllm.conformance.session import Session

WHY = "Connections held open for nothing are the cheapest way to exhaust a server."


def _ends(session: Session, sent: bytes) -> None:
    """Send a part of a request and expect 408 or a close before the longest patience is over."""
    if not session.settings.slow:
        raise CaseSkipped(f"needs {Need.SLOW.value}")
    patience = session.settings.stall_seconds
    connection = session.connect(timeout=patience)
    connection.send(sent)
    try:
        response = read_response(connection, "POST")
    except NoAnswer:
        if connection.exchange.end == "timed out":
            fail(f"still open after {patience:g} s", connection.exchange)
        return
    check(response.status == 408, f"status {response.status}, not 408", response.status_line)
    connection.receive_to_end()


@case(
    "v0.http.head_deadline",
    "wire.http.head_deadline",
    rule="Contract, point 8: the head has a deadline of 10 s by default",
    why=WHY,
    openai=INFORMATIVE,
    need=Need.SLOW,
)
def head_deadline(session: Session) -> None:
    """A head that stops half way is answered with 408, or closed."""
    _ends(session, small_post(session)[:30])


@case(
    "v0.http.body_deadline",
    "wire.http.body_deadline",
    rule="Contract, point 8: the body has a deadline of 30 s by default",
    why=WHY,
    openai=INFORMATIVE,
    need=Need.SLOW,
)
def body_deadline(session: Session) -> None:
    """A body that stops half way is answered with 408, or closed."""
    _ends(session, small_post(session)[:-3])
