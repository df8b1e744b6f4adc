"""Do equal streams, started together, end together?

All connections are open before the first request is sent; then 100 streams of 4096 tokens
start at once. What counts is the slowest one's time over the median's.
"""

from __future__ import annotations

from typing import Any

from benchmarks.harness import anchors
from benchmarks.harness.load import LONG_STREAM
from benchmarks.harness.report import Section
from benchmarks.harness.statistics import Spread, figure, percentile
from benchmarks.serving.lab import Lab

STREAMS = 100
GOAL = 1.5
COLUMNS = ("server", "slowest / median", "fastest / median", "median, s", "first event p99, ms")


def measure(lab: Lab) -> Section:
    """Start equal streams together on each server, in turn."""
    section = Section(f"{STREAMS} equal streams of 4096 tokens, started together", COLUMNS)
    with lab.running(anchors.ours, anchors.tracer) as servers:
        rounds: dict[str, list[dict[str, float]]] = {name: [] for name in servers}
        for _ in range(lab.rounds):
            for name, server in servers.items():
                streams = lab.load.burst(server, LONG_STREAM, STREAMS)
                rounds[name].append(_summary(streams))
    for name, seen in rounds.items():
        spreads = {key: Spread.of([summary[key] for summary in seen]) for key in seen[0]}
        section.rows.append(
            [
                name,
                str(spreads["slowest"]),
                str(spreads["fastest"]),
                figure(spreads["median_s"].median),
                figure(spreads["first_p99_ms"].median),
            ]
        )
        section.data[name] = spreads
    section.notes.append(f"Goal: the slowest within {GOAL} times the median.")
    return section


def _summary(streams: list[dict[str, Any]]) -> dict[str, float]:
    """Return one round's figures; RuntimeError when a stream is not whole."""
    broken = [stream for stream in streams if not stream.get("done")]
    if broken:
        raise RuntimeError(f"{len(broken)} streams did not end, e.g. {broken[0]}")
    times = [stream["total_us"] / 1e6 for stream in streams]
    median = percentile(times, 0.5)
    return {
        "slowest": max(times) / median,
        "fastest": min(times) / median,
        "median_s": median,
        "first_p99_ms": percentile([s["first_us"] / 1000 for s in streams], 0.99),
    }
