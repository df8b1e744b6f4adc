"""Any bytes give a JSON value or a JsonError; a value survives writing and reading."""

from __future__ import annotations

import json
import math
import re

from tinyllm.wire import Json, JsonError, dump_json, json_string, parse_json

# Why a text that the standard library reads may be refused; the first words of the message.
STRICTER = re.compile(r"a lone surrogate|nested over|the number|-?(NaN|Infinity)|starts with")


def check(data: bytes) -> None:
    """The bytes are a JSON text, and as text a string to write."""
    check_text(data)
    text = data.decode("utf-8", "replace")
    written = json_string(text)
    assert parse_json(written) == text
    assert re.search("[\x00-\x1f\x7f\x85\u2028\u2029]", written) is None


def check_text(data: bytes) -> None:
    """Agree with the standard library's reader, but for the refusals that are ours."""
    value, refusal = read(data)
    if refusal:
        assert STRICTER.match(refusal) or not is_read_by_json(data), refusal
        return
    assert same(value, json.loads(data))
    written = dump_json(value)
    assert same(parse_json(written), value)
    written.encode()  # no surrogate is left alone
    again, refusal = read(data, reject_duplicates=True)
    assert same(again, value) or "stands twice" in refusal


def read(data: bytes, reject_duplicates: bool = False) -> tuple[Json, str]:
    """Return the value and "", or None and why the text was refused."""
    try:
        return parse_json(data, reject_duplicates=reject_duplicates), ""
    except JsonError as error:
        return None, str(error)


def is_read_by_json(data: bytes) -> bool:
    """Whether the standard library reads the bytes as UTF-8 JSON."""
    try:
        json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return False
    return True


def same(one: object, other: object) -> bool:
    """Equal, and of equal types: 1 is not 1.0, and -0.0 is not 0.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return one == other
