"""Random ids: never all zero, drawn from the operating system a block at a time.

W3C Trace Context (section 3.2.2.3) and OpenTelemetry call an all-zero id invalid. One system
call per id would cost more than all else that a span needs, so a block of random bytes is cut
into pieces, and an id is made of as many pieces as it needs. `list.pop` is atomic, so no
piece is given out twice, whichever threads ask. A forked child must not repeat its parent's
ids: it begins with an empty pool.
"""

from __future__ import annotations

import os

PIECE_BYTES = 8  # a span id is one piece, a trace id two
BLOCK_BYTES = 512 * PIECE_BYTES

_pool: list[str] = []
os.register_at_fork(after_in_child=_pool.clear)


def random_span_id() -> str:
    """Return 16 random hex digits, not all zero, that were never given out before."""
    while True:
        try:
            return _pool.pop()
        except IndexError:
            _pool.extend(_fresh_pieces())


def random_trace_id() -> str:
    """Return 32 random hex digits, not all zero."""
    return random_span_id() + random_span_id()


def random_u64() -> int:
    """Return a random integer, 1 to 2^64 - 1."""
    return int(random_span_id(), 16)


def random_hex(size: int) -> str:
    """Return `size` random bytes (1 or more) as lower-case hex digits, never all zero."""
    if size == 2 * PIECE_BYTES:  # nearly every caller wants this many, or half
        return random_trace_id()
    if size == PIECE_BYTES:
        return random_span_id()
    if size < 1:
        raise ValueError(f"random_hex of {size} bytes: it needs at least one")
    pieces = -(-size // PIECE_BYTES)
    while not (digits := "".join(random_span_id() for _ in range(pieces))[: 2 * size]).strip("0"):
        pass  # a piece is never all zero, but a part of one may be
    return digits


def _fresh_pieces() -> list[str]:
    digits = os.urandom(BLOCK_BYTES).hex()
    width = 2 * PIECE_BYTES
    pieces = [digits[start : start + width] for start in range(0, len(digits), width)]
    return [piece for piece in pieces if piece.strip("0")]
