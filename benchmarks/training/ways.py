"""Ways to count the pairs of a text, measured to choose the one in tinyllm.training.bigram.

Each counts into 65536 cells, a pair's cell being previous + 256 * next unless it says otherwise.
"""

from __future__ import annotations

from threading import Thread

import numpy as np


class Ways:
    """Ways to count the pairs of a text in memory, each [65536] cells, all but one dropped."""

    def __init__(self, text: bytes) -> None:
        self.text = text

    def _blocks(self, size: int) -> list[bytes]:
        return [self.text[i : i + size + 1] for i in range(0, len(self.text) - 1, size)]

    def add_at(self, size: int) -> None:
        """Two aligned views, widened into a buffer that is kept, np.add.at."""
        cells, indexes = np.zeros(65536, np.int64), np.empty(size // 2, np.intp)
        for block in self._blocks(size):
            for offset in (0, 1):
                pairs = np.frombuffer(block, "<u2", (len(block) - offset) // 2, offset)
                indexes[: len(pairs)] = pairs
                np.add.at(cells, indexes[: len(pairs)], 1)

    def add_at_unwidened(self, size: int) -> None:
        """The same without widening first: np.add.at leaves its fast path."""
        cells = np.zeros(65536, np.int64)
        for block in self._blocks(size):
            for offset in (0, 1):
                pairs = np.frombuffer(block, "<u2", (len(block) - offset) // 2, offset)
                np.add.at(cells, pairs, 1)

    def add_at_overlapping(self, size: int) -> None:
        """One view of stride 1 holds all pairs; its elements overlap."""
        cells, indexes = np.zeros(65536, np.int64), np.empty(size, np.intp)
        for block in self._blocks(size):
            pairs = np.ndarray(len(block) - 1, "<u2", block, strides=(1,))
            indexes[: len(pairs)] = pairs
            np.add.at(cells, indexes[: len(pairs)], 1)

    def add_at_32_bits(self, size: int) -> None:
        """A table half as large."""
        cells, indexes = np.zeros(65536, np.int32), np.empty(size // 2, np.intp)
        one = np.int32(1)
        for block in self._blocks(size):
            for offset in (0, 1):
                pairs = np.frombuffer(block, "<u2", (len(block) - offset) // 2, offset)
                indexes[: len(pairs)] = pairs
                np.add.at(cells, indexes[: len(pairs)], one)

    def bincount(self, size: int) -> None:
        """np.bincount, which widens by itself, and makes a table for each call."""
        cells = np.zeros(65536, np.int64)
        for block in self._blocks(size):
            for offset in (0, 1):
                pairs = np.frombuffer(block, "<u2", (len(block) - offset) // 2, offset)
                counts = np.bincount(pairs)
                cells[: len(counts)] += counts

    def bincount_of_sums(self, size: int) -> None:
        """What one would write first: previous * 256 + next, by arithmetic."""
        cells = np.zeros(65536, np.int64)
        for block in self._blocks(size):
            data = np.frombuffer(block, np.uint8)
            cells += np.bincount(data[:-1].astype(np.intp) * 256 + data[1:], minlength=65536)

    def in_two_threads(self, size: int) -> None:
        """np.add.at in two threads: it holds the GIL."""
        half = len(self.text) // 2
        halves = (Ways(self.text[: half + 1]), Ways(self.text[half:]))
        threads = [Thread(target=part.add_at, args=(size,)) for part in halves]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
