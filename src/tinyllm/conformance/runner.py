"""Run cases one after the other against one server, and say how each ended.

The order is the list's; one case runs at a time, so that a server under test is never pushed
harder than a case says. When a server stops answering altogether, or is late again and again, the
rest is not run: waiting for each time-out would only take long to say the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from tinyllm.conformance.case import Case, Level
from tinyllm.conformance.client import Connection
from tinyllm.conformance.evidence import CaseSkipped, CheckFailed, Exchange, Mark, NoAnswer
from tinyllm.conformance.session import Session, Settings

KEPT_BYTES: Final = 128 * 1024  # of what came, on each side of the mark, and of what was sent
LATE_IN_A_ROW: Final = 5  # cases that end by their deadline, after which the run is given up


class Outcome(Enum):
    """How a case ended."""

    HELD = "held"
    BROKEN = "broken"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Result:
    """One case's outcome, its reason, and what passed over the wire."""

    case: Case
    level: Level
    outcome: Outcome
    seconds: float
    reason: str = ""
    mark: Mark | None = None
    exchanges: Sequence[Exchange] = ()

    @property
    def fails(self) -> bool:
        """Whether this result alone makes the run fail."""
        return self.outcome is Outcome.BROKEN and self.level is Level.REQUIRED

    @property
    def exchange(self) -> Exchange | None:
        """The exchange that shows the fault: the marked one, or the last."""
        if self.mark is not None:
            return self.mark.exchange
        return self.exchanges[-1] if self.exchanges else None

    @property
    def timed_out(self) -> bool:
        """Whether it is broken because the server took too long."""
        late = self.exchange is not None and self.exchange.end == "timed out"
        return self.outcome is Outcome.BROKEN and late

    def slim(self) -> Result:
        """Return the result with no more bytes than a report shows, to be kept for long."""
        whole = self.exchange
        if self.outcome is not Outcome.BROKEN or whole is None:
            return replace(self, mark=None, exchanges=())
        start = max(0, (self.mark.start if self.mark else 0) - KEPT_BYTES)
        part = replace(
            whole,
            sent=whole.sent[:KEPT_BYTES],
            received=whole.received[start : start + 2 * KEPT_BYTES],
            dropped=start,
        )
        if self.mark is None:
            return replace(self, exchanges=(part,))
        end = min(self.mark.end - start, len(part.received))
        return replace(self, mark=part.mark(self.mark.start - start, end), exchanges=(part,))


class Unreachable(Exception):
    """No server answers there."""


def check_reachable(settings: Settings) -> None:
    """Connect once. Raises Unreachable."""
    try:
        Connection(settings.address, time.monotonic() + settings.timeout).close()
    except NoAnswer as error:
        raise Unreachable(error.message) from None


def run_cases(
    cases: Sequence[Case], settings: Settings, started: Callable[[Case], None] = lambda _: None
) -> Iterator[Result]:
    """Run the cases and yield each result. Raises Unreachable when the server is gone for good."""
    shared: dict[str, object] = {}
    late = 0
    for case in cases:
        started(case)
        result = run_case(case, settings, shared)
        yield result
        late = late + 1 if result.timed_out else 0
        if late == LATE_IN_A_ROW:
            raise Unreachable(f"{late} cases in a row took too long, the last {case.id}")
        if result.outcome is Outcome.BROKEN and not _heard(result):
            _check_alive(settings, case)


def run_case(case: Case, settings: Settings, shared: dict[str, object]) -> Result:
    """Run one case in a session of its own."""
    level = case.levels[settings.profile]
    session = Session(settings, shared)
    begun = time.monotonic()

    def ended(outcome: Outcome, reason: str = "", mark: Mark | None = None) -> Result:
        seconds = time.monotonic() - begun
        if settings.api_key:
            for exchange in session.exchanges:
                exchange.hide(settings.api_key)
        return Result(case, level, outcome, seconds, reason, mark, session.exchanges)

    try:
        case.run(session)
    except CaseSkipped as reason:
        return ended(Outcome.SKIPPED, str(reason))
    except CheckFailed as failure:
        return ended(Outcome.BROKEN, failure.message, failure.mark)
    finally:
        session.close()
    return ended(Outcome.HELD)


def _heard(result: Result) -> bool:
    """Whether the server sent anything at all in this case."""
    return any(exchange.received for exchange in result.exchanges)


def _check_alive(settings: Settings, case: Case) -> None:
    """Ask for any answer to a plain GET. Raises Unreachable if none comes."""
    session = Session(settings)
    try:
        connection = session.connect()
        connection.send(session.request("GET", "/"))
        alive = connection.receive()
    except NoAnswer as error:
        raise Unreachable(f"no answer any more since {case.id}: {error.message}") from None
    finally:
        session.close()
    if not alive:
        raise Unreachable(f"connections are closed without an answer since {case.id}")
