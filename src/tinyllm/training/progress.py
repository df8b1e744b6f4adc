"""How far a run is: a line on a terminal, nothing anywhere else."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

REDRAW_SECONDS = 0.1
BAR_WIDTH = 24
USUAL_COLUMNS = 80


class Progress:
    """Is told how many bytes there are and were read, and keeps it to itself."""

    def start(self, total: int | None) -> None:
        """Begin; `total` is the number of bytes to read, None when nobody knows."""

    def advance(self, count: int) -> None:
        """So many more bytes were read."""

    def finish(self) -> None:
        """The reading is over, well or not."""


class ProgressBar(Progress):
    """Draws bytes, rate and time left on a terminal, over and over on the same line."""

    def __init__(self, terminal: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._terminal = terminal
        self._clock = clock
        self._total: int | None = None
        self._done = 0
        self._started = self._drawn = clock()

    def start(self, total: int | None) -> None:
        """Begin to measure the time."""
        self._total = total
        self._started = self._drawn = self._clock()

    def advance(self, count: int) -> None:
        """Draw the line anew, if the last time is long enough ago."""
        self._done += count
        now = self._clock()
        if now - self._drawn >= REDRAW_SECONDS:
            self._drawn = now
            line = progress_line(self._done, self._total, now - self._started)
            self._draw(line[: self._width()])

    def finish(self) -> None:
        """Remove the line: what comes next is the report or an error."""
        self._draw("")

    def _draw(self, line: str) -> None:
        """Write over the line; a terminal that went away does not stop the counting."""
        with suppress(OSError):
            self._terminal.write(f"\r{line}\x1b[K")
            self._terminal.flush()

    def _width(self) -> int:
        """Return how many characters fit: a full last column would wrap on some terminals."""
        with suppress(OSError, ValueError):
            columns = os.get_terminal_size(self._terminal.fileno()).columns
            if columns > 0:  # 0 is a terminal whose size nobody has set
                return columns - 1
        return USUAL_COLUMNS - 1


def progress_line(done: int, total: int | None, seconds: float) -> str:
    """Return one line: share and bar and time left where the total is known, bytes and rate."""
    rate = done / seconds if seconds > 0 else 0.0
    amount = f"{size_text(done)}  {size_text(rate)}/s"
    if not total:
        return f"counting  {amount}"
    share = min(done / total, 1.0)  # a file may have grown since it was measured
    bar = "#" * int(share * BAR_WIDTH)
    left = f"  {time_text((total - done) / rate)} left" if rate and done < total else ""
    of_total = f"{size_text(done)} of {size_text(total)}  {size_text(rate)}/s"
    return f"counting {share:4.0%} [{bar:<{BAR_WIDTH}}]  {of_total}{left}"


def size_text(count: float) -> str:
    """Return a number of bytes with three digits and a unit: 512 B, 1.25 MB, 31.4 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def time_text(seconds: float) -> str:
    """Return a time left: 0:07, 12:30, 3:05:00."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
