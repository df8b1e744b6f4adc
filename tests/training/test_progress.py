"""The progress line: what it says, and that it is one line."""

from __future__ import annotations

import io

import pytest

from tinyllm.training.progress import ProgressBar, progress_line, size_text, time_text


@pytest.mark.parametrize(
    ("done", "total", "seconds", "line"),
    [
        pytest.param(
            0, 1000, 0.0,
            "counting   0% [                        ]  0 B of 1 kB  0 B/s", id="start",
        ),
        pytest.param(
            250_000_000, 1_000_000_000, 1.0,
            "counting  25% [######                  ]  250 MB of 1 GB  250 MB/s  0:03 left",
            id="a quarter",
        ),
        pytest.param(
            10**9, 10**9, 4.0,
            "counting 100% [########################]  1 GB of 1 GB  250 MB/s", id="end",
        ),
        pytest.param(
            2 * 10**9, 10**9, 4.0,
            "counting 100% [########################]  2 GB of 1 GB  500 MB/s", id="a file grew",
        ),
        pytest.param(1_500_000, None, 3.0, "counting  1.5 MB  500 kB/s", id="length unknown"),
        pytest.param(0, 0, 0.0, "counting  0 B  0 B/s", id="nothing to do"),
    ],
)  # fmt: skip
def test_progress_line(done: int, total: int | None, seconds: float, line: str) -> None:
    assert progress_line(done, total, seconds) == line


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (999.6, "1 kB"), (1234, "1.23 kB"), (31.4e9, "31.4 GB"),
     (2e12, "2 TB")],
)  # fmt: skip
def test_sizes_have_three_digits(count: float, text: str) -> None:
    assert size_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0:00"), (59.6, "1:00"), (754, "12:34"), (11105, "3:05:05")]
)
def test_times_are_minutes_and_seconds(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_bar_is_drawn_ten_times_a_second_on_one_line() -> None:
    terminal, clock = io.StringIO(), Clock()
    bar = ProgressBar(terminal, clock)
    bar.start(1000)
    for step in range(1, 101):
        clock.now = step / 100
        bar.advance(10)
    bar.finish()
    drawn = terminal.getvalue()
    assert "\n" not in drawn
    lines = [line.removesuffix("\x1b[K") for line in drawn.split("\r")[1:]]
    assert 9 <= len(lines) - 1 <= 11
    assert lines[0] == "counting  10% [##                      ]  100 B of 1 kB  1 kB/s  0:01 left"
    assert lines[-1] == ""  # the line is gone


def test_a_terminal_that_goes_away_does_not_end_the_run() -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

    clock = Clock()
    bar = ProgressBar(Gone(), clock)
    bar.start(100)
    clock.now = 1.0
    bar.advance(10)
    bar.finish()
