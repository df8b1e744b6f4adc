"""The uniforms of a request, in the portions in which its tokens are taken.

A block costs about as much as FIRST_COUNT uniforms made one by one, nearly whatever its
length, so the first ones of a seed are made by the scalar form of the generator and the others
in blocks, made ahead. The first ones are all that a short request needs, and they need not be
made each time: a server that picks the seeds itself picks many at once and makes the first
uniforms of all of them in one block; those of a seed that clients send are kept, since who
sends a seed tends to send it again. The blocks that follow are made for several streams at
once where these begin together (`make_ahead`); the first of them is kept with its seed, too.
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
SEEDS_KEPT = 512  # of those that clients sent: 3 KB each, at most 1.6 MB


class SeedStart:
    """What a seed gives at first: some uniforms, and a block more once a stream came to it."""

    __slots__ = ("block", "first")

    def __init__(self, first: Block) -> None:
        self.first = first
        self.block: Block | None = None  # of FIRST_BLOCK


class UniformStream:
    """Hands out a seed's uniforms in order: the first ones, and then blocks."""

    __slots__ = ("_block", "_size", "_start", "_used")

    def __init__(self, start: SeedStart) -> None:
        self._start = start
        self._block = start.first
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
        is_first = self._size == FIRST_BLOCK
        block = self._start.block if is_first else None
        if block is None:
            rng = Pcg32.from_state(self._block.state)
            block = rng.block(min(max(wanted, self._size), MAX_BLOCK))
            if is_first and len(block.lead) == FIRST_BLOCK:
                self._start.block = block
        self._block = block
        self._size *= 2
        self._used = 0


def make_ahead(streams: Sequence[UniformStream]) -> None:
    """Make the next block of streams that begin together side by side, before they come to it.

    Eight together cost twice what one costs alone; one alone is left to itself.
    """
    beginning = list(  # a seed once, however many streams it has
        dict.fromkeys(
            stream._start
            for stream in streams
            if stream._size == FIRST_BLOCK and stream._start.block is None
        )
    )
    for k in range(0, len(beginning) - 1, BLOCKS_AT_ONCE):
        some = beginning[k : k + BLOCKS_AT_ONCE]
        made = next_blocks([start.first.state for start in some], FIRST_BLOCK)
        for start, block in zip(some, made, strict=True):
            start.block = block


class SeedPool:
    """Random seeds, and the uniforms of any seed: the same whether it was picked here or not."""

    def __init__(self) -> None:
        self._prepared = False
        self._seeds: list[int] = []
        self._made: dict[int, Block] = {}
        self._start = lru_cache(SEEDS_KEPT)(_start)

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
        return UniformStream(self._start(seed) if made is None else SeedStart(made))


def _start(seed: int) -> SeedStart:
    """Return a seed's start, its first uniforms made one by one."""
    rng = Pcg32(seed)
    uniforms = rng.uniforms(FIRST_COUNT)
    return SeedStart(Block(rng.state, bytes([int(256 * u) for u in uniforms]), uniforms))
