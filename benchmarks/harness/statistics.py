"""Medians, ranks and slopes: what a run's figures are summed up with."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Spread(NamedTuple):
    """The median of some rounds and how far they lie apart."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))

    def __str__(self) -> str:
        if self.low == self.high:
            return figure(self.median)
        return f"{figure(self.median)} ({figure(self.low)}-{figure(self.high)})"


class Line(NamedTuple):
    """y = start + slope * x."""

    start: float
    slope: float


def percentile(values: Sequence[float], q: float) -> float:
    """Return the value at rank q (0 to 1) of the sorted values, as the load generator does."""
    return sorted(values)[int((len(values) - 1) * q)]


def fit(xs: Sequence[float], ys: Sequence[float]) -> Line:
    """Return the line through points that makes the sum of squared *relative* errors least.

    Costs span decades: plain least squares would see only the largest of them.
    """
    weights = [1 / (y * y) for y in ys]
    total = sum(weights)
    x_mean = sum(w * x for w, x in zip(weights, xs, strict=True)) / total
    y_mean = sum(w * y for w, y in zip(weights, ys, strict=True)) / total
    spread = sum(w * (x - x_mean) ** 2 for w, x in zip(weights, xs, strict=True))
    joint = sum(w * (x - x_mean) * (y - y_mean) for w, x, y in zip(weights, xs, ys, strict=True))
    slope = joint / spread
    return Line(y_mean - slope * x_mean, slope)


def figure(value: float) -> str:
    """Return a number with the digits that mean something: 1,234 or 56.7 or 0.89."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
