"""The uniforms of a request, in the portions in which its tokens are taken.

A block costs about as much as SCALAR_COUNT uniforms made one by one, nearly whatever its
length, so a short request is served by the scalar form of the generator and a longer one by
blocks, made ahead. A server that picks the seeds itself has a third way: it picks many at once
and makes the first uniforms of all of them in one block.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from tinyllm.decoding.pcg32 import MAX_BLOCK, Pcg32, first_uniforms, prepare_blocks

SCALAR_COUNT = 16  # benchmarks/README.md: where a block begins to pay
FIRST_BLOCK = 256
SEEDS_AT_ONCE = 64  # a block of their first uniforms: some 50 microseconds


class UniformStream:
    """Hands out a generator's uniforms in order, after those that were made already."""

    __slots__ = ("_block", "_lead", "_rng", "_scalars_left", "_size", "_used")

    def __init__(self, rng: Pcg32, made: Sequence[float] = ()) -> None:
        self._rng = rng
        self._lead = b""
        self._block = made
        self._used = 0
        self._scalars_left = 0 if made else SCALAR_COUNT
        self._size = FIRST_BLOCK

    def take(self, limit: int) -> tuple[bytes, Sequence[float]]:
        """Return the next uniforms, 1 to `limit` of them, after their leading bytes.

        The leading bytes, floor(256 u) for each u, come with blocks alone; else they are empty.
        """
        if self._used == len(self._block):
            if limit <= self._scalars_left:
                self._scalars_left -= limit
                return b"", self._rng.uniforms(limit)
            self._refill(limit)
        begin = self._used
        self._used = end = min(begin + limit, len(self._block))
        return self._lead[begin:end], self._block[begin:end]

    def _refill(self, wanted: int) -> None:
        """Make the next block; the one after it will be twice as long."""
        self._lead, self._block = self._rng.block(min(max(wanted, self._size), MAX_BLOCK))
        self._size *= 2
        self._used = 0
        self._scalars_left = 0  # who needed a block goes on with blocks


class SeedPool:
    """Random seeds, and the uniforms of any seed: the same whether it was picked here or not."""

    def __init__(self) -> None:
        self._prepared = False
        self._seeds: list[int] = []
        self._made: dict[int, tuple[int, list[float]]] = {}

    def prepare(self) -> None:
        """Import numpy, for blocks. May run in a thread of its own while a server starts."""
        prepare_blocks()
        self._prepared = True

    def random_seed(self) -> int:
        """Return a random u64. Once prepared, its first uniforms are made already."""
        if not self._seeds:
            words = memoryview(os.urandom(8 * SEEDS_AT_ONCE)).cast("Q")
            self._seeds = words.tolist()
            if self._prepared:
                self._made = first_uniforms(self._seeds, SCALAR_COUNT)
        return self._seeds.pop()

    def uniforms(self, seed: int) -> UniformStream:
        """Return the uniforms of a seed from the first on; ValueError when it is no u64."""
        made = self._made.pop(seed, None)
        if made is None:
            return UniformStream(Pcg32(seed))
        state, uniforms = made
        return UniformStream(Pcg32.from_state(state), uniforms)
