"""The report for a person: a line per case as it ends, then every broken case with its bytes.

On a terminal the line of the case that runs is shown at once and written over when it ends; into
a pipe or a file go only whole lines, without colour.
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Sequence
from typing import Final, TextIO

from tinyllm.conformance.case import Case
from tinyllm.conformance.evidence import Exchange
from tinyllm.conformance.render import show_bytes
from tinyllm.conformance.reports import Tally
from tinyllm.conformance.runner import Outcome, Result
from tinyllm.conformance.session import Settings

COLOURS: Final = {Outcome.HELD: "32", Outcome.BROKEN: "31", Outcome.SKIPPED: "33"}
SIGNS: Final = {Outcome.HELD: "✓", Outcome.BROKEN: "✗", Outcome.SKIPPED: "-"}


class TextReport:
    """Writes to a stream; `terminal` turns on colour and the live line."""

    def __init__(self, out: TextIO, terminal: bool) -> None:
        self._out = out
        self._terminal = terminal
        self._begun = time.monotonic()

    def begin(self, settings: Settings, cases: Sequence[Case]) -> None:
        """Say what is graded, and how."""
        address = f"http://{settings.address.authority}{settings.address.prefix}"
        profile = f"profile {settings.profile.value}"
        self._line(f"{settings.suite.value} at {address}, {profile}, {len(cases)} cases")
        self._line("one at a time, at most a few hundred small requests each\n")

    def started(self, case: Case) -> None:
        """Show the case that runs, on a terminal."""
        if self._terminal:
            self._out.write(f"\r\x1b[K… {case.id}")
            self._out.flush()

    def finished(self, result: Result) -> None:
        """Write the case's line."""
        if self._terminal:
            self._out.write("\r\x1b[K")
        line = f"{SIGNS[result.outcome]} {result.case.id}"
        if result.outcome is not Outcome.HELD:
            level = f" [{result.level.value}]" if result.outcome is Outcome.BROKEN else ""
            line += f"{level}: {_short(result.reason)}"
        self._line(self._colour(line, COLOURS[result.outcome]))

    def end(self, results: Sequence[Result], stopped: str | None) -> None:
        """Write the broken cases in full, and the sum."""
        for result in results:
            if result.outcome is Outcome.BROKEN:
                self._line("")
                self._details(result)
        seconds = time.monotonic() - self._begun
        self._line(f"\n{Tally.of(results)}, in {seconds:.1f} s")
        if stopped is not None:
            self._line(f"stopped: {stopped}")

    def _details(self, result: Result) -> None:
        title = f"{result.case.id} ({result.level.value})"
        self._line(self._colour(title, "1;31"))
        for name, text in (
            ("what", result.reason),
            ("tried", result.case.summary),
            ("rule", result.case.rule),
            ("why", result.case.why),
        ):
            self._line(
                textwrap.fill(text, 96, initial_indent=f"  {name:<6} ", subsequent_indent=" " * 9)
            )
        if (exchange := result.exchange) is not None:
            self._exchange(exchange, result)

    def _exchange(self, exchange: Exchange, result: Result) -> None:
        mark = (result.mark.start, result.mark.end) if result.mark is not None else None
        self._bytes("sent", show_bytes(bytes(exchange.sent)))
        if exchange.dropped:
            self._line(f"  got    ... {exchange.dropped} bytes not shown ...")
        name = "" if exchange.dropped else "got"
        self._bytes(name, show_bytes(bytes(exchange.received), mark))
        self._line(f"  {'end':<6} {exchange.end}")

    def _bytes(self, name: str, lines: list[str]) -> None:
        for number, line in enumerate(lines):
            marked = line.strip() != "" and set(line.strip()) == {"^"}
            shown = self._colour(line, "1;31") if marked else line
            self._line(f"  {name if number == 0 else '':<6} {shown}")

    def _colour(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._terminal else text

    def _line(self, text: str) -> None:
        self._out.write(text + "\n")
        self._out.flush()


def _short(reason: str) -> str:
    """Return the reason on one line of bearable length."""
    line = " ".join(reason.split())
    return line if len(line) <= 160 else line[:157] + "..."
