"""Where do a plain request's and a streamed token's microseconds go?

The server is loaded three times with each: to count its CPU time, for the profiler's looks that
divide that time among the steps (steps.py), and for the flame graph (serving-plain.svg,
serving-stream.svg).
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from benchmarks.harness import anchors
from benchmarks.harness.load import PLAIN, STREAM, Body
from benchmarks.harness.processes import CpuTime, ServerProcess
from benchmarks.harness.profiler import Profiler
from benchmarks.harness.report import Section
from benchmarks.harness.statistics import figure
from benchmarks.serving.lab import Lab
from benchmarks.serving.steps import count_steps, microseconds

CONNECTIONS = 16
LOOK_SECONDS = 8
GRAPH_SECONDS = 4
SPARE_SECONDS = 2  # the profiler starts late and ends late
WORKS: Final[dict[str, tuple[Body, str]]] = {
    "plain": (PLAIN, "requests"),
    "stream": (STREAM, "events"),
}
COLUMNS = ("step", "plain request, us", "share", "streamed token, us", "share")


def measure(lab: Lab) -> Section:
    """Profile a server under plain requests, and under streams."""
    section = Section("Where the microseconds go", COLUMNS)
    try:
        profiler = Profiler()
    except anchors.Missing as reason:
        section.notes.append(f"not measured: {reason}")
        return section
    costs: dict[str, CpuTime] = {}
    steps: dict[str, Counter[str]] = {}
    with lab.running(anchors.ours) as servers:
        for name, (body, unit) in WORKS.items():
            server = servers["ours"]
            run = lab.load.turns(server, body, CONNECTIONS, 2 * lab.seconds)
            costs[name] = run.cpu_per_unit(unit)
            looks = _count_looks(lab, profiler, server, body)
            steps[name] = microseconds(looks, costs[name])
            section.data[name] = {"us": steps[name], "looks": looks, "cpu_us": costs[name]}
            _draw(lab, profiler, server, name, section)
    _add_rows(section, steps)
    return section


def _count_looks(lab: Lab, profiler: Profiler, server: ServerProcess, body: Body) -> Counter[str]:
    load = lab.load.background(server, body, CONNECTIONS, LOOK_SECONDS + SPARE_SECONDS)
    stacks = profiler.stacks(server, LOOK_SECONDS)
    load.communicate()
    return count_steps(stacks)


def _draw(lab: Lab, profiler: Profiler, server: ServerProcess, name: str, section: Section) -> None:
    if lab.results is None:
        return
    graph = lab.results / f"serving-{name}.svg"
    load = lab.load.background(server, WORKS[name][0], CONNECTIONS, GRAPH_SECONDS + SPARE_SECONDS)
    profiler.flame_graph(server, GRAPH_SECONDS, graph)
    load.communicate()
    section.notes.append(f"Flame graph: [{graph.name}]({graph.name})")


def _add_rows(section: Section, steps: dict[str, Counter[str]]) -> None:
    """Add a row per step, the dearest of a plain request first."""
    names = sorted(steps["plain"] | steps["stream"], key=lambda step: -steps["plain"][step])
    for step in names:
        cells = [step]
        for work in WORKS:
            us, total = steps[work][step], steps[work].total()
            cells += [figure(us), f"{us / total:.1%}"]
        section.rows.append(cells)
    totals = [figure(steps[work].total()) for work in WORKS]
    section.rows.append(["all", totals[0], "", totals[1], ""])
