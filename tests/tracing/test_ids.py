"""Random ids: never all zero, never twice, also not across a fork."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tinyllm.tracing import ids, random_hex, random_u64


@pytest.mark.parametrize("size", [1, 7, 8, 9, 15, 16, 17, 40])
def test_random_hex_has_two_digits_per_byte(size: int) -> None:
    for _ in range(200):
        digits = random_hex(size)
        assert re.fullmatch(f"[0-9a-f]{{{2 * size}}}", digits)
        assert digits.strip("0")


def test_random_hex_needs_a_byte() -> None:
    with pytest.raises(ValueError, match="at least one"):
        random_hex(0)


def test_ids_never_repeat() -> None:
    assert len({random_hex(8) for _ in range(20_000)}) == 20_000
    assert len({random_u64() for _ in range(20_000)}) == 20_000


def test_random_u64_uses_all_64_bits() -> None:
    seen = 0
    for _ in range(2000):
        value = random_u64()
        assert 0 < value < 2**64
        seen |= value
    assert seen == 2**64 - 1


@pytest.mark.parametrize("size", [1, 8, 16])
def test_all_zero_ids_are_drawn_again(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    drawn = iter([0, 0, 0xAB])
    monkeypatch.setattr(ids, "_draw", lambda bits: next(drawn))
    assert random_hex(size) == "00" * (size - 1) + "ab"


def test_a_u64_is_never_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([0, 7])
    monkeypatch.setattr(ids, "_draw", lambda bits: next(drawn))
    assert random_u64() == 7


FORK = """
import os
from tinyllm.tracing import random_hex
random_hex(8)
reader, writer = os.pipe()
if os.fork() == 0:
    os.write(writer, random_hex(8).encode())
    os._exit(0)
os.wait()
print(os.read(reader, 16).decode() in {random_hex(8) for _ in range(1024)})
"""


def test_a_forked_child_has_ids_of_its_own() -> None:
    # In a process of its own: pytest's has threads, which do not go with a fork.
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
