"""How fast is tl-serve beside its anchors, on the same work, in one run?

The servers run side by side and are loaded in turn (A B C A B C ...), so that what else the
machine does meets all of them alike. The median of the rounds counts, and a ratio is the ratio
of medians. Where client and server share cores, trust the CPU column before the rate: a server
of many small writes looks faster when the client has no core of its own to be woken on.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.harness import anchors
from benchmarks.harness.load import LONG_STREAM, PLAIN, STREAM, Body, Measured
from benchmarks.harness.report import Section
from benchmarks.harness.statistics import Spread, figure
from benchmarks.serving.lab import Lab

GREEDY: Body = {**STREAM, "temperature": 0}


@dataclass(frozen=True)
class Figure:
    """A figure of the load generator, and the ratios to the anchors that are aimed at."""

    name: str
    key: str
    tracer_goal: float | None
    fastapi_goal: float

    @property
    def is_time(self) -> bool:
        """Whether less is better."""
        return self.key.endswith("_us")

    def ratio(self, ours: float, anchor: float) -> float:
        """Return how many times better ours is."""
        return anchor / ours if self.is_time else ours / anchor


@dataclass(frozen=True)
class Work:
    """What is asked for, on how many connections, and what is read off."""

    name: str
    body: Body
    connections: int
    figures: tuple[Figure, ...]
    cpu_goal: float | None = None  # the tracer's CPU per unit over ours
    keep: bool = False

    @property
    def unit(self) -> str:
        """What is counted: "requests" or "events"."""
        return "events" if self.body.get("stream") else "requests"

    @property
    def arguments(self) -> Sequence[str]:
        return ["keep"] if self.keep else []


REQUESTS, EVENTS = "requests_s", "events_s"
WORKS = (
    Work("plain", PLAIN, 16, (Figure("requests/s", REQUESTS, 1.3, 4),), 1.5),
    Work("plain, kept alive", PLAIN, 16, (Figure("requests/s", REQUESTS, None, 4),), keep=True),
    Work("stream, sampled", STREAM, 16, (Figure("events/s", EVENTS, 7, 20),), 6),
    Work("stream, greedy", GREEDY, 16, (Figure("events/s", EVENTS, 7, 40),), 5),
    Work("stream of 4096", LONG_STREAM, 8, (Figure("events/s", EVENTS, 8, 25),), 8),
    Work(
        "64 streams at once",
        STREAM,
        64,
        (
            Figure("first event p50, us", "first_byte_p50_us", 2.5, 10),
            Figure("first event p99, us", "first_byte_p99_us", 8, 8),
        ),
    ),
)
COLUMNS = ("work", "figure", "ours", "tracer", "fastapi", "/tracer", "goal", "/fastapi", "goal")


def measure(lab: Lab) -> Section:
    """Load ours and the anchors in turn with every kind of work."""
    section = Section("Beside the Rust design and FastAPI", COLUMNS)
    with lab.running(anchors.ours, anchors.tracer, anchors.fastapi) as servers:
        for work in WORKS:
            # The Rust design closes every connection: it has no kept ones to be measured.
            names = [name for name in servers if not (work.keep and name == "tracer")]
            runs: dict[str, list[Measured]] = {name: [] for name in names}
            for _ in range(lab.rounds):
                for name in names:
                    run = lab.load.turns(
                        servers[name], work.body, work.connections, lab.seconds, *work.arguments
                    )
                    runs[name].append(run)
            _add(section, work, runs)
    section.notes.append(
        "Medians (lowest-highest round). A ratio above 1 means that ours is better. "
        "CPU: the server's own, user and system."
    )
    return section


def _add(section: Section, work: Work, runs: dict[str, list[Measured]]) -> None:
    """Add a row per figure of a work, and one for what a unit costs the server."""
    data: dict[str, Any] = {"connections": work.connections, "body": dict(work.body)}
    for shown in work.figures:
        seen = {name: Spread.of([m.figures[shown.key] for m in ms]) for name, ms in runs.items()}
        ratios = {
            name: shown.ratio(seen["ours"].median, spread.median)
            for name, spread in seen.items()
            if name != "ours" and spread.median
        }
        goals = {"tracer": shown.tracer_goal, "fastapi": shown.fastapi_goal}
        section.rows.append(_row(work.name, shown.name, seen, ratios, goals))
        data[shown.key] = {"rounds": seen, "ratios": ratios}
    cost = {name: Spread.of([m.per_unit(work.unit) for m in ms]) for name, ms in runs.items()}
    ratios = {name: s.median / cost["ours"].median for name, s in cost.items() if name != "ours"}
    label = f"CPU us/{work.unit.removesuffix('s')}"
    section.rows.append(_row(work.name, label, cost, ratios, {"tracer": work.cpu_goal}))
    data["cpu_us"] = {"rounds": cost, "ratios": ratios}
    data["client_cpu_us"] = {
        name: statistics.median(m.client_cpu * 1e6 / max(1, m.figures[work.unit]) for m in ms)
        for name, ms in runs.items()
    }
    section.data[work.name] = data


def _row(
    work: str,
    label: str,
    seen: dict[str, Spread],
    ratios: dict[str, float],
    goals: dict[str, float | None],
) -> list[str]:
    values = [str(seen[name]) if name in seen else "-" for name in ("ours", "tracer", "fastapi")]
    against = []
    for name in ("tracer", "fastapi"):
        goal = goals.get(name)
        against += [figure(ratios[name]) if name in ratios else "-", f"{goal:g}" if goal else "-"]
    return [work, label, *values, *against]
