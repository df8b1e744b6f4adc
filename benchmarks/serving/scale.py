"""What do thousands of clients cost: idle ones, and streaming ones?

Idle: 5,000 kept connections that have had an answer each. Their memory is the growth of the
server's resident bytes, after some plain load. The plain load is measured without and with them,
in turn.
Streaming: 2,000 streams at once, a seed each, every text compared with the plain completion of
the same seed; their memory is the growth of the server's peak.

The kernel's own socket buffers belong to no process and are not in these figures.
"""

from __future__ import annotations

import statistics
from pathlib import Path

from benchmarks.harness import anchors
from benchmarks.harness.load import PLAIN, STREAM, Measured
from benchmarks.harness.processes import ServerProcess
from benchmarks.harness.report import Section
from benchmarks.harness.statistics import figure, percentile
from benchmarks.serving.clients import idle_connections, plain_texts
from benchmarks.serving.lab import Lab

IDLE = 5000
STREAMS = 2000
TOKENS = 256
CONNECTIONS = 16
COLUMNS = ("what", "figure", "goal")


def measure(lab: Lab) -> Section:
    """Measure a fresh server with idle connections, and another with many streams."""
    section = Section(f"{IDLE:,} idle connections, {STREAMS:,} streams at once", COLUMNS)
    with roomy(lab.model) as server:
        lab.load.turns(server, PLAIN, CONNECTIONS, lab.seconds)
        _measure_idle(lab, server, section)
    with roomy(lab.model) as server:
        _measure_streams(lab, server, section)
    return section


def roomy(model: Path) -> ServerProcess:
    """Return a server that takes more connections than it does by default."""
    return anchors.ours(model, "--max-connections", str(IDLE + STREAMS))


def _measure_idle(lab: Lab, server: ServerProcess, section: Section) -> None:
    without, having, kib = [], [], []
    for _ in range(lab.rounds):
        server.settle()
        without.append(lab.load.turns(server, PLAIN, CONNECTIONS, lab.seconds))
        before = server.memory()
        with idle_connections(server, IDLE):
            kib.append((server.memory() - before) / IDLE / 1024)
            having.append(lab.load.turns(server, PLAIN, CONNECTIONS, lab.seconds))
    # The first round's connections find no memory that earlier ones have given back.
    kept, rate, cost = kib[0], _slowdown(without, having), _extra_cost(without, having)
    section.rows += [
        ["memory of an idle connection", f"{kept:.1f} KiB", "under 20 KB"],
        ["rate of plain requests beside them, over without", figure(rate), "about 1"],
        ["server's CPU per plain request, with over without", figure(cost), "about 1"],
    ]
    section.data["idle"] = {
        "kib_each": kept,
        "kib_each_later_rounds": kib[1:],
        "rate_with_over_without": rate,
        "cpu_with_over_without": cost,
    }


def _slowdown(without: list[Measured], having: list[Measured]) -> float:
    return _median(having, "requests_s") / _median(without, "requests_s")


def _median(runs: list[Measured], key: str) -> float:
    return statistics.median(run.figures[key] for run in runs)


def _extra_cost(without: list[Measured], having: list[Measured]) -> float:
    return statistics.median(run.per_unit("requests") for run in having) / statistics.median(
        run.per_unit("requests") for run in without
    )


def _measure_streams(lab: Lab, server: ServerProcess, section: Section) -> None:
    lab.load.burst(server, STREAM, CONNECTIONS)  # the first stream brings numpy in
    before = server.memory()
    server.forget_peak()
    body = {**STREAM, "max_tokens": TOKENS}
    streams = lab.load.burst(server, body, STREAMS)
    growth = (server.peak_memory() - before) / STREAMS / 1024
    expected = plain_texts(server, body, range(STREAMS))
    whole = sum(stream.get("done", False) for stream in streams)
    right = sum(s.get("text") == text for s, text in zip(streams, expected, strict=True))
    events = sum(s.get("events") == TOKENS + 1 for s in streams)
    seconds = max(stream.get("total_us", 0) for stream in streams) / 1e6
    first = percentile([stream.get("first_us", 0) / 1000 for stream in streams], 0.99)
    section.rows += [
        [f"of {STREAMS:,} streams at once, whole (end with [DONE])", f"{whole:,}", "all"],
        ["with an event per token", f"{events:,}", "all"],
        ["with the text of the plain completion of their seed", f"{right:,}", "all"],
        ["memory of a stream, at the peak", f"{growth:.1f} KiB", "-"],
        ["all ended after", f"{seconds:.2f} s", "-"],
        ["first event, p99", f"{first:,.0f} ms", "-"],
    ]
    section.data["streams"] = {
        "count": STREAMS,
        "whole": whole,
        "event_per_token": events,
        "text_as_plain": right,
        "peak_kib_each": growth,
        "seconds": seconds,
        "first_event_p99_ms": first,
    }
