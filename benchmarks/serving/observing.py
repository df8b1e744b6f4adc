"""What do the access log and tracing cost?

Four servers in turn: neither, the log (into a file), tracing (to anchors/sink.py), both. The sink
runs on the same cores, so the rate pays for it too; the server's own CPU does not.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from benchmarks.harness import anchors
from benchmarks.harness.load import PLAIN, STREAM, Body, Measured
from benchmarks.harness.processes import ServerProcess
from benchmarks.harness.report import Section
from benchmarks.harness.statistics import figure
from benchmarks.serving.lab import Lab

CONNECTIONS = 16
WORKS: Final[dict[str, tuple[Body, list[str]]]] = {
    "plain": (PLAIN, []),
    "plain, kept alive": (PLAIN, ["keep"]),
    "stream of 256": (STREAM, []),
}
COLUMNS = ("work", "off", "log", "tracing", "both", "rate, both/off", "CPU, off/both", "goal")


def measure(lab: Lab) -> Section:
    """Load the four servers in turn."""
    section = Section("Access log and tracing, on and off", COLUMNS)
    with ServerProcess(
        "sink", [sys.executable, str(anchors.SOURCES / "sink.py"), "{port}"]
    ) as sink:
        traced = 0.0
        with _four(lab, sink) as servers:
            for work, (body, keep) in WORKS.items():
                runs: dict[str, list[Measured]] = {name: [] for name in servers}
                for _ in range(lab.rounds):
                    for name, server in servers.items():
                        run = lab.load.turns(server, body, CONNECTIONS, lab.seconds, *keep)
                        runs[name].append(run)
                _add(section, work, body, runs)
                traced += sum(r.figures["requests"] for n in ("tracing", "both") for r in runs[n])
        # The servers have ended, and with them their last flush.
        spans = int(urllib.request.urlopen(f"http://127.0.0.1:{sink.port}/count").read())
    section.notes.append(
        f"CPU in us per unit in brackets. The sink got {spans:,} spans of {traced:,.0f} requests; "
        "under more load than it can send, the exporter drops spans rather than delay answers."
    )
    section.data["spans"] = {"received": spans, "requests": traced}
    return section


@contextmanager
def _four(lab: Lab, sink: ServerProcess) -> Iterator[dict[str, ServerProcess]]:
    traces = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{sink.port}"}
    servers = [
        anchors.ours(lab.model, name="off"),
        anchors.ours(lab.model, "--access-log", name="log"),
        anchors.ours(lab.model, name="tracing", **traces),
        anchors.ours(lab.model, "--access-log", name="both", **traces),
    ]
    with ExitStack() as stack:
        for server in servers:
            server.stdout = stack.enter_context(tempfile.TemporaryFile())
            stack.enter_context(server)
        yield {server.name: server for server in servers}


def _add(section: Section, work: str, body: Body, runs: dict[str, list[Measured]]) -> None:
    unit = "events" if body.get("stream") else "requests"
    rate = {n: statistics.median(m.figures[f"{unit}_s"] for m in ms) for n, ms in runs.items()}
    cost = {n: statistics.median(m.per_unit(unit) for m in ms) for n, ms in runs.items()}
    kept, cheaper = rate["both"] / rate["off"], cost["off"] / cost["both"]
    cells = [f"{figure(rate[name])} ({figure(cost[name])})" for name in runs]
    section.rows.append([f"{work}, {unit}/s", *cells, figure(kept), figure(cheaper), "above 0.9"])
    section.data[work] = {"rate": rate, "cpu_us": cost}
