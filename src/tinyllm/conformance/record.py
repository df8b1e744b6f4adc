"""Keep what passed over the wire in each case, in files: DIR/<case>/<number>.sent and so on.

`.sent` and `.received` are the bytes as they were; `.times` tells, a line each, when which byte
had been written or read, in seconds from the connection's first write.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tinyllm.conformance.evidence import Exchange
from tinyllm.conformance.runner import Result


class Recorder:
    """Writes each result's exchanges below a directory."""

    def __init__(self, directory: Path) -> None:
        """Make the directory. Raises OSError."""
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory

    def keep(self, result: Result) -> None:
        """Write the exchanges of one case. Raises OSError."""
        folder = self._directory / result.case.id
        folder.mkdir(exist_ok=True)
        for number, exchange in enumerate(result.exchanges, 1):
            base = folder / f"{number:03}"
            base.with_suffix(".sent").write_bytes(exchange.sent)
            base.with_suffix(".received").write_bytes(exchange.received)
            base.with_suffix(".times").write_text("\n".join(_times(exchange)) + "\n")


def _times(exchange: Exchange) -> Sequence[str]:
    writes = [(time, f"sent {end}") for end, time in exchange.writes]
    reads = [(time, f"received {end}") for end, time in exchange.reads]
    moments = sorted(writes + reads)
    start = moments[0][0] if moments else 0.0
    return [*(f"{time - start:.6f} {what}" for time, what in moments), f"end: {exchange.end}"]
