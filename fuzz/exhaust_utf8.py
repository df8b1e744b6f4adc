"""Compare every form of UTF-8 decoding over whole sets of inputs, too many for the test suite.

    python fuzz/exhaust_utf8.py [RANDOM_COUNT]

All inputs of one and two bytes, all of three bytes whose lead is E0 to F4, and RANDOM_COUNT
random ones of up to 12 bytes (10 million unless told): `push` and `push_block` give the same
pieces, and joined they are what the C decoder makes of the input. The oracle of the tests,
which is slow, is asked for the pieces of every short input and of one random one in ten.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import islice, product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from decoding.utf8_oracle import BEGINNINGS, pieces_and_rest
from tinyllm.decoding.utf8 import Utf8Stream

BATCH = 1000
ORACLE_EVERY = 10  # batches
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


def check(name: str, inputs: Iterable[bytes]) -> None:
    """Compare the forms on every input by itself, up to its end."""
    started, count = time.monotonic(), 0
    for data in inputs:
        stream = Utf8Stream()
        pieces = [stream.push(byte) for byte in data]
        rest = stream.finish()
        blocks = Utf8Stream()
        cut = len(data) // 2
        in_blocks = blocks.push_block(data[:cut]) + blocks.push_block(data[cut:])
        assert pieces == in_blocks == Utf8Stream().push_block(data), data.hex()
        assert rest == blocks.finish(), data.hex()
        assert (pieces, rest) == pieces_and_rest(data), data.hex()
        assert "".join(pieces) + rest == data.decode("utf-8", "replace"), data.hex()
        count += 1
    report(name, count, started)


def check_batches(name: str, inputs: Iterator[bytes]) -> None:
    """Compare the forms on many inputs at once, a NUL after each: it ends whatever waits."""
    started, count = time.monotonic(), 0
    while batch := list(islice(inputs, BATCH)):
        data = b"".join(each + b"\0" for each in batch)
        pieces = list(map(Utf8Stream().push, data))
        blocks, cut = Utf8Stream(), len(data) // 2
        assert pieces == blocks.push_block(data[:cut]) + blocks.push_block(data[cut:]), data.hex()
        assert "".join(pieces) == data.decode("utf-8", "replace"), data.hex()
        if count % (ORACLE_EVERY * BATCH) == 0:
            assert (pieces, "") == pieces_and_rest(data), data.hex()
        count += len(batch)
    report(name, count, started)


def report(name: str, count: int, started: float) -> None:
    """Print what was compared."""
    print(f"{name}: {count} inputs, all equal, {time.monotonic() - started:.0f} s", flush=True)


def main(random_count: int = 10_000_000) -> None:
    """Run the three sets."""
    check("one and two bytes", short_inputs())
    check("three bytes, lead E0 to F4", three_byte_inputs())
    check_batches("random", random_inputs(random_count))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
