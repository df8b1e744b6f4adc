"""The report for a program: one JSON object when the run has ended.

Bytes are given as text with escapes, the way the text report shows them; `mark` is
[start, end) in the bytes that came back.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, TextIO

from tinyllm.conformance.case import Case
from tinyllm.conformance.render import escaped
from tinyllm.conformance.reports import Tally
from tinyllm.conformance.runner import Outcome, Result
from tinyllm.conformance.session import Settings

BYTES_KEPT: Final = 16 * 1024  # of each direction, around the mark


class JsonReport:
    """Writes one object to a stream at the end."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._run: dict[str, Any] = {}

    def begin(self, settings: Settings, cases: Sequence[Case]) -> None:
        """Note what is graded."""
        self._run = {
            "suite": settings.suite.value,
            "profile": settings.profile.value,
            "base_url": f"http://{settings.address.authority}{settings.address.prefix}",
            "model": settings.model,
        }

    def started(self, case: Case) -> None:
        """Nothing is said before the end."""

    def finished(self, result: Result) -> None:
        """Nothing is said before the end."""

    def end(self, results: Sequence[Result], stopped: str | None) -> None:
        """Write the object."""
        tally = Tally.of(results)
        self._run["summary"] = {
            "held": tally.held,
            "skipped": tally.skipped,
            "broken": {level.value: count for level, count in tally.broken.items()},
            "stopped": stopped,
        }
        self._run["cases"] = [_case(result) for result in results]
        json.dump(self._run, self._out, indent=1)
        self._out.write("\n")


def _case(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": result.case.id,
        "level": result.level.value,
        "outcome": result.outcome.value,
        "seconds": round(result.seconds, 4),
    }
    if result.outcome is Outcome.HELD:
        return found
    found |= {"reason": result.reason, "rule": result.case.rule, "why": result.case.why}
    if result.outcome is Outcome.BROKEN and (exchange := result.exchange) is not None:
        start = max(0, (result.mark.start if result.mark else 0) - BYTES_KEPT // 2)
        found["sent"] = escaped(bytes(exchange.sent[:BYTES_KEPT]))
        found["received"] = escaped(bytes(exchange.received[start : start + BYTES_KEPT]))
        first = exchange.dropped
        found["received_from"] = first + start
        mark = result.mark
        found["mark"] = [first + mark.start, first + mark.end] if mark is not None else None
        found["end"] = exchange.end
    return found
