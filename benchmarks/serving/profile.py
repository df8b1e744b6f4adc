"""Where do a plain request's and a streamed token's microseconds go?

py-spy looks at the running server some hundred times a second, C frames included. A look at the
main thread counts for the step whose code of ours is innermost; time in the kernel counts for
the system call; a wait for the interpreter's lock counts for nothing.

A look cannot tell a thread that runs from one that waits for a core, and a server waits for one
most often where it has just woken a client: in the kernel. So looks only divide what is counted
exactly, without the profiler: the system time among the kernel's steps, the user time
among ours. Flame graphs are drawn in a run of their own (serving-plain.svg, serving-stream.svg).
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

from benchmarks.harness import anchors
from benchmarks.harness.load import PLAIN, STREAM, Body
from benchmarks.harness.processes import CpuTime, ServerProcess
from benchmarks.harness.report import Section
from benchmarks.harness.statistics import figure
from benchmarks.serving.lab import Lab

CONNECTIONS = 16
LOOKS_PER_SECOND = 400
LOOK_SECONDS = 8
GRAPH_SECONDS = 4
SPARE_SECONDS = 2  # py-spy starts late and ends late

# libc's names of the system calls, as C frames show them.
SYSTEM_CALLS: Final = {
    "accept4": "kernel: accept",
    "accept": "kernel: accept",
    "recv": "kernel: receive",
    "read": "kernel: receive",
    "send": "kernel: send",
    "sendto": "kernel: send",
    "write": "kernel: send",
    "writev": "kernel: send",
    "close": "kernel: close",
    "shutdown": "kernel: close",
    "epoll_wait": "kernel: wait for events",
    "epoll_pwait": "kernel: wait for events",
    "epoll_ctl": "kernel: wait for events",
}
# The innermost frame of ours, by file and function: the first pattern that matches names the step.
STEPS: Final = tuple(
    (re.compile(pattern), step)
    for pattern, step in (
        (r"wire/(request|head|buffer|grammar)\.py", "read HTTP"),
        (r"wire/jsontext\.py|^(parse_completion|_\w+) \(tinyllm/serving/schema\.py", "read JSON"),
        (r"decoding/utf8\.py", "ids to text"),
        (r"decoding/|model/|engine/generation\.py", "choose tokens"),
        (r"engine/", "take turns"),
        (r"wire/(response|sse)\.py|serving/(responses|schema)\.py", "write the answer"),
        (r"serving/transport\.py", "our transport"),
        (r"serving/(connection|edge)\.py", "our connection"),
        (r"serving/(routes|completions|exchange|server|accesslog)\.py|tracing/", "route and note"),
    )
)
KERNEL = "kernel: "
OTHER = "event loop and the rest"
MAIN_THREAD = "MainThread"
LOCK_WAITS = ("pthread_cond_timedwait", "pthread_cond_wait")
COLUMNS = ("step", "plain request, us", "share", "streamed token, us", "share")


def measure(lab: Lab) -> Section:
    """Profile a server under plain requests, and under streams."""
    section = Section("Where the microseconds go", COLUMNS)
    try:
        py_spy = anchors.peer_environment() / "py-spy"
    except anchors.Missing as reason:
        section.notes.append(f"not measured: {reason}")
        return section
    works: dict[str, tuple[Body, str]] = {
        "plain": (PLAIN, "requests"),
        "stream": (STREAM, "events"),
    }
    costs, looks = {}, {}
    with anchors.ours(lab.model) as server:
        for name, (body, unit) in works.items():
            run = lab.load.turns(server, body, CONNECTIONS, lab.seconds)
            costs[name] = run.cpu_per_unit(unit)
            with tempfile.NamedTemporaryFile(suffix=".raw") as raw:
                _look(lab, server, body, [str(py_spy), "-f", "raw", "-t"], raw.name, LOOK_SECONDS)
                looks[name] = _count_steps(Path(raw.name).read_text().splitlines())
            if lab.results is not None:
                graph = lab.results / f"serving-{name}.svg"
                _look(
                    lab, server, body, [str(py_spy), "-f", "flamegraph"], str(graph), GRAPH_SECONDS
                )
                section.notes.append(f"Flame graph: [{graph.name}]({graph.name})")
    steps = {name: _microseconds(looks[name], costs[name]) for name in works}
    for step in sorted(steps["plain"] | steps["stream"], key=lambda step: -steps["plain"][step]):
        section.rows.append([step, *(cell for n in works for cell in _cells(steps[n], step))])
    section.rows.append(["all", *(c for n in works for c in (figure(costs[n].total), ""))])
    section.data = {name: {"us": steps[name], "looks": looks[name]} for name in works}
    return section


def _look(
    lab: Lab, server: ServerProcess, body: Body, command: list[str], path: str, seconds: int
) -> None:
    """Let py-spy look at a loaded server and write what it saw."""
    py_spy, *options = command
    load = lab.load.background(server, body, CONNECTIONS, seconds + SPARE_SECONDS)
    what = ["--pid", str(server.pid), "--duration", str(seconds), "--rate", str(LOOKS_PER_SECOND)]
    subprocess.run(
        [py_spy, "record", "--native", "--function", *options, *what, "--output", path],
        capture_output=True,
        check=True,
    )
    load.communicate()


def _count_steps(lines: list[str]) -> Counter[str]:
    """Return how many looks found the main thread at each step, from stacks with their counts."""
    looks: Counter[str] = Counter()
    for line in lines:
        stack, _, count = line.rpartition(" ")
        thread, *frames = stack.split(";")
        if MAIN_THREAD in thread and not any(f.startswith(LOCK_WAITS) for f in frames[-3:]):
            looks[step_of(frames)] += int(count)
    return looks


def _microseconds(looks: Counter[str], cost: CpuTime) -> Counter[str]:
    """Divide a unit's system time among the kernel's steps, and its user time among ours."""
    kernel = sum(count for step, count in looks.items() if step.startswith(KERNEL))
    each = {True: cost.system / max(1, kernel), False: cost.user / (looks.total() - kernel)}
    return Counter({s: count * each[s.startswith(KERNEL)] for s, count in looks.items()})


def step_of(frames: list[str]) -> str:
    """Return what a stack, outermost frame first, was doing."""
    call, _, place = frames[-1].partition(" (")
    if place.startswith("libc") and call in SYSTEM_CALLS:
        return SYSTEM_CALLS[call]
    for frame in reversed(frames):
        if "(tinyllm/" in frame:
            for pattern, step in STEPS:
                if pattern.search(frame):
                    return step
            return OTHER
    return OTHER


def _cells(steps: Counter[str], step: str) -> list[str]:
    return [figure(steps[step]), f"{steps[step] / steps.total():.1%}"]
