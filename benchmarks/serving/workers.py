"""What do two worker processes gain on the cores there are?

Workers need cores, and so does the load generator. The second work leaves room: a plain answer of
4096 tokens costs the server a hundred times what it costs the client. What the client takes is
said beside each gain, for a gain can be no more than what the client leaves.
"""

from __future__ import annotations

import os
import statistics
from pathlib import Path
from typing import Final

from benchmarks.harness import anchors
from benchmarks.harness.load import PLAIN, STREAM, Body, Measured
from benchmarks.harness.processes import ServerProcess
from benchmarks.harness.report import Section
from benchmarks.harness.statistics import figure
from benchmarks.serving.lab import Lab

CONNECTIONS = 16
WORKS: Final[dict[str, Body]] = {
    "plain, 16 tokens": PLAIN,
    "stream, 256 tokens": STREAM,
    "plain, 4096 tokens": {**PLAIN, "max_tokens": 4096},
}
COLUMNS = ("work", "1 worker, requests/s", "2 workers", "gain", "server's cores", "client's cores")


def one(model: Path) -> ServerProcess:
    return anchors.ours(model, name="1 worker")


def two(model: Path) -> ServerProcess:
    return anchors.ours(model, "--workers", "2", name="2 workers")


def measure(lab: Lab) -> Section:
    """Load one worker and two in turn; the idle one costs nothing meanwhile."""
    section = Section("Two workers", COLUMNS)
    with lab.running(one, two) as servers:
        for work, body in WORKS.items():
            runs: dict[str, list[Measured]] = {name: [] for name in servers}
            for _ in range(lab.rounds):
                for name, server in servers.items():
                    runs[name].append(lab.load.turns(server, body, CONNECTIONS, lab.seconds))
            _add(section, work, runs["1 worker"], runs["2 workers"])
    cores = len(os.sched_getaffinity(0))
    section.notes.append(
        f"This machine has {cores} cores. Cores: how many each side kept busy with 1 and with 2 "
        "workers; where both sides together are near all cores, the machine is too small for more."
    )
    return section


def _add(section: Section, work: str, alone: list[Measured], both: list[Measured]) -> None:
    rates = [statistics.median(m.figures["requests_s"] for m in runs) for runs in (alone, both)]
    busy = [
        statistics.median(m.server_cpu.total / m.figures["seconds"] for m in runs)
        for runs in (alone, both)
    ]
    client = [
        statistics.median(m.client_cpu / m.figures["seconds"] for m in runs)
        for runs in (alone, both)
    ]
    section.rows.append(
        [
            work,
            figure(rates[0]),
            figure(rates[1]),
            figure(rates[1] / rates[0]),
            f"{busy[0]:.2f}, {busy[1]:.2f}",
            f"{client[0]:.2f}, {client[1]:.2f}",
        ]
    )
    section.data[work] = {"requests_s": rates, "server_cores": busy, "client_cores": client}
