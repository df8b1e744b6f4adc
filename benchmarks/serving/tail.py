"""What does another client feel while 256 clients stream 4096 tokens each?

A probe asks for /healthz on the API port and for a plain completion, by turns, while the
streams run. A latency counts from when the request was due (loadgen.rs says why). The probe
shares the cores with the server and with 256 reading threads, so its own waiting for a core is
in every figure, the anchor's too.
"""

from __future__ import annotations

import json
import time
from typing import Any

from benchmarks.harness import anchors
from benchmarks.harness.load import LONG_STREAM, PLAIN
from benchmarks.harness.processes import ServerProcess
from benchmarks.harness.report import Section
from benchmarks.harness.statistics import Spread, figure, percentile
from benchmarks.serving.lab import Lab

STREAMS = 256
PERIOD_MS = 10  # between two probes
WARM_SECONDS = 0.7  # until all streams run
COLUMNS = ("server", "request", "p50, ms", "p99, ms", "p99 of each round", "probes", "events/s")
GOAL_MS = 20


def measure(lab: Lab) -> Section:
    """Probe each server under the same streams, in turn."""
    section = Section(f"Another client's wait while {STREAMS} clients stream 4096 tokens", COLUMNS)
    with lab.running(anchors.ours, anchors.tracer) as servers:
        rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in servers}
        for _ in range(lab.rounds):
            for name, server in servers.items():
                rounds[name].append(_probe_under_load(lab, server))
    for name, probes in rounds.items():
        for kind in ("healthz", "plain"):
            _add(section, name, kind, probes)
    section.notes.append(
        f"Goal: p99 under {GOAL_MS} ms. A probe every {PERIOD_MS} ms; p50 and p99 over all rounds."
    )
    return section


def _probe_under_load(lab: Lab, server: ServerProcess) -> dict[str, Any]:
    seconds = 2 * lab.seconds
    background = lab.load.background(server, LONG_STREAM, STREAMS, seconds + WARM_SECONDS)
    time.sleep(WARM_SECONDS)
    probe = lab.load.probe(server, PLAIN, seconds, PERIOD_MS)
    said, _ = background.communicate()
    return {**probe, "streams": json.loads(said)}


def _add(section: Section, name: str, kind: str, probes: list[dict[str, Any]]) -> None:
    each = [[us / 1000 for us in probe[f"{kind}_us"]] for probe in probes]
    latencies = [ms for values in each for ms in values]
    p99s = [percentile(values, 0.99) for values in each]
    rates = [probe["streams"]["events_s"] for probe in probes]
    p50, p99 = percentile(latencies, 0.5), percentile(latencies, 0.99)
    section.rows.append(
        [
            name,
            kind,
            figure(p50),
            figure(p99),
            str(Spread.of(p99s)),
            str(len(latencies)),
            figure(Spread.of(rates).median),
        ]
    )
    errors = sum(probe["errors"] + probe["streams"]["errors"] for probe in probes)
    if errors:
        section.notes.append(f"{name}: {errors} errors")
    section.data[f"{name} {kind}"] = {
        "p50_ms": p50,
        "p99_ms": p99,
        "p99_ms_rounds": p99s,
        "worst_ms": max(latencies),
        "events_s": rates,
        "errors": errors,
    }
