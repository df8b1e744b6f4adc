"""Where do a plain request's and a streamed token's microseconds go?

The server is loaded twice with each: to count its CPU time, and for the profiler's looks. The looks
divide that time among the steps (steps.py), and are drawn as flame graphs (serving-plain.svg,
serving-stream.svg).
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from benchmarks.harness import anchors
from benchmarks.harness.flamegraph import flame_graph
from benchmarks.harness.load import PLAIN, STREAM, Body
from benchmarks.harness.processes import CpuTime, ServerProcess
from benchmarks.harness.profiler import Stack, stacks_of
from benchmarks.harness.report import Section
from benchmarks.harness.statistics import figure
from benchmarks.serving.lab import Lab
from benchmarks.serving.steps import count_steps, from_the_loop, microseconds, working

CONNECTIONS = 16
LOOK_SECONDS = 8
SPARE_SECONDS = 2  # the profiler starts late and ends late
WORKS: Final[dict[str, tuple[Body, str]]] = {
    "plain": (PLAIN, "requests"),
    "stream": (STREAM, "events"),
}
COLUMNS = ("step", "plain request, us", "share", "streamed token, us", "share")


def measure(lab: Lab) -> Section:
    """Profile a server under plain requests, and under streams."""
    section = Section("Where the microseconds go", COLUMNS)
    costs: dict[str, CpuTime] = {}
    steps: dict[str, Counter[str]] = {}
    with lab.running(anchors.ours) as servers:
        for name, (body, unit) in WORKS.items():
            run = lab.load.turns(servers["ours"], body, CONNECTIONS, 2 * lab.seconds)
            costs[name] = run.cpu_per_unit(unit)
            try:
                stacks = working(_look(lab, servers["ours"], body))
            except anchors.Missing as reason:
                section.notes.append(f"not measured: {reason}")
                return section
            looks = count_steps(stacks)
            steps[name] = microseconds(looks, costs[name])
            section.data[name] = {"us": steps[name], "looks": looks, "cpu_us": costs[name]}
            _draw(lab, name, stacks, section)
    _add_rows(section, steps)
    return section


def _look(lab: Lab, server: ServerProcess, body: Body) -> list[Stack]:
    load = lab.load.background(server, body, CONNECTIONS, LOOK_SECONDS + SPARE_SECONDS)
    stacks = stacks_of(server, LOOK_SECONDS)
    load.communicate()
    return stacks


def _draw(lab: Lab, name: str, stacks: list[Stack], section: Section) -> None:
    if lab.results is None:
        return
    graph = lab.results / f"serving-{name}.svg"
    title = {"plain": "Plain requests of 16 tokens", "stream": "Streams of 256 sampled tokens"}[
        name
    ]
    lab.results.mkdir(parents=True, exist_ok=True)
    graph.write_text(flame_graph(title, [(from_the_loop(s), s.looks) for s in stacks]))
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
