"""How does cost grow with tokens, with streams at once, and with open connections?

A curve each, drawn into the results' folder, and its slope in words. Cost is the server's CPU
time, which the client's share of the cores does not move. The slope is that of the line with the
least relative errors; where it meets the axis is the cost of a stream before its tokens.
"""

from __future__ import annotations

import statistics
from pathlib import Path

from benchmarks.harness import anchors
from benchmarks.harness.load import PLAIN, STREAM, Body
from benchmarks.harness.processes import ServerProcess
from benchmarks.harness.report import Section
from benchmarks.harness.statistics import figure, fit
from benchmarks.serving.clients import idle_connections
from benchmarks.serving.drawing import Axis, Curve, draw
from benchmarks.serving.lab import Lab
from benchmarks.serving.scale import roomy

TOKENS = (1, 4, 16, 64, 256, 1024, 4096)
STREAMS = (1, 4, 16, 64, 256, 1000, 2000)
IDLE = (0, 1000, 2000, 3000, 4000, 5000)
CONNECTIONS = 8
NAMES = {"ours": "tinyllm", "tracer": "Rust design"}
COLUMNS = ("curve", "server", "points", "in words")


def measure(lab: Lab) -> Section:
    """Measure the three curves, draw them, and say their slopes."""
    section = Section("How cost grows", COLUMNS)
    with lab.running(roomy, anchors.tracer) as servers:
        _grow_with_tokens(lab, servers, section)
        _grow_with_streams(lab, servers, section)
    with roomy(lab.model) as server:
        _grow_with_connections(lab, server, section)
    return section


def _cpu_us(lab: Lab, server: ServerProcess, body: Body, connections: int, unit: str) -> float:
    """Return the server's CPU microseconds per unit, the median of the rounds."""
    runs = [lab.load.turns(server, body, connections, lab.seconds) for _ in range(lab.rounds)]
    server.settle()
    return statistics.median(run.per_unit(unit) for run in runs)


def _grow_with_tokens(lab: Lab, servers: dict[str, ServerProcess], section: Section) -> None:
    curves = []
    for name, server in servers.items():
        bodies = [{**STREAM, "max_tokens": tokens} for tokens in TOKENS]
        costs = [_cpu_us(lab, server, body, CONNECTIONS, "requests") for body in bodies]
        line = fit(TOKENS, costs)
        words = f"{figure(line.start)} us a stream and {figure(line.slope)} us a token"
        curves.append(Curve(NAMES[name], list(TOKENS), costs, words))
    _add(
        lab,
        section,
        "tokens",
        "What a stream costs",
        curves,
        Axis("tokens in the stream", True),
        Axis("server's CPU per stream, us", True),
    )


def _grow_with_streams(lab: Lab, servers: dict[str, ServerProcess], section: Section) -> None:
    curves = []
    for name, server in servers.items():
        costs = [_cpu_us(lab, server, STREAM, streams, "events") for streams in STREAMS]
        words = (
            f"{figure(costs[0])} us a token for one stream, {figure(costs[-1])} us beside "
            f"{STREAMS[-1] - 1:,} others"
        )
        curves.append(Curve(NAMES[name], list(STREAMS), costs, words))
    _add(
        lab,
        section,
        "streams",
        "What a token costs beside other streams",
        curves,
        Axis("streams at once (256 tokens each)", True),
        Axis("server's CPU per token, us"),
    )


def _grow_with_connections(lab: Lab, server: ServerProcess, section: Section) -> None:
    lab.load.turns(server, PLAIN, CONNECTIONS, lab.seconds)
    costs, memory = [], []
    for count in IDLE:
        with idle_connections(server, count):
            memory.append(server.memory() / 2**20)
            costs.append(_cpu_us(lab, server, PLAIN, CONNECTIONS, "requests"))
        server.settle()
    cost = Curve(
        "tinyllm",
        list(IDLE),
        costs,
        f"{figure(costs[0])} us a plain request beside none, {figure(costs[-1])} us beside "
        f"{IDLE[-1]:,}",
    )
    kib = fit(IDLE[1:], memory[1:]).slope * 1024
    held = Curve("tinyllm", list(IDLE), memory, f"{figure(kib)} KiB a connection")
    _add(
        lab,
        section,
        "connections",
        "What a plain request costs beside idle connections",
        [cost],
        Axis("open idle connections"),
        Axis("server's CPU per request, us"),
    )
    _add(
        lab,
        section,
        "memory",
        "What idle connections hold",
        [held],
        Axis("open idle connections"),
        Axis("server's resident memory, MiB"),
    )


def _add(
    lab: Lab, section: Section, name: str, title: str, curves: list[Curve], x: Axis, y: Axis
) -> None:
    """Add a curve per server to the table, and the picture to the results."""
    for curve in curves:
        points = ", ".join(
            f"{at:,}: {figure(value)}" for at, value in zip(curve.xs, curve.ys, strict=True)
        )
        section.rows.append([f"{y.label} by {x.label}", curve.name, points, curve.words])
    section.data[name] = {curve.name: {"x": curve.xs, "y": curve.ys} for curve in curves}
    if lab.results is None:
        return
    picture = Path(lab.results) / f"serving-{name}.png"
    try:
        draw(picture, title, curves, x, y)
    except ImportError as error:
        section.notes.append(f"{picture.name} is not drawn: {error} (pip install 'tinyllm[plot]')")
    else:
        section.notes.append(f"![{title}]({picture.name})")
