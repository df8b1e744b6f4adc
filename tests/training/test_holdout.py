"""The held-out tail: exact where the length is known, close where it shows only at the end."""

from __future__ import annotations

import numpy as np
import pytest

from tinyllm.training import holdout
from tinyllm.training.bigram import count_bigrams
from tinyllm.training.holdout import Part, TailWindow
from tinyllm.training.pieces import tail_start

STREAM = bytes(range(256)) * 8


@pytest.mark.parametrize(
    ("length", "share", "start"),
    [
        pytest.param(0, 0.1, 0, id="empty"),
        pytest.param(1, 0.5, 1, id="one byte is for training"),
        pytest.param(9, 0.1, 9, id="too short to hold any out"),
        pytest.param(10, 0.1, 9, id="a tenth"),
        pytest.param(10, 0.0, 10, id="nothing"),
        pytest.param(11, 0.5, 6, id="half, rounded down"),
    ],
)
def test_tail_start(length: int, share: float, start: int) -> None:
    assert tail_start(length, share) == start


def window_parts(share: float, block: int) -> tuple[Part, Part, int]:
    """Feed STREAM to a window; return both parts and the most segments that were alive."""
    train, held_out = Part(), Part()
    window = TailWindow(train, share)
    alive = 0
    for start in range(0, len(STREAM), block):
        stop = min(start + block, len(STREAM))
        window.add(STREAM[max(start - 1, 0) : stop], stop - start)
        alive = max(alive, len(window))
    window.close(held_out)
    return train, held_out, alive


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of a few bytes instead of hundreds of kilobytes."""
    monkeypatch.setattr(holdout, "MIN_SEGMENT_BYTES", 1)


@pytest.mark.usefixtures("small_segments")
@pytest.mark.parametrize("share", [0.05, 0.1, 0.5])
@pytest.mark.parametrize("block", [3, 32])
def test_the_tail_of_a_stream_is_the_share_or_a_segment_more(share: float, block: int) -> None:
    _, held_out, _ = window_parts(share, block)
    wanted = len(STREAM) * share
    segment = wanted / holdout.SEGMENTS_PER_TAIL + block
    assert wanted <= held_out.text_bytes < wanted + segment


@pytest.mark.usefixtures("small_segments")
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
def test_both_parts_of_a_stream_are_cut_at_one_byte(share: float) -> None:
    train, held_out, _ = window_parts(share, block=7)
    cut = train.text_bytes
    assert cut + held_out.text_bytes == len(STREAM)
    np.testing.assert_array_equal(train.counts, count_bigrams(STREAM[:cut]))
    np.testing.assert_array_equal(held_out.counts, count_bigrams(STREAM[cut - 1 :]))


@pytest.mark.usefixtures("small_segments")
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_number_of_segments_is_bounded(share: float) -> None:
    _, _, alive = window_parts(share, block=2)
    assert alive <= 48


def test_nothing_held_out_keeps_nothing_back() -> None:
    train, held_out, _ = window_parts(0.0, block=64)
    assert held_out.text_bytes == 0
    assert train.text_bytes == len(STREAM)
