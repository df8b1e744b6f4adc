"""Random ids: never all zero, from a generator that the operating system seeds.

W3C Trace Context (section 3.2.2.3) and OpenTelemetry call an all-zero id invalid. An id must be
unlike all others and need not be a secret, so it is drawn from a generator of our own: a quarter
of a microsecond, where a system call takes three times as long. One drawing is one call into C,
so no two threads get the same id. A forked child must not repeat its parent's: it seeds anew.
"""

from __future__ import annotations

import os
import random

SPAN_ID_BYTES = 8
TRACE_ID_BYTES = 16

_generator = random.Random()
_draw = _generator.getrandbits
os.register_at_fork(after_in_child=_generator.seed)


def random_hex(size: int) -> str:
    """Return `size` random bytes (1 or more) as lower-case hex digits, never all zero."""
    if size < 1:
        raise ValueError(f"random_hex of {size} bytes: it needs at least one")
    while not (number := _draw(8 * size)):
        pass
    return number.to_bytes(size, "big").hex()


def many_random_hex(size: int, count: int) -> list[str]:
    """Return `count` ids of `size` random bytes (8 or more), none of them all zero."""
    width = 2 * size
    while True:
        digits = _generator.randbytes(size * count).hex()
        ids = [digits[start : start + width] for start in range(0, width * count, width)]
        if "0" * width not in ids:
            return ids


def random_u64() -> int:
    """Return a random integer, 1 to 2^64 - 1."""
    while not (number := _draw(64)):
        pass
    return number
