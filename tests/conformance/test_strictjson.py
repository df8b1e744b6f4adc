"""The strict JSON reader against the corpus, and the bytes it points at."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tinyllm.conformance.strictjson import JsonBroken, read_json

DATA = Path(__file__).parents[1] / "data" / "json_parsing.json"
CASES = [case for case in json.loads(DATA.read_text())["cases"] if case["expect"] != "either"]
DUPLICATES = ("y_object_duplicated_key", "y_object_duplicated_key_and_value")  # refused here


def text_of(case: dict[str, Any]) -> bytes:
    if "bytes_base64" in case:
        return base64.b64decode(case["bytes_base64"])
    repeat = case["repeat"]
    unit, tail = base64.b64decode(repeat["unit_base64"]), base64.b64decode(repeat["tail_base64"])
    return unit * int(repeat["times"]) + tail


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_the_corpus_is_taken_or_refused_as_the_standard_says(case: dict[str, Any]) -> None:
    data = text_of(case)
    if case["expect"] == "accept" and case["name"] not in DUPLICATES:
        assert read_json(data) == json.loads(data)
        return
    with pytest.raises(JsonBroken):
        read_json(data)


@pytest.mark.parametrize(
    ("data", "offset"),
    [
        (b'{"a":\xff}', 5),
        ('{"é":x}'.encode(), 6),
        (b'["a\nb"]', 3),
        (b"[1] 2", 4),
    ],
)
def test_the_offset_is_that_of_the_byte(data: bytes, offset: int) -> None:
    with pytest.raises(JsonBroken) as broken:
        read_json(data)
    assert broken.value.offset == offset


@pytest.mark.parametrize("data", [b'"\\ud83d"', b'{"\\udc00":1}', b'[["\\ud83d\\u0041"]]'])
def test_half_a_surrogate_pair_is_no_character(data: bytes) -> None:
    with pytest.raises(JsonBroken, match="surrogate"):
        read_json(data)


@pytest.mark.parametrize("data", [b"NaN", b"[-Infinity]", b'{"a":1,"a":2}', b"[" * 100_000])
def test_what_the_standard_library_lets_pass_is_refused(data: bytes) -> None:
    with pytest.raises(JsonBroken):
        read_json(data)
