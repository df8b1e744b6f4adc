"""Compare every form of UTF-8 decoding over whole sets of inputs, too many for the test suite.

    python fuzz/exhaust_utf8.py [RANDOM_COUNT]

All inputs of one and two bytes, all of three bytes whose lead is E0 to F4, and RANDOM_COUNT
random ones of up to 12 bytes (10 million unless told): `push` and `push_block` give the same
pieces, and joined they are what the C decoder makes of the input. The oracle of the tests,
which is slow, is asked for the pieces of every short input and of one random one in eleven.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from decoding.utf8_oracle import BEGINNINGS, pieces_and_rest
from tinyllm.decoding.utf8 import Utf8Stream

# Characters of one to four bytes.
SCALARS = ((0, 0x80), (0x80, 0x800), (0x800, 0xD800), (0xE000, 0x10000), (0x10000, 0x110000))


def short_inputs() -> Iterator[bytes]:
    """All inputs of one and two bytes."""
    yield from (bytes([first]) for first in range(256))
    yield from map(bytes, product(range(256), repeat=2))


def three_byte_inputs() -> Iterator[bytes]:
    """All inputs of three bytes that begin like a character of three or four bytes."""
    yield from map(bytes, product(range(0xE0, 0xF5), range(256), range(256)))


def random_inputs(count: int, seed: int = 16) -> Iterator[bytes]:
    """Bytes of any value, and sequences built of characters and their beginnings."""
    rng = random.Random(seed)
    beginnings = sorted(BEGINNINGS)
    for number in range(count):
        if number % 2:
            yield rng.randbytes(rng.randrange(1, 13))
        else:
            parts = [chr(rng.randrange(*rng.choice(SCALARS))).encode()]
            parts += [rng.choice(beginnings), rng.randbytes(rng.randrange(4))]
            rng.shuffle(parts)
            yield b"".join(parts)


def check(name: str, inputs: Iterable[bytes], oracle_every: int = 1) -> None:
    """Compare the forms on every input."""
    started, count = time.monotonic(), 0
    for data in inputs:
        stream = Utf8Stream()
        pieces = [stream.push(byte) for byte in data]
        rest = stream.finish()
        blocks = Utf8Stream()
        cut = len(data) // 2
        in_blocks = blocks.push_block(data[:cut]) + blocks.push_block(data[cut:])
        whole = Utf8Stream().push_block(data)
        assert pieces == in_blocks == whole, data.hex()
        assert rest == blocks.finish(), data.hex()
        assert "".join(pieces) + rest == data.decode("utf-8", "replace"), data.hex()
        if count % oracle_every == 0:
            assert (pieces, rest) == pieces_and_rest(data), data.hex()
        count += 1
    print(f"{name}: {count} inputs, all equal, {time.monotonic() - started:.0f} s", flush=True)


def main(random_count: int = 10_000_000) -> None:
    """Run the three sets."""
    check("one and two bytes", short_inputs())
    check("three bytes, lead E0 to F4", three_byte_inputs())
    check("random", random_inputs(random_count), oracle_every=11)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
