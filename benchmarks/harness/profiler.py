"""py-spy, pointed at a running server: its stacks as values, or a flame graph.

It looks some hundred times a second, C frames included, and stops the server for each look.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.harness.anchors import peer_environment
from benchmarks.harness.processes import ServerProcess

LOOKS_PER_SECOND = 400
RECORD: Final = ("py-spy", "record", "--native", "--function", "--rate", str(LOOKS_PER_SECOND))


class Stack(NamedTuple):
    """A stack of one thread, outermost frame first, and how many looks saw it."""

    thread: str
    frames: list[str]
    looks: int


class Profiler:
    """Raises Missing where py-spy cannot be had."""

    def __init__(self) -> None:
        self._environ = {**os.environ, "PATH": f"{peer_environment()}:{os.environ['PATH']}"}

    def stacks(self, server: ServerProcess, seconds: int) -> list[Stack]:
        """Return what a server's threads did."""
        with tempfile.TemporaryDirectory() as folder:
            raw = Path(folder) / "stacks"
            self._record(server, seconds, raw, "--format", "raw", "--threads")
            return [parse_stack(line) for line in raw.read_text().splitlines()]

    def flame_graph(self, server: ServerProcess, seconds: int, path: Path) -> None:
        """Write what a server's threads did as an SVG."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._record(server, seconds, path, "--format", "flamegraph")

    def _record(self, server: ServerProcess, seconds: int, path: Path, *options: str) -> None:
        what = ["--pid", str(server.pid), "--duration", str(seconds), "--output", path.name]
        # Named as a user would: py-spy writes its own command line into the graph.
        subprocess.run(
            [*RECORD, *options, *what],
            cwd=path.parent,
            env=self._environ,
            capture_output=True,
            check=True,
        )


def parse_stack(line: str) -> Stack:
    """Read a line of py-spy's raw format: thread;frame;...;frame COUNT."""
    stack, _, count = line.rpartition(" ")
    thread, *frames = stack.split(";")
    return Stack(thread, frames, int(count))
