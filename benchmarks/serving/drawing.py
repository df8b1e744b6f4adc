"""A curve as a picture: what was measured, each line named where it ends, its slope in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

COLOURS = ("#1763a6", "#b4562b", "#5a7a2b")
INK, FAINT = "#333333", "#d9d9d9"
# The axis ends where the numbers do, but leaves room for the names at the lines' ends.
NAME_ROOM = 0.18


@dataclass(frozen=True)
class Axis:
    """A label with its unit, and whether it counts in powers."""

    label: str
    logarithmic: bool = False


@dataclass(frozen=True)
class Curve:
    """One server's points, and what they say."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    words: str


def draw(path: Path, title: str, curves: Sequence[Curve], x: Axis, y: Axis) -> None:
    """Draw curves into a PNG. Raises ImportError where there is no matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.6), dpi=130, layout="constrained")
    for curve, colour in zip(curves, COLOURS, strict=False):
        axes.plot(curve.xs, curve.ys, color=colour, marker="o", markersize=5, linewidth=2)
        axes.annotate(
            curve.name,
            (curve.xs[-1], curve.ys[-1]),
            xytext=(10, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            weight="bold",
        )
    _scale(axes, curves, x, y)
    words = "\n".join(f"{curve.name}: {curve.words}" for curve in curves)
    axes.set_title(title + "\n" * len(curves), loc="left", color=INK, weight="bold")
    axes.text(0, 1.02, words, transform=axes.transAxes, color=INK, fontsize=9, va="bottom")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    pyplot.close(figure)


def _scale(axes: Any, curves: Sequence[Curve], x: Axis, y: Axis) -> None:  # noqa: ANN401
    """Set scales, labels, ticks and grid; `axes` is matplotlib's."""
    from matplotlib.ticker import FuncFormatter

    if x.logarithmic:
        axes.set_xscale("log", base=2)
        axes.set_xticks(curves[0].xs)
    values = [value for curve in curves for value in curve.ys]
    if y.logarithmic:
        axes.set_yscale("log")
        low, high = floor(log10(min(values))), ceil(log10(max(values)))
        axes.set_ylim(10**low, 10**high)
    else:
        axes.set_ylim(0, 1.25 * max(values))
    plain = FuncFormatter(lambda value, _: f"{value:,.10g}")
    axes.xaxis.set_major_formatter(plain)
    axes.yaxis.set_major_formatter(plain)
    axes.minorticks_off()
    axes.margins(x=NAME_ROOM)
    axes.set_xlabel(x.label, color=INK)
    axes.set_ylabel(y.label, color=INK)
    axes.grid(color=FAINT, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
