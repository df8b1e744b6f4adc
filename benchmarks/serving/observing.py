"""What do the access log and tracing cost?

One server is switched from off to the log, to tracing, to both, and to what would be left of both
if our part cost nothing, ten times a second (switched.py), while the load goes on. Each turn is
compared with the two turns of `off` around it; the mean of these ratios counts, without the tenth
at either end. Server, exporter, load generator and collector (anchors/sink.py) share the cores: the
rate pays for all of them, "CPU" is that of server and exporter.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import urllib.request
from typing import Any, Final, NamedTuple

from benchmarks.harness import anchors
from benchmarks.harness.load import PLAIN, STREAM, Body
from benchmarks.harness.processes import ServerProcess
from benchmarks.harness.report import Section
from benchmarks.harness.statistics import figure
from benchmarks.serving.lab import Lab
from benchmarks.serving.switched import CONTENDERS

CONNECTIONS = 16
WORKS: Final[dict[str, tuple[Body, list[str]]]] = {
    "plain": (PLAIN, []),
    "plain, kept alive": (PLAIN, ["keep"]),
    "stream of 256": (STREAM, []),
}
STARTS = 3  # of the server: each has a speed of its own

Turn = dict[str, Any]  # see switched.py


class Pair(NamedTuple):
    """A turn of a contender: its rate, and its units per CPU second, of those of `off`."""

    name: str
    rate: float
    cpu: float


def measure(lab: Lab) -> Section:
    """Load the server, start after start, and compare its turns."""
    section = Section("Access log and tracing, of what is kept without them", ("work", *CONTENDERS))
    seconds = max(4 * lab.seconds * lab.rounds / STARTS, 1.0)
    ratios: dict[str, list[Pair]] = {work: [] for work in WORKS}
    with ServerProcess(
        "sink", [sys.executable, str(anchors.SOURCES / "sink.py"), "{port}"]
    ) as sink:
        for _ in range(STARTS):
            for work, (body, keep) in WORKS.items():
                turns = _turns(lab, sink, body, seconds, keep)
                ratios[work] += _compared(turns, "events" if body.get("stream") else "requests")
        received = int(urllib.request.urlopen(f"http://127.0.0.1:{sink.port}/bytes").read())
    for work, found in ratios.items():
        _add(section, work, found)
    section.notes.append(
        "The rate that is kept, and in brackets what a unit's CPU without them is of that with; "
        "`ready` and `constants` are floors (serving/switched.py). The goal is 0.9. The sink got "
        f"{received:,} bytes of spans."
    )
    section.data["sink_bytes"] = received
    return section


def _turns(
    lab: Lab, sink: ServerProcess, body: Body, seconds: float, keep: list[str]
) -> list[Turn]:
    """Load a server of its own and return its turns."""
    command = [sys.executable, "-m", "benchmarks.serving.switched", "{port}"]
    with tempfile.TemporaryFile() as told:
        server = ServerProcess("switched", [*command, str(lab.model), str(sink.port)], stdout=told)
        with server:
            server.settle()
            lab.load.turns(server, body, CONNECTIONS, seconds, *keep)
        told.seek(0)
        return [json.loads(line) for line in told]


def _compared(turns: list[Turn], unit: str) -> list[Pair]:
    """Return each contender's turns beside the turns of `off` around them."""
    loaded = [number for number, turn in enumerate(turns) if turn[unit]]
    whole = turns[loaded[0] + 1 : loaded[-1]]  # the first and the last were loaded in part
    pairs = []
    for before, turn, after in zip(whole, whole[1:], whole[2:], strict=False):
        if turn["name"] != "off":
            rate, cost = (
                [each[unit] / each[by] for each in (before, turn, after)]
                for by in ("seconds", "cpu")
            )
            pairs.append(Pair(turn["name"], *(2 * x[1] / (x[0] + x[2]) for x in (rate, cost))))
    return pairs


def _add(section: Section, work: str, pairs: list[Pair]) -> None:
    row, data = [work], {}
    for name in CONTENDERS:
        mine = [pair for pair in pairs if pair.name == name]
        rate, cpu = _middle([pair.rate for pair in mine]), _middle([pair.cpu for pair in mine])
        row.append(f"{figure(rate)} ({figure(cpu)})")
        data[name] = {"rate": rate, "cpu": cpu, "pairs": [pair[1:] for pair in mine]}
    section.rows.append(row)
    section.data[work] = data


def _middle(values: list[float]) -> float:
    """Return the mean without the tenth at either end."""
    cut = len(values) // 10
    return statistics.fmean(sorted(values)[cut : len(values) - cut])
