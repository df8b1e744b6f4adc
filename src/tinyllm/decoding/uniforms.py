"""The uniforms of a request, in the portions in which its tokens are taken.

A block costs about as much as FIRST_COUNT uniforms made one by one, nearly whatever its
length, so the first ones of a seed are made by the scalar form of the generator and the others
in blocks, made ahead. The first ones are all that a short request needs, and they need not be
made each time: a server that picks the seeds itself picks many at once and makes the first
uniforms of all of them in one block; those of a seed that clients send are kept, since who
sends a seed tends to send it again. The blocks that follow are made for several streams at
once where these begin together (`make_ahead`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache

from tinyllm.decoding.pcg32 import (
    MAX_BLOCK,
    Block,
    Pcg32,
    first_blocks,
    next_blocks,
    prepare_blocks,
)

FIRST_COUNT = 16  # benchmarks/README.md: where a block begins to pay
FIRST_BLOCK = 256
BLOCKS_AT_ONCE = MAX_BLOCK // FIRST_BLOCK
SEEDS_AT_ONCE = 64  # a block of their first uniforms: some 50 microseconds
SEEDS_KEPT = 512  # of those that clients sent: about 400 KB


class UniformStream:
    """Hands out a seed's uniforms in order: the first ones, and then blocks."""

    __slots__ = ("_block", "_next", "_size", "_used")

    def __init__(self, first: Block) -> None:
        self._block = first
        self._next: Block | None = None  # made ahead
        self._used = 0
        self._size = FIRST_BLOCK

    def take(self, limit: int) -> tuple[bytes, Sequence[float]]:
        """Return the next uniforms, 1 to `limit` of them, after their leading bytes."""
        if self._used == len(self._block.lead):
            self._refill(limit)
        _, lead, uniforms = self._block
        begin = self._used
        self._used = end = min(begin + limit, len(lead))
        return lead[begin:end], uniforms[begin:end]

    def _refill(self, wanted: int) -> None:
        """Go on with the next block; the one after it will be twice as long."""
        if self._next is None:
            rng = Pcg32.from_state(self._block.state)
            self._next = rng.block(min(max(wanted, self._size), MAX_BLOCK))
        self._block, self._next = self._next, None
        self._size *= 2
        self._used = 0


def make_ahead(streams: Sequence[UniformStream]) -> None:
    """Make the next block of streams that begin together side by side, before they come to it.

    Eight together cost twice what one costs alone; one alone is left to itself.
    """
    beginning = [s for s in streams if s._size == FIRST_BLOCK and s._next is None]
    for k in range(0, len(beginning) - 1, BLOCKS_AT_ONCE):
        some = beginning[k : k + BLOCKS_AT_ONCE]
        made = next_blocks([stream._block.state for stream in some], FIRST_BLOCK)
        for stream, block in zip(some, made, strict=True):
            stream._next = block


class SeedPool:
    """Random seeds, and the uniforms of any seed: the same whether it was picked here or not."""

    def __init__(self) -> None:
        self._prepared = False
        self._seeds: list[int] = []
        self._made: dict[int, Block] = {}
        self._first = lru_cache(SEEDS_KEPT)(_first_block)

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
                made = first_blocks(self._seeds, FIRST_COUNT)
                self._made = dict(zip(self._seeds, made, strict=True))
        return self._seeds.pop()

    def uniforms(self, seed: int) -> UniformStream:
        """Return the uniforms of a seed from the first on; ValueError when it is no u64."""
        made = self._made.pop(seed, None)
        return UniformStream(self._first(seed) if made is None else made)


def _first_block(seed: int) -> Block:
    """Return what a seed gives first, made one by one."""
    rng = Pcg32(seed)
    uniforms = rng.uniforms(FIRST_COUNT)
    return Block(rng.state, bytes([int(256 * u) for u in uniforms]), uniforms)
