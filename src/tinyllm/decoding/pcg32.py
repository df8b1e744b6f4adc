"""PCG32 (PCG-XSH-RR 64/32): the one source of randomness, so that a seed repeats its text.

    s' = s * a + c (mod 2^64)    out = rotr32((((s >> 18) ^ s) >> 27) mod 2^32, s >> 59)

The state after n steps has a closed form, s_n = a^n s + c (a^n - 1)/(a - 1), which gives both
`advance` in O(log n) and the block form: with the powers and the sums tabulated once, numpy
computes all states of a block in one multiplication and one addition of wrapping uint64. The
block form makes the same numbers as the scalar one; which is used depends on the count alone.
numpy is imported by the first block, not with this module: a server must start at once.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MULTIPLIER = 6364136223846793005
STREAM = 54  # the second seeding word of every request
MASK64 = 2**64 - 1
MASK32 = 2**32 - 1
UNIT = 2.0**-53  # a uniform is a 53-bit integer times this
BLOCK = 4096  # uniforms per table: 128 KiB of powers and sums
SCALAR_LIMIT = 24  # up to here the scalar loop is faster than the block form (benchmarks)


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

    def next_u32(self) -> int:
        """Return the next 32 random bits."""
        state = self._state
        self._state = (state * MULTIPLIER + self._increment) & MASK64
        word = (((state >> 18) ^ state) >> 27) & MASK32
        rotation = state >> 59
        return (word >> rotation | word << (32 - rotation)) & MASK32

    def uniform(self) -> float:
        """Return a float in [0, 1) made of 53 random bits, two outputs."""
        high, low = self.next_u32(), self.next_u32()
        return ((high >> 5) * 2**26 + (low >> 6)) * UNIT

    def uniforms(self, count: int) -> list[float]:
        """Return the next `count` uniforms, the same as that many calls of `uniform`."""
        if count <= SCALAR_LIMIT:
            return [self.uniform() for _ in range(count)]
        values: list[float] = []
        while len(values) < count:
            values += self._block(min(count - len(values), BLOCK))
        return values

    def advance(self, count: int) -> None:
        """Skip `count` outputs of 32 bits in O(log count) steps; negative counts go back."""
        factor, constant = _jump(count & MASK64, self._increment)
        self._state = (factor * self._state + constant) & MASK64

    def _block(self, count: int) -> list[float]:
        """Return `count` <= BLOCK uniforms, computed side by side."""
        import numpy as np

        powers, sums = _tables()
        u64 = np.uint64
        outputs = 2 * count
        state = powers[:outputs] * u64(self._state) + sums[:outputs] * u64(self._increment)
        self.advance(outputs)
        word = (((state >> u64(18)) ^ state) >> u64(27)) & u64(MASK32)
        word = (word | word << u64(32)) >> (state >> u64(59))  # the low half is rotated
        high, low = word[0::2] & u64(MASK32), word[1::2] & u64(MASK32)
        mantissa = (high >> u64(5)) << u64(26) | low >> u64(6)
        values: list[float] = (mantissa * UNIT).tolist()
        return values


def _jump(count: int, increment: int) -> tuple[int, int]:
    """Return f and k such that `count` steps take s to f s + k (Brown's method, by squaring)."""
    factor, constant = 1, 0
    step_factor, step_constant = MULTIPLIER, increment
    while count:
        if count & 1:
            factor = factor * step_factor & MASK64
            constant = (constant * step_factor + step_constant) & MASK64
        step_constant = (step_factor + 1) * step_constant & MASK64
        step_factor = step_factor * step_factor & MASK64
        count >>= 1
    return factor, constant


@cache
def _tables() -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return a^n and (a^n - 1)/(a - 1) mod 2^64 for n from 0 to 2 * BLOCK - 1."""
    import numpy as np

    powers, sums = [1], [0]
    for _ in range(2 * BLOCK - 1):
        sums.append((sums[-1] + powers[-1]) & MASK64)
        powers.append(powers[-1] * MULTIPLIER & MASK64)
    return np.array(powers, dtype=np.uint64), np.array(sums, dtype=np.uint64)
