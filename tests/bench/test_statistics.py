"""Medians, ranks and slopes of the benchmarks, with values worked out by hand."""

from __future__ import annotations

import pytest
from benchmarks.harness.statistics import Spread, figure, fit, percentile


def test_a_line_through_exact_points_is_found() -> None:
    line = fit([1, 4, 16, 4096], [90 + 0.5 * x for x in (1, 4, 16, 4096)])
    assert line.start == pytest.approx(90)
    assert line.slope == pytest.approx(0.5)


def test_a_point_of_ten_per_cent_more_weighs_alike_wherever_it_lies() -> None:
    xs = [1, 1, 1000, 1000]
    line = fit(xs, [9, 11, 9000, 11000])
    assert (line.start + line.slope) / 10 == pytest.approx(
        (line.start + 1000 * line.slope) / 10000, rel=1e-6
    )


@pytest.mark.parametrize(
    ("q", "value"),
    [
        pytest.param(0, 1, id="least"),
        pytest.param(0.5, 50, id="median"),
        pytest.param(0.99, 99, id="p99"),
        pytest.param(1, 100, id="most"),
    ],
)
def test_percentile_is_a_value_that_was_seen(q: float, value: int) -> None:
    assert percentile(list(range(100, 0, -1)), q) == value


def test_spread_is_median_lowest_and_highest() -> None:
    assert Spread.of([3, 1, 10]) == (3, 1, 10)
    assert str(Spread.of([3, 1, 10])) == "3.00 (1.00-10.0)"


@pytest.mark.parametrize(
    ("value", "text"),
    [(1234567.8, "1,234,568"), (99.96, "100.0"), (12.34, "12.3"), (0.456, "0.46"), (0, "0.00")],
)
def test_figures_show_the_digits_that_mean_something(value: float, text: str) -> None:
    assert figure(value) == text
