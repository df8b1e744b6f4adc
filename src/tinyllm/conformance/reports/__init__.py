"""Reports: what a run says, to a person (text), to a program (json), to a CI system (junit)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tinyllm.conformance.case import Case, Level
from tinyllm.conformance.runner import Outcome, Result
from tinyllm.conformance.session import Settings


class Reporter(Protocol):
    """Is told of a run as it goes."""

    def begin(self, settings: Settings, cases: Sequence[Case]) -> None:
        """The run begins."""

    def started(self, case: Case) -> None:
        """A case begins."""

    def finished(self, result: Result) -> None:
        """A case has ended."""

    def end(self, results: Sequence[Result], stopped: str | None) -> None:
        """The run has ended; `stopped` says why before its time, if it was."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How many cases ended in which way."""

    held: int
    skipped: int
    broken: dict[Level, int]

    @classmethod
    def of(cls, results: Sequence[Result]) -> Tally:
        """Count the results."""
        outcomes = [result.outcome for result in results]
        broken = [result.level for result in results if result.outcome is Outcome.BROKEN]
        return cls(
            outcomes.count(Outcome.HELD),
            outcomes.count(Outcome.SKIPPED),
            {level: broken.count(level) for level in Level},
        )

    def __str__(self) -> str:
        kinds = [f"{count} {level.value}" for level, count in self.broken.items() if count]
        broken = f"{sum(self.broken.values())} broken" + (f" ({', '.join(kinds)})" if kinds else "")
        return f"{self.held} held, {broken}, {self.skipped} skipped"
