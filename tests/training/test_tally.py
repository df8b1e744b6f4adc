"""Counting whole texts: what goes into which part, whatever way a text comes."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from tinyllm.training import holdout, pieces, tally
from tinyllm.training.bigram import BLOCK_BYTES, count_bigrams
from tinyllm.training.errors import TrainingError
from tinyllm.training.pieces import Range, cut_into_pieces, tail_start
from tinyllm.training.sources import Source, find_sources
from tinyllm.training.tally import Tally

SHARE = 0.25


def count_paths(paths: Iterable[Path], share: float = SHARE) -> Tally:
    counted = Tally(share)
    for piece in cut_into_pieces(find_sources([str(path) for path in paths]), share):
        counted.count(piece, lambda _: None)
    return counted


def assert_parts(counted: Tally, texts: list[bytes], share: float = SHARE) -> None:
    """Compare both parts with each text cut by hand."""
    cuts = [(text, tail_start(len(text), share)) for text in texts]
    assert counted.train.text_bytes == sum(cut for _, cut in cuts)
    assert counted.held_out.text_bytes == sum(len(text) - cut for text, cut in cuts)
    train = sum(count_bigrams(text[:cut]) for text, cut in cuts)
    held_out = sum(count_bigrams(text[max(cut - 1, 0) :]) for text, cut in cuts)
    np.testing.assert_array_equal(counted.train.counts, train)
    np.testing.assert_array_equal(counted.held_out.counts, held_out)


SIZES = [0, 1, 2, 3, 4, 100, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES + 5]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("form", ["file", "gzip"])
def test_a_text_is_cut_at_its_tail(tmp_path: Path, form: str, size: int) -> None:
    text = os.urandom(size)
    (tmp_path / "text").write_bytes(gzip.compress(text) if form == "gzip" else text)
    assert_parts(count_paths([tmp_path / "text"]), [text])


@pytest.mark.parametrize("range_bytes", [1, 2, 3, 7, 1000, BLOCK_BYTES + 1])
def test_a_file_counted_in_ranges_has_the_same_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, range_bytes: int
) -> None:
    monkeypatch.setattr(pieces, "RANGE_BYTES", range_bytes)
    text = os.urandom(500 if range_bytes < 1000 else 200_000)
    (tmp_path / "text").write_bytes(text)
    assert_parts(count_paths([tmp_path / "text"]), [text])


def test_pairs_never_cross_from_one_file_to_the_next(tmp_path: Path) -> None:
    (tmp_path / "1").write_bytes(b"ab")
    (tmp_path / "2").write_bytes(b"cd")
    counted = count_paths([tmp_path], share=0.0)
    assert counted.train.counts[ord("a"), ord("b")] == 1
    assert counted.train.counts[ord("c"), ord("d")] == 1
    assert counted.train.counts.sum() == 2


def test_the_tail_is_taken_of_each_text(tmp_path: Path) -> None:
    texts = [b"x" * 40 + b"y" * 40, b"", b"z", b"0123456789" * 10]
    for number, text in enumerate(texts):
        (tmp_path / str(number)).write_bytes(text)
    assert_parts(count_paths([tmp_path]), texts)


def test_a_text_in_memory_is_cut_like_a_file() -> None:
    text = os.urandom(1000)
    counted = Tally(SHARE)
    counted.count_text(text)
    assert_parts(counted, [text])


def test_a_long_stream_has_every_pair_in_one_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream that is not kept: its tail begins at a block, and nothing is lost there."""
    monkeypatch.setattr(tally, "HEAD_BYTES", 4 * BLOCK_BYTES)
    monkeypatch.setattr(holdout, "MIN_SEGMENT_BYTES", 1)
    text = os.urandom(40 * BLOCK_BYTES + 123)
    (tmp_path / "text").write_bytes(gzip.compress(text, 1))
    counted = count_paths([tmp_path / "text"])
    cut = counted.train.text_bytes
    assert cut % BLOCK_BYTES == 0
    assert 0 <= tail_start(len(text), SHARE) - cut < 2 * BLOCK_BYTES
    np.testing.assert_array_equal(counted.train.counts, count_bigrams(text[:cut]))
    np.testing.assert_array_equal(counted.held_out.counts, count_bigrams(text[cut - 1 :]))


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_a_stream_about_as_long_as_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extra: int
) -> None:
    monkeypatch.setattr(tally, "HEAD_BYTES", 2 * BLOCK_BYTES)
    text = os.urandom(2 * BLOCK_BYTES + extra)
    (tmp_path / "text").write_bytes(gzip.compress(text, 1))
    counted = count_paths([tmp_path / "text"])
    both = counted.train.counts + counted.held_out.counts
    np.testing.assert_array_equal(both, count_bigrams(text))
    assert counted.train.text_bytes + counted.held_out.text_bytes == len(text)


def test_a_file_that_shrinks_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"only ten b")
    with pytest.raises(TrainingError, match=f"^{tmp_path}/text: it shrank to 10 bytes while"):
        Tally(SHARE).count(Range(str(tmp_path / "text"), 0, 20, False), lambda _: None)


def test_a_file_that_goes_away_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=f"^{tmp_path}/text: No such file or directory$"):
        Tally(SHARE).count(Range(str(tmp_path / "text"), 0, 20, False), lambda _: None)


def test_the_bytes_read_are_told_as_they_are_read(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(bytes(3 * BLOCK_BYTES))
    zipped = gzip.compress(os.urandom(3 * BLOCK_BYTES))
    (tmp_path / "zipped").write_bytes(zipped)
    told: list[int] = []
    for piece in cut_into_pieces(find_sources([str(tmp_path)]), SHARE):
        Tally(SHARE).count(piece, told.append)
    assert sum(told) == 3 * BLOCK_BYTES + len(zipped)
    assert max(told) <= 4 * BLOCK_BYTES


def test_pieces_of_a_file_are_its_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "RANGE_BYTES", 40)
    sources = [Source("file", 100, is_stream=False), Source("pipe", None, is_stream=True)]
    assert list(cut_into_pieces(sources, 0.1)) == [
        Range("file", 0, 40, is_held_out=False),
        Range("file", 40, 80, is_held_out=False),
        Range("file", 80, 90, is_held_out=False),
        Range("file", 90, 100, is_held_out=True),
        Source("pipe", None, is_stream=True),
    ]
