"""Work for a server, and what the load generator saw (anchors/loadgen.rs, or loadgen.py)."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.harness import anchors
from benchmarks.harness.processes import CpuTime, ServerProcess

Body = Mapping[str, object]

PLAIN: Final[Body] = {"model": "m", "prompt": "The ", "max_tokens": 16, "seed": 1}
STREAM: Final[Body] = {**PLAIN, "max_tokens": 256, "stream": True}
LONG_STREAM: Final[Body] = {**STREAM, "max_tokens": 4096}


@dataclass(frozen=True)
class Measured:
    """One run of load on one server."""

    figures: dict[str, float]  # as the load generator prints them
    server_cpu: CpuTime
    client_cpu: float  # seconds

    def cpu_per_unit(self, unit: str) -> CpuTime:
        """Return the server's CPU microseconds per "requests" or "events"."""
        units = max(1.0, self.figures[unit]) / 1e6
        return CpuTime(self.server_cpu.user / units, self.server_cpu.system / units)

    def per_unit(self, unit: str) -> float:
        """Return user and system time together."""
        return self.cpu_per_unit(unit).total


class LoadGenerator:
    """Runs the load generator as a process of its own."""

    def __init__(self) -> None:
        try:
            self._command = [str(anchors.rust_program("loadgen"))]
            self.note = ""
        except anchors.Missing as reason:
            self._command = [sys.executable, str(anchors.SOURCES / "loadgen.py")]
            self.note = f"{reason}; the load comes from loadgen.py"
        self.errors: list[str] = []  # what went wrong, for the report: a figure with errors is none

    def turns(
        self, server: ServerProcess, body: Body, connections: int, seconds: float, *keep: str
    ) -> Measured:
        """Ask again and again on some connections for some seconds."""
        arguments = [str(connections), str(seconds), json.dumps(body), *keep]
        before, client_before = server.cpu(), _children_cpu()
        (line,) = self._run("turns", server, arguments)
        if line["errors"]:
            self.errors.append(f"{server.name}: {line['errors']} errors in {arguments}")
        client = _children_cpu() - client_before
        return Measured(line, server.cpu().since(before), client)

    def burst(self, server: ServerProcess, body: Body, streams: int) -> list[dict[str, Any]]:
        """Start many streams at once; the seed of each is its number."""
        text = json.dumps({**body, "seed": "{stream}"}).replace('"{stream}"', "{stream}")
        return self._run("burst", server, [str(streams), text])

    def probe(
        self, server: ServerProcess, body: Body, seconds: float, period_ms: int
    ) -> dict[str, Any]:
        """Ask for /healthz and a completion by turns, and time each."""
        (line,) = self._run("probe", server, [str(seconds), str(period_ms), json.dumps(body)])
        return line

    def background(
        self, server: ServerProcess, body: Body, connections: int, seconds: float
    ) -> subprocess.Popen[str]:
        """Start `turns` and return at once; its line comes on stdout."""
        arguments = [str(connections), str(seconds), json.dumps(body)]
        return subprocess.Popen(
            [*self._command, "turns", str(server.port), *arguments],
            stdout=subprocess.PIPE,
            text=True,
        )

    def _run(self, mode: str, server: ServerProcess, arguments: list[str]) -> list[dict[str, Any]]:
        done = subprocess.run(
            [*self._command, mode, str(server.port), *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, "RUST_BACKTRACE": "1"},
        )
        if done.returncode:
            raise RuntimeError(f"the load generator failed: {done.stderr.strip()[-500:]}")
        return [json.loads(line) for line in done.stdout.splitlines()]


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
