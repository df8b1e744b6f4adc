"""Run cases one after the other against one server, and say how each ended.

The order is the list's; one case runs at a time, so that a server under test is never pushed
harder than a case says. When a server stops answering altogether, the rest is not run: waiting
for each time-out would only take long to say the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from tinyllm.conformance.case import Case, Level
from tinyllm.conformance.client import Connection
from tinyllm.conformance.evidence import CaseSkipped, CheckFailed, Exchange, Mark, NoAnswer
from tinyllm.conformance.session import Session, Settings


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
    for case in cases:
        started(case)
        result = run_case(case, settings, shared)
        yield result
        if result.outcome is Outcome.BROKEN and not _heard(result):
            _check_alive(settings, case)


def run_case(case: Case, settings: Settings, shared: dict[str, object]) -> Result:
    """Run one case in a session of its own."""
    level = case.levels[settings.profile]
    session = Session(settings, shared)
    begun = time.monotonic()

    def ended(outcome: Outcome, reason: str = "", mark: Mark | None = None) -> Result:
        seconds = time.monotonic() - begun
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
