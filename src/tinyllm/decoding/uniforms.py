"""The uniforms of a request, in the portions in which its tokens are taken.

A block costs about as much as FIRST_COUNT uniforms made one by one, nearly whatever its
length, so the first ones of a seed are made by the scalar form of the generator and the others
in blocks, made ahead. The first ones are all that a short request needs, and they need not be
made each time: a server that picks the seeds itself picks many at once and makes the first
uniforms of all of them in one block; those of a seed that clients send are kept, since who
sends a seed tends to send it again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache

from tinyllm.decoding.pcg32 import (
    MAX_BLOCK,
    FirstUniforms,
    Pcg32,
    first_uniforms,
    prepare_blocks,
)

FIRST_COUNT = 16  # benchmarks/README.md: where a block begins to pay
FIRST_BLOCK = 256
SEEDS_AT_ONCE = 64  # a block of their first uniforms: some 50 microseconds
SEEDS_KEPT = 512  # of those that clients sent: about 400 KB


class UniformStream:
    """Hands out a seed's uniforms in order: the first ones, and then blocks."""

    __slots__ = ("_block", "_lead", "_size", "_state", "_used")

    def __init__(self, first: FirstUniforms) -> None:
        self._state, self._lead, uniforms = first
        self._block: Sequence[float] = uniforms
        self._used = 0
        self._size = FIRST_BLOCK

    def take(self, limit: int) -> tuple[bytes, Sequence[float]]:
        """Return the next uniforms, 1 to `limit` of them, after their leading bytes."""
        if self._used == len(self._block):
            self._refill(limit)
        begin = self._used
        self._used = end = min(begin + limit, len(self._block))
        return self._lead[begin:end], self._block[begin:end]

    def _refill(self, wanted: int) -> None:
        """Make the next block; the one after it will be twice as long."""
        rng = Pcg32.from_state(self._state)
        self._lead, self._block = rng.block(min(max(wanted, self._size), MAX_BLOCK))
        self._state = rng.state
        self._size *= 2
        self._used = 0


class SeedPool:
    """Random seeds, and the uniforms of any seed: the same whether it was picked here or not."""

    def __init__(self) -> None:
        self._prepared = False
        self._seeds: list[int] = []
        self._made: dict[int, FirstUniforms] = {}
        self._first = lru_cache(SEEDS_KEPT)(_first_uniforms)

    def prepare(self) -> None:
        """Import numpy, for blocks. May run in a thread of its own while a server starts."""
        prepare_blocks()
        self._prepared = True

    def random_seed(self) -> int:
        """Return a random seed. Once prepared, its first uniforms are made already.

        It is below 2^63, since a span's attributes carry int64 at most.
        """
        if not self._seeds:
            words = memoryview(os.urandom(8 * SEEDS_AT_ONCE)).cast("Q")
            self._seeds = [word >> 1 for word in words]
            if self._prepared:
                self._made = first_uniforms(self._seeds, FIRST_COUNT)
        return self._seeds.pop()

    def uniforms(self, seed: int) -> UniformStream:
        """Return the uniforms of a seed from the first on; ValueError when it is no u64."""
        made = self._made.pop(seed, None)
        return UniformStream(self._first(seed) if made is None else made)


def _first_uniforms(seed: int) -> FirstUniforms:
    """Return what a seed gives first, made one by one."""
    rng = Pcg32(seed)
    uniforms = rng.uniforms(FIRST_COUNT)
    return FirstUniforms(rng.state, bytes([int(256 * u) for u in uniforms]), uniforms)
