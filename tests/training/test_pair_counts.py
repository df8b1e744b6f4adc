"""Counting pairs: the fast way gives what the plain way gives, at every block border."""

from __future__ import annotations

import os
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyllm.training.bigram import BLOCK_BYTES, Counts, PairTable, count_bigrams


def plain_counts(data: bytes) -> Counts:
    """The specification of counting, one pair after the other."""
    counts = np.zeros((256, 256), dtype=np.int64)
    for (prev, following), count in Counter(pairwise(data)).items():
        counts[prev, following] = count
    return counts


def test_row_is_the_previous_byte_and_column_the_next() -> None:
    counts = count_bigrams(b"abac")
    assert counts.shape == (256, 256)
    assert counts.dtype == np.int64
    assert counts[ord("a"), ord("b")] == 1
    assert counts[ord("b"), ord("a")] == 1
    assert counts[ord("a"), ord("c")] == 1
    assert counts.sum() == 3


@pytest.mark.parametrize("data", [b"", b"x"], ids=["empty", "one byte"])
def test_fewer_than_two_bytes_have_no_pair(data: bytes) -> None:
    assert count_bigrams(data).sum() == 0


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=600))
def test_counts_are_those_of_a_counter(data: bytes) -> None:
    np.testing.assert_array_equal(count_bigrams(data), plain_counts(data))


@pytest.mark.parametrize("extra", [-2, -1, 0, 1, 2, 3], ids="{:+}".format)
@pytest.mark.parametrize("blocks", [1, 2])
def test_pairs_on_a_block_border_are_counted_once(blocks: int, extra: int) -> None:
    data = os.urandom(blocks * BLOCK_BYTES + extra)
    np.testing.assert_array_equal(count_bigrams(data), plain_counts(data))


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=300), st.data())
def test_a_table_fed_in_overlapping_parts_counts_the_same(data: bytes, draw: st.DataObject) -> None:
    cuts = sorted(draw.draw(st.lists(st.integers(1, max(len(data), 1)), max_size=4)))
    table = PairTable()
    for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True):
        table.add(data[max(start - 1, 0) : stop] if stop > start else b"")
    np.testing.assert_array_equal(table.counts(), plain_counts(data))


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_can_be_counted(kind: type) -> None:
    np.testing.assert_array_equal(count_bigrams(kind(b"hello")), plain_counts(b"hello"))


def test_take_starts_again_from_zero_and_merge_adds() -> None:
    first, second = PairTable(), PairTable()
    first.add(b"ab")
    second.add(b"abc")
    second.merge(first.take())
    assert first.counts().sum() == 0
    assert second.counts()[ord("a"), ord("b")] == 2
    assert second.counts()[ord("b"), ord("c")] == 1


def test_counts_beyond_32_bits_are_exact() -> None:
    table = PairTable()
    table.add(b"ab")
    table.merge(table.take() * (2**40 + 1))
    table.add(b"ab")
    assert table.counts()[ord("a"), ord("b")] == 2**40 + 2
