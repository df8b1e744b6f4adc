"""The byte bigram: pair counts, and the log probabilities they give.

Counting is the whole cost of training, so it does no arithmetic on the bytes. A pair of
bytes read as one little-endian 16-bit number *is* its cell in a table of 65536 (the next
byte is the high half), and a block of text is two such arrays: the pairs that start at even
offsets and those that start at odd ones. Each is widened to numpy's index type, in a buffer
that is small enough to stay in the cache, and added to the table by `np.add.at`, whose fast
path takes exactly that type; benchmarks/README.md has the other ways that were measured.

The model is the closed form: for one row, the probabilities that minimize the cross entropy
of its counts are the counts' shares, and with `smoothing` added to every cell they minimize
the cross entropy of the smoothed counts. No gradient descent would end anywhere else.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tinyllm.training.options import DEFAULT_SMOOTHING, check_smoothing

VOCAB_SIZE = 256  # one token per byte value
BLOCK_BYTES = 256 * 1024  # longer ones leave the cache, shorter ones pay for more calls

Cells = npt.NDArray[np.int64]  # [65536]: a pair's cell is previous + 256 * next
Counts = npt.NDArray[np.int64]  # [256, 256]: row is the previous byte, column the next
Weight = npt.NDArray[np.float32]  # [256, 256]: log probabilities of the next byte


class PairTable:
    """Pair counts that grow block by block: int64, so that no text is long enough to overflow."""

    def __init__(self) -> None:
        self._cells = np.zeros(VOCAB_SIZE * VOCAB_SIZE, dtype=np.int64)
        self._indexes = np.empty(BLOCK_BYTES // 2, dtype=np.intp)

    def add(self, data: bytes | bytearray | memoryview) -> None:
        """Count every pair of neighbours within `data`."""
        view = memoryview(data)
        for start in range(0, len(view) - 1, BLOCK_BYTES):
            # One byte more than a block: the pair on the border belongs to the block it starts in.
            block = view[start : start + BLOCK_BYTES + 1]
            self._add_pairs(block, offset=0)
            self._add_pairs(block, offset=1)

    def _add_pairs(self, block: memoryview, offset: int) -> None:
        """Count the pairs that start at `offset`, `offset` + 2, ..."""
        pairs = np.frombuffer(block, dtype="<u2", count=(len(block) - offset) // 2, offset=offset)
        indexes = self._indexes[: len(pairs)]
        indexes[:] = pairs
        np.add.at(self._cells, indexes, 1)

    def take(self) -> Cells:
        """Return the cells counted so far and start again from zero."""
        cells = self._cells
        self._cells = np.zeros_like(cells)
        return cells

    def merge(self, cells: Cells) -> None:
        """Add what another table counted."""
        self._cells += cells

    def counts(self) -> Counts:
        """Return the counts as [previous byte, next byte]."""
        return self._cells.reshape(VOCAB_SIZE, VOCAB_SIZE).T.copy()


def count_bigrams(data: bytes | bytearray | memoryview) -> Counts:
    """Return how often each byte follows each byte: int64 [256, 256], row the previous byte."""
    table = PairTable()
    table.add(data)
    return table.counts()


def train_bigram(counts: Counts, smoothing: float = DEFAULT_SMOOTHING) -> Weight:
    """Return log p(next | previous) = log (c + a) / (n + 256 a): float32 [256, 256].

    `smoothing` is a. Every entry is finite, and a row that was never seen is uniform.
    Raises ValueError for a smoothing that options.py does not allow.
    """
    check_smoothing(smoothing)
    totals = counts.sum(axis=1, keepdims=True)
    # Two logarithms, not one of a quotient: the smallest smoothing would round to zero in it.
    weight = np.log(counts + smoothing) - np.log(totals + VOCAB_SIZE * smoothing)
    return np.asarray(weight, dtype=np.float32)


def bits_per_byte(weight: npt.NDArray[np.floating], counts: Counts) -> float:
    """Return the cross entropy of the pairs in `counts` under `weight`, in bits per predicted byte.

    `weight` may be anything that broadcasts to [256, 256]. Raises ValueError without a pair.
    """
    pairs = int(counts.sum())
    if pairs == 0:
        raise ValueError("there is no pair to predict")
    return -float((counts * weight.astype(np.float64)).sum()) / pairs / math.log(2)
