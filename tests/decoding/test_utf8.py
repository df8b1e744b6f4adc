"""Text from bytes, piece by piece: the corpus, an oracle, the C decoder, and blocks of any size."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest

from decoding.utf8_oracle import pieces_and_rest
from tinyllm.decoding.tokenizer import ByteTokenizer
from tinyllm.decoding.utf8 import Utf8Stream

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "data" / "utf8.json").read_text()
)["cases"]

# The first and last byte of every range of Unicode's table 3-7, and their neighbours.
BOUNDARIES = bytes.fromhex("00417f808f909fa0bfc0c1c2dfe0e1ecedeeeff0f1f3f4f5ff")


def pushed(data: bytes) -> tuple[list[str], str]:
    stream = Utf8Stream()
    return [stream.push(byte) for byte in data], stream.finish()


def pushed_in_blocks(data: bytes, cuts: list[int]) -> tuple[list[str], str]:
    stream = Utf8Stream()
    pieces = []
    for begin, end in itertools.pairwise([0, *cuts, len(data)]):
        pieces += stream.push_block(data[begin:end])
    return pieces, stream.finish()


def check_all_forms(data: bytes) -> None:
    expected = pieces_and_rest(data)
    assert pushed(data) == expected, data.hex()
    assert pushed_in_blocks(data, []) == expected, data.hex()
    for cut in range(1, len(data)):
        assert pushed_in_blocks(data, [cut]) == expected, (data.hex(), cut)
    pieces, rest = expected
    assert "".join(pieces) + rest == data.decode("utf-8", "replace"), data.hex()


def test_utf8_stream_holds_back_incomplete_sequences() -> None:
    stream = Utf8Stream()
    assert [stream.push(byte) for byte in b"\xc3\xa9\xff"] == ["", "é", "\ufffd"]
    assert stream.finish() == ""
    assert [stream.push(byte) for byte in b"\xe2\x82"] == ["", ""]
    assert stream.finish() == "\ufffd"
    assert stream.finish() == ""


def test_doomed_sequence_does_not_wait() -> None:
    """ED A0 would begin a surrogate: CPython's incremental decoder waits for a third byte."""
    assert pushed(b"\xed\xa0\x80") == (["", "\ufffd\ufffd", "\ufffd"], "")
    assert Utf8Stream().push_block(b"\xed\xa0\x80") == ["", "\ufffd\ufffd", "\ufffd"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_corpus(case: dict[str, Any]) -> None:
    data = bytes.fromhex(case["bytes_hex"])
    assert pushed(data) == (case["push"], case["finish"])
    assert ByteTokenizer().decode(data) == case["text"]
    check_all_forms(data)


def test_all_inputs_of_one_byte_and_of_two_but_for_ascii() -> None:
    """fuzz/exhaust_utf8.py has all of two bytes, and of three with a lead of E0 to F4."""
    for first in range(256):
        assert pushed(bytes([first])) == pieces_and_rest(bytes([first]))
    for first in range(0x7F, 256):
        for second in [0x41, *range(0x7F, 256)]:
            data = bytes([first, second])
            expected = pieces_and_rest(data)
            assert pushed(data) == expected == pushed_in_blocks(data, [])
            assert "".join(expected[0]) + expected[1] == data.decode("utf-8", "replace")


def test_all_inputs_of_three_boundary_bytes() -> None:
    for sequence in itertools.product(BOUNDARIES, repeat=3):
        data = bytes(sequence)
        assert pushed(data) == pieces_and_rest(data) == pushed_in_blocks(data, [1])


def test_random_sequences_of_boundary_bytes() -> None:
    rng = random.Random(16)
    for _ in range(800):
        check_all_forms(bytes(rng.choices(BOUNDARIES, k=rng.randrange(4, 9))))


TEXTS = {
    "one byte": "plain text\n\0\x7f",
    "two bytes": "größere Äpfel, ещё этих",
    "three bytes": "我能吞下玻璃 \ufeff\ufffd\uffff \ud7ff\ue000",
    "four bytes": "😀 \U00010000\U0010ffff",
    "mixed": "a é \u0800 😀 z",
}


@pytest.mark.parametrize("name", TEXTS)
def test_valid_text_comes_back_however_it_is_cut(name: str) -> None:
    data = TEXTS[name].encode()
    pieces, rest = pushed(data)
    assert "".join(pieces) == TEXTS[name]
    assert rest == ""
    for size in range(1, len(data) + 1):
        assert pushed_in_blocks(data, list(range(size, len(data), size))) == (pieces, "")


def test_broken_text_cut_anywhere() -> None:
    """Characters among stray bytes and beginnings that nothing goes on with, in random blocks."""
    rng = random.Random(4)
    parts = [*(text.encode() for text in TEXTS.values()), b"\xe2\x82", b"\xf0\x9f\x98", b"\xc3"]
    parts += [b"\x80", b"\xff", b"\xed\xa0", b"\xf4\x90", b"\xc0\xaf"]
    for _ in range(300):
        data = b"".join(rng.choices(parts, k=6))
        cuts = sorted(rng.sample(range(len(data)), k=min(5, len(data))))
        assert pushed_in_blocks(data, cuts) == pushed(data) == pieces_and_rest(data)


def test_empty_block_gives_nothing_and_changes_nothing() -> None:
    stream = Utf8Stream()
    stream.push(0xC3)
    assert stream.push_block(b"") == []
    assert stream.push(0xA9) == "é"
