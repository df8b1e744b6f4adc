"""PCG32 (PCG-XSH-RR 64/32): the one source of randomness, so that a seed repeats its text.

    s' = s * a + c (mod 2^64)    out = rotr32((((s >> 18) ^ s) >> 27) mod 2^32, s >> 59)

The state after n steps has a closed form, s_n = a^n s + c (a^n - 1)/(a - 1), which gives both
`advance` in O(log n) and the block form: with the powers and the sums tabulated once, numpy
computes all states of a block in one multiplication and one addition of wrapping uint64. The
block form makes the same numbers as the scalar one, some 40 times faster for a long block.
numpy is imported by the first block, not with this module: a server must start at once.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Words = npt.NDArray[np.uint64]

MULTIPLIER = 6364136223846793005
STREAM = 54  # the second seeding word of every request
MASK64 = 2**64 - 1
MASK32 = 2**32 - 1
TWICE = 2**32 + 1  # times a 32-bit word: the word beside itself, so that a shift rotates it
UNIT = 2.0**-53  # a uniform is a 53-bit integer times this
MAX_BLOCK = 2048  # uniforms; its tables and intermediate arrays stay within a second-level cache


class Pcg32:
    """A generator with 64 bits of state; `seed` and `seq` are u64, `seq` picks the stream.

    Raises ValueError for a seed or a stream that is no u64.
    """

    __slots__ = ("_increment", "_state")

    def __init__(self, seed: int, seq: int = STREAM) -> None:
        if not (0 <= seed <= MASK64 and 0 <= seq <= MASK64):
            raise ValueError(f"seed and stream are 0 to 2^64 - 1, not {seed} and {seq}")
        self._increment = increment = (2 * seq + 1) & MASK64
        # O'Neill's pcg32_srandom_r: from state 0 one step, add the seed, one step.
        self._state = ((increment + seed) * MULTIPLIER + increment) & MASK64

    @classmethod
    def from_state(cls, state: int, seq: int = STREAM) -> Pcg32:
        """Return a generator that goes on from a state of the stream `seq`."""
        rng = cls(0, seq)
        rng._state = state
        return rng

    @property
    def state(self) -> int:
        """The state, from which `from_state` goes on."""
        return self._state

    def next_u32(self) -> int:
        """Return the next 32 random bits."""
        state = self._state
        self._state = (state * MULTIPLIER + self._increment) & MASK64
        return ((((state >> 18) ^ state) >> 27 & MASK32) * TWICE >> (state >> 59)) & MASK32

    def uniform(self) -> float:
        """Return a float in [0, 1) made of 53 random bits, two outputs."""
        high, low = self.next_u32(), self.next_u32()
        return ((high >> 5) << 26 | low >> 6) * UNIT

    def uniforms(self, count: int) -> list[float]:
        """Return the next `count` uniforms, one after the other: `uniform` without its calls."""
        state, increment = self._state, self._increment
        values = []
        for _ in range(count):
            high = (((state >> 18) ^ state) >> 27 & MASK32) * TWICE >> (state >> 59)
            state = (state * MULTIPLIER + increment) & MASK64
            low = (((state >> 18) ^ state) >> 27 & MASK32) * TWICE >> (state >> 59)
            state = (state * MULTIPLIER + increment) & MASK64
            values.append(((high & 0xFFFFFFE0) << 21 | low >> 6 & 0x3FFFFFF) * UNIT)
        self._state = state
        return values

    def block(self, count: int) -> Block:
        """Return the next `count` uniforms, at most MAX_BLOCK, computed side by side."""
        import numpy as np

        (block,) = _blocks(np.array([self._state], dtype=np.uint64), self._increment, count)
        self._state = block.state
        return block

    def advance(self, count: int) -> None:
        """Skip `count` outputs of 32 bits in O(log count) steps; a negative count goes back."""
        factor, constant = 1, 0
        step_factor, step_constant = MULTIPLIER, self._increment
        count &= MASK64  # the period is 2^64
        while count:
            if count & 1:
                factor = factor * step_factor & MASK64
                constant = (constant * step_factor + step_constant) & MASK64
            # A step of twice the length: s -> f (f s + k) + k.
            step_constant = (step_factor + 1) * step_constant & MASK64
            step_factor = step_factor * step_factor & MASK64
            count >>= 1
        self._state = (factor * self._state + constant) & MASK64


class Block(NamedTuple):
    """Uniforms of one generator, their leading bytes, and the state to go on from.

    The leading bytes, floor(256 u) for each u, cost next to nothing where the words are at hand.
    """

    state: int
    lead: bytes
    uniforms: Sequence[float]


def prepare_blocks() -> None:
    """Import numpy and make the tables now, so that the first long request need not wait."""
    _tables(2 * STREAM + 1)


def first_blocks(seeds: Sequence[int], count: int) -> list[Block]:
    """Return what `Pcg32(seed)` gives first for each seed, all made side by side."""
    import numpy as np

    increment = np.uint64(2 * STREAM + 1)
    start = np.array(seeds, dtype=np.uint64) + increment  # seeding, as Pcg32 does it
    return _blocks(start * np.uint64(MULTIPLIER) + increment, int(increment), count)


def next_blocks(states: Sequence[int], count: int) -> list[Block]:
    """Return what each `Pcg32.from_state(state)` gives next, all made side by side.

    A block of 256 costs some 28 us, eight of them 55: most of it is numpy's calls.
    """
    import numpy as np

    return _blocks(np.array(states, dtype=np.uint64), 2 * STREAM + 1, count)


def _blocks(start: Words, increment: int, count: int) -> list[Block]:
    """Return `count` uniforms from each state on."""
    import numpy as np

    states = _states(start, increment, count)
    high, low = _word_pairs(states)
    lead = (high >> np.uint64(24)).astype(np.uint8).tobytes()
    mantissas = high >> np.uint64(5) << np.uint64(26) | low >> np.uint64(6)
    uniforms = array("d", (mantissas * UNIT).tobytes())
    return [
        Block(state, lead[k * count : (k + 1) * count], uniforms[k * count : (k + 1) * count])
        for k, state in enumerate(states[:, -1].tolist())
    ]


def _states(start: Words, increment: int, count: int) -> Words:
    """Return the states that `count` uniforms go through, and the one after, a row per start."""
    if count > MAX_BLOCK:
        raise ValueError(f"a block has at most {MAX_BLOCK} uniforms, not {count}")
    powers, sums = _tables(increment)
    outputs = 2 * count + 1
    states = start[:, None] * powers[:outputs]
    states += sums[:outputs]
    return states


def _word_pairs(states: Words) -> tuple[Words, Words]:
    """Return the outputs of all states but the last: the first and the second of each pair."""
    import numpy as np

    states = states[:, :-1]
    words = states >> np.uint64(18)
    words ^= states
    words >>= np.uint64(27)
    words &= np.uint64(MASK32)
    words *= np.uint64(TWICE)
    words >>= states >> np.uint64(59)
    words &= np.uint64(MASK32)
    return words[:, 0::2], words[:, 1::2]


@lru_cache(maxsize=4)  # requests share one increment
def _tables(increment: int) -> tuple[Words, Words]:
    """Return a^n and c (a^n - 1)/(a - 1) mod 2^64, for n from 0 to the outputs of a block."""
    import numpy as np

    powers = np.full(2 * MAX_BLOCK + 1, MULTIPLIER, dtype=np.uint64)
    powers[0] = 1
    powers = np.cumprod(powers, dtype=np.uint64)
    sums = np.zeros_like(powers)
    sums[1:] = np.cumsum(powers[:-1], dtype=np.uint64) * np.uint64(increment)
    return powers, sums
