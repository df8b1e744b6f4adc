"""Which part of a text is held out: its tail, also when nobody knows yet how long it is.

A text whose length is known is cut at the byte. A pipe or a compressed file is read once, so
where its tail begins shows only when it has ended. A stream that is short enough is simply
kept and then cut like a file. For a longer one, what may yet turn out to be its tail is kept
as counts: a window of segments, and all that lies before it is training text for good. A
segment is a small share of the tail it would belong to, so the window has a bounded number of
them however long the stream, and the tail is longer than asked for by less than one segment.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from tinyllm.training.bigram import Cells, Counts, PairTable

HEAD_BYTES = 32 * 1024 * 1024  # a stream of up to this is cut at the byte
SEGMENTS_PER_TAIL = 32  # at most 32 * ln(2) / 0.5 = 45 are alive, of 512 KiB each
MIN_SEGMENT_BYTES = 256 * 1024  # closing one costs as much as counting half of that


class Segment(NamedTuple):
    """What a stretch of text holds: its pairs and its bytes."""

    cells: Cells
    text_bytes: int


class Part:
    """The training part or the held-out part: pairs and bytes, as they are counted."""

    def __init__(self) -> None:
        self._table = PairTable()
        self.text_bytes = 0

    def add(self, data: bytes | memoryview, new_bytes: int) -> None:
        """Count a block whose last `new_bytes` bytes are new; one before them is context."""
        self._table.add(data)
        self.text_bytes += new_bytes

    def take(self) -> Segment:
        """Return what was counted so far and start again from nothing."""
        segment = Segment(self._table.take(), self.text_bytes)
        self.text_bytes = 0
        return segment

    def merge(self, segment: Segment) -> None:
        """Add what was counted elsewhere."""
        self._table.merge(segment.cells)
        self.text_bytes += segment.text_bytes

    @property
    def counts(self) -> Counts:
        """The pairs: int64 [256, 256], [previous byte, next byte]."""
        return self._table.counts()


class TailWindow:
    """The last part of a stream, in segments; what comes to lie before it goes to `train`."""

    def __init__(self, train: Part, holdout: float) -> None:
        self._train = train
        self._holdout = holdout
        self._length = 0
        self._segments: deque[Segment] = deque()
        self._segments_bytes = 0
        self._open = Part()  # the segment that still grows

    def add(self, data: bytes | memoryview, new_bytes: int) -> None:
        """Count a block of the stream, as Part.add does."""
        self._open.add(data, new_bytes)
        self._length += new_bytes
        if self._open.text_bytes >= self._segment_bytes():
            self._close_segment()

    def _segment_bytes(self) -> float:
        """Return how long a segment is at this place; without a tail they need not be short."""
        share = self._holdout or 1.0
        return max(self._length * share / SEGMENTS_PER_TAIL, MIN_SEGMENT_BYTES)

    def close(self, held_out: Part) -> None:
        """The stream has ended: what is left in the window is its tail."""
        self._close_segment()
        for segment in self._segments:
            held_out.merge(segment)

    def _close_segment(self) -> None:
        """Keep the segment that grew, and hand over the first ones if the rest is tail enough."""
        self._segments_bytes += self._open.text_bytes
        self._segments.append(self._open.take())
        while self._segments:
            without_first = self._segments_bytes - self._segments[0].text_bytes
            if without_first < self._length * self._holdout:
                break
            self._segments_bytes = without_first
            self._train.merge(self._segments.popleft())

    def __len__(self) -> int:
        """Return how many segments are kept."""
        return len(self._segments)
