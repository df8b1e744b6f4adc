"""Count a text piece by piece into two parts: the training part and the held-out tail.

The tail is the last part of *each* text, so that it is of the same kind as what was trained
on, however many texts there are. No pair crosses from one text to the next.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from tinyllm.training.bigram import BLOCK_BYTES
from tinyllm.training.errors import TrainingError
from tinyllm.training.holdout import HEAD_BYTES, Part, Segment, TailWindow
from tinyllm.training.pieces import Piece, Range, tail_start
from tinyllm.training.sources import MeasuredReader, Source, Text, naming, open_stream

Advance = Callable[[int], None]  # told how many more stored bytes were read


class Tally:
    """Both parts of the text, as they are counted."""

    def __init__(self, holdout: float) -> None:
        self.holdout = holdout
        self.train = Part()
        self.held_out = Part()

    def count(self, piece: Piece, advance: Advance) -> None:
        """Count one piece; raise TrainingError when it cannot be read to its end."""
        if isinstance(piece, Range):
            self._count_range(piece, advance)
        else:
            self._count_stream(piece, advance)

    def count_text(self, text: bytes | bytearray) -> None:
        """Count a whole text that is in memory."""
        cut = tail_start(len(text), self.holdout)
        view = memoryview(text)
        self.train.add(view[:cut], cut)
        self.held_out.add(view[max(cut - 1, 0) :], len(text) - cut)

    def merge(self, train: Segment, held_out: Segment) -> None:
        """Add what another process counted."""
        self.train.merge(train)
        self.held_out.merge(held_out)

    def _count_range(self, piece: Range, advance: Advance) -> None:
        """Read a range in overlapping blocks: each begins with the byte before it."""
        part = self.held_out if piece.is_held_out else self.train
        with naming(piece.path), open(piece.path, "rb", buffering=0) as file:
            place = piece.start
            while place < piece.stop:
                context = min(place, 1)  # the file's first byte has none before it
                wanted = min(BLOCK_BYTES, piece.stop - place)
                block = os.pread(file.fileno(), context + wanted, place - context)
                new_bytes = len(block) - context
                if new_bytes <= 0:
                    raise TrainingError(
                        f"{piece.path}: it shrank to {place} bytes while it was read"
                    )
                part.add(block, new_bytes)
                place += new_bytes
                advance(new_bytes)

    def _count_stream(self, source: Source, advance: Advance) -> None:
        """Read a stream to its end, once."""
        with open_stream(source) as (text, reader):
            blocks = _blocks(text, reader, advance)
            head = _join_up_to(HEAD_BYTES, blocks)
            if len(head) < HEAD_BYTES:
                self.count_text(head)
            else:
                self._count_long_stream(chain(_split(head), blocks))

    def _count_long_stream(self, blocks: Iterable[bytes]) -> None:
        """Count a stream whose tail begins nobody knows where."""
        window = TailWindow(self.train, self.holdout)
        context = b""
        for block in blocks:
            window.add(context + block, len(block))
            context = block[-1:]
        window.close(self.held_out)


def _blocks(text: Text, reader: MeasuredReader, advance: Advance) -> Iterator[bytes]:
    """Yield a stream's text in blocks, whole but for the last, telling how much was read for it."""
    reported = 0
    while block := text.read(BLOCK_BYTES):
        advance(reader.bytes_read - reported)
        reported = reader.bytes_read
        yield block


def _join_up_to(size: int, blocks: Iterator[bytes]) -> bytearray:
    """Return the next blocks joined, as many as it takes to reach `size` bytes."""
    head = bytearray()
    for block in blocks:
        head += block
        if len(head) >= size:
            break
    return head


def _split(data: bytearray) -> Iterator[bytes]:
    """Yield the blocks that `data` was joined from."""
    for start in range(0, len(data), BLOCK_BYTES):
        yield bytes(memoryview(data)[start : start + BLOCK_BYTES])
