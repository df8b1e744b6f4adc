"""A second reading of the model that a server serves, to say which bytes it must answer.

Given the model directory, the runner can grade what a black box hides: that the row of the last
byte is used and not its column, that ties go to the lowest id, that a seed gives the very text
that the generator's definition gives. Written from the specification and sharing no line with the
server, so that agreement means something.
"""

from __future__ import annotations

import array
import bisect
import codecs
import itertools
import json
import math
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

VOCABULARY: Final = 256
MASK64: Final = (1 << 64) - 1
SEQUENCE: Final = 54  # the stream number that the engine seeds with


class CheckpointUnreadable(ValueError):
    """The model directory is not a byte bigram that the runner can read."""


class Checkpoint:
    """A byte bigram: 256 rows of 256 logits, read from a model directory."""

    def __init__(self, weights: array.array[float]) -> None:
        if len(weights) != VOCABULARY * VOCABULARY:
            raise CheckpointUnreadable(f"{len(weights)} weights, not 65536")
        self.rows = [tuple(weights[256 * i : 256 * (i + 1)]) for i in range(VOCABULARY)]
        self._best = [row.index(_largest(row)) for row in self.rows]
        self._sums: dict[tuple[int, float], list[float]] = {}

    @classmethod
    def load(cls, directory: Path) -> Checkpoint:
        """Read `model.safetensors`. Raises CheckpointUnreadable."""
        try:
            data = (directory / "model.safetensors").read_bytes()
            (length,) = struct.unpack_from("<Q", data)
            entry = json.loads(data[8 : 8 + length])["bigram.weight"]
            begin, end = entry["data_offsets"]
            weights = array.array("f", data[8 + length + begin : 8 + length + end])
        except (OSError, ValueError, KeyError, TypeError, struct.error) as error:
            raise CheckpointUnreadable(f"{directory}: {error!r}") from None
        if sys.byteorder == "big":
            weights.byteswap()
        return cls(weights)

    def greedy(self, previous: int) -> int:
        """Return the id of the largest logit, the lowest such id; NaN is no logit."""
        return self._best[previous]

    def tied_bytes(self) -> list[int]:
        """Return the ASCII bytes after which several ids share the largest logit."""
        rows = enumerate(self.rows[:128])
        return [i for i, row in rows if row.count(_largest(row)) > 1]

    def tokens(self, prompt: str, temperature: float, seed: int = 0) -> Iterator[int]:
        """Yield the bytes that follow the prompt, without end."""
        previous, draws = prompt.encode()[-1], uniforms(seed)
        while True:
            if temperature == 0:
                previous = self.greedy(previous)
            else:
                previous = self._draw(previous, temperature, next(draws))
            yield previous

    def generate(self, prompt: str, count: int, temperature: float, seed: int = 0) -> bytes:
        """Return the `count` bytes that follow the prompt."""
        return bytes(itertools.islice(self.tokens(prompt, temperature, seed), count))

    def _draw(self, previous: int, temperature: float, uniform: float) -> int:
        """Return the first id whose cumulative probability exceeds `uniform` (section 2.3)."""
        reached = self._cumulative(previous, temperature)
        # Where rounding leaves the last sum below the uniform: the last id with a probability.
        last = bisect.bisect_left(reached, reached[-1])
        return min(bisect.bisect_right(reached, uniform), last)

    def _cumulative(self, previous: int, temperature: float) -> list[float]:
        """Return p_0 + ... + p_j for each j; each row and temperature is computed once."""
        key = (previous, temperature)
        if key not in self._sums:
            row = self.rows[previous]
            largest = _largest(row)
            weights = [_weight(logit, largest, temperature) for logit in row]
            # In order: sum() may compensate its rounding, and then the last bit differs.
            total = list(itertools.accumulate(weights))[-1]
            self._sums[key] = list(itertools.accumulate(weight / total for weight in weights))
        return self._sums[key]


def _largest(row: tuple[float, ...]) -> float:
    return max(logit for logit in row if not math.isnan(logit))


def _weight(logit: float, largest: float, temperature: float) -> float:
    """Return exp((z - m) / T); NaN has none, and infinite logits share all of it."""
    if math.isnan(logit):
        return 0.0
    if math.isinf(largest):
        return float(logit == largest)
    return math.exp((logit - largest) / temperature)


def uniforms(seed: int) -> Iterator[float]:
    """Yield PCG32's uniforms of 53 bits for a seed (PCG-XSH-RR 64/32, section 2.3)."""
    outputs = _pcg32(seed)
    for first in outputs:
        second = next(outputs)
        yield ((first >> 5) * 67108864 + (second >> 6)) / 9007199254740992


def _pcg32(seed: int) -> Iterator[int]:
    increment = (SEQUENCE << 1) | 1
    state = increment  # one step from 0
    state = (state + seed) & MASK64
    state = (state * 6364136223846793005 + increment) & MASK64
    while True:
        old = state
        state = (old * 6364136223846793005 + increment) & MASK64
        shifted = (((old >> 18) ^ old) >> 27) & 0xFFFFFFFF
        turn = old >> 59
        yield ((shifted >> turn) | (shifted << (-turn & 31))) & 0xFFFFFFFF


def text_pieces(data: bytes) -> list[str]:
    """Return the text that each byte completes; what is still open comes with the last.

    As Rust's `from_utf8` splits: an impossible byte is one U+FFFD at once (section 2.4).
    """
    pieces, pending = [], b""
    for byte in data:
        text, pending = next_text(pending + bytes([byte]))
        pieces.append(text)
    if pieces:
        pieces[-1] += pending.decode("utf-8", "replace")
    return pieces


def next_text(pending: bytes) -> tuple[str, bytes]:
    """Return the longest text that is settled, and the bytes that may still become a character."""
    text = ""
    while pending:
        try:
            return text + pending.decode("utf-8"), b""
        except UnicodeDecodeError as error:
            text += pending[: error.start].decode("utf-8")
            rest = pending[error.start :]
            if error.end == len(pending) and _may_go_on(rest):
                return text, rest
            text += "\ufffd"
            pending = pending[error.end :]
    return text, b""


def _may_go_on(rest: bytes) -> bool:
    """Whether some bytes after `rest` would make it a character (Unicode table 3-7)."""
    tails = (b"\x80", b"\x90", b"\xa0", b"\xbf", b"\x8f", b"\x9f")
    return any(_decodes(rest + tail + b"\x80" * more) for tail in tails for more in range(3))


def _decodes(data: bytes) -> bool:
    try:
        codecs.decode(data, "utf-8")
    except UnicodeDecodeError:
        return False
    return True
