"""py-spy, pointed at a running server: its stacks as values.

It looks some hundred times a second, C frames included, and stops the server for each look.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.harness.anchors import peer_environment
from benchmarks.harness.processes import ServerProcess

LOOKS_PER_SECOND = 400
RECORD: Final = ("record", "--format", "raw", "--native", "--function", "--threads")
RATE: Final = ("--rate", str(LOOKS_PER_SECOND))


class Stack(NamedTuple):
    """A stack of one thread, outermost frame first, and how many looks saw it."""

    thread: str
    frames: list[str]
    looks: int


def stacks_of(server: ServerProcess, seconds: int) -> list[Stack]:
    """Return what a server's threads did. Raises Missing where py-spy cannot be had."""
    py_spy = str(peer_environment() / "py-spy")
    with tempfile.NamedTemporaryFile() as raw:
        what = ["--pid", str(server.pid), "--duration", str(seconds), "--output", raw.name]
        subprocess.run([py_spy, *RECORD, *RATE, *what], capture_output=True, check=True)
        return [parse_stack(line) for line in Path(raw.name).read_text().splitlines()]


def parse_stack(line: str) -> Stack:
    """Read a line of py-spy's raw format: thread;frame;...;frame COUNT."""
    stack, _, count = line.rpartition(" ")
    thread, *frames = stack.split(";")
    return Stack(thread, frames, int(count))
