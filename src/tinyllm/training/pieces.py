"""What is counted at a time: a range of a plain file, or a whole stream. No numpy here.

A pair belongs to the byte it predicts, its second one. So each pair falls into exactly one
range, and into exactly one part: the training part or the tail that is held out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tinyllm.training.sources import Source

RANGE_BYTES = 2 * 1024 * 1024  # counted in about 5 ms: what a process takes at a time


@dataclass(frozen=True, slots=True)
class Range:
    """The bytes [start, stop) of a plain file, all of the same part."""

    path: str
    start: int
    stop: int
    is_held_out: bool


Piece = Range | Source  # a source is a piece when it is a stream: counted whole


def tail_start(length: int, holdout: float) -> int:
    """Return where the held-out tail of a text of `length` bytes begins."""
    return length - int(length * holdout)


def cut_into_pieces(sources: Iterable[Source], holdout: float) -> Iterator[Piece]:
    """Cut plain files into ranges, at the tail's start and every RANGE_BYTES."""
    for source in sources:
        if source.is_stream or source.stored_bytes is None:
            yield source
            continue
        size = source.stored_bytes
        cut = tail_start(size, holdout)
        for start, stop, is_held_out in ((0, cut, False), (cut, size, True)):
            for begin in range(start, stop, RANGE_BYTES):
                yield Range(source.path, begin, min(begin + RANGE_BYTES, stop), is_held_out)
