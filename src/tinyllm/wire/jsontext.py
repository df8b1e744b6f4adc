"""JSON as text (RFC 8259): the standard library's C reader and writer behind a strict front.

The C reader takes more than JSON has: NaN and Infinity, lone surrogates, numbers that overflow to
infinity, and texts so deep that it fails with RecursionError. What it would let through is refused
here, by checks that cost next to nothing for a text that has none of it: depth cannot be exceeded
by a text with few brackets, and a lone surrogate needs a backslash-u escape.

The writer escapes what could break a line or hide in a log: the quotation mark, the backslash, all
below U+0020, and U+007F, U+0085, U+2028, U+2029; everything else stays as it is, for UTF-8.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import accumulate
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any

MAX_DEPTH = 128  # arrays and objects inside each other; no real request has more than a few

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]

_WHITE_SPACE = " \t\n\r"
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_NO_BRACKETS = bytes(set(range(128)) - set(b"[]{}"))
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
# A text in which every surrogate escape is half of a pair, high half first.
_PAIRED = re.compile(
    r"(?:[^\\]++|\\[^u]|\\u(?![dD][89a-fA-F])|\\u[dD][89abAB]..\\u[dD][c-fC-F]..)*+", re.DOTALL
)
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


class JsonError(ValueError):
    """A text that is not one JSON value, or a value that JSON cannot carry."""


def parse_json(
    text: bytes | str,
    *,
    reject_duplicates: bool = False,
    allow_overflow: bool = False,
    max_depth: int = MAX_DEPTH,
) -> Any:  # noqa: ANN401  (the value has whatever shape the text has)
    """Return the value of one whole JSON text; bytes are UTF-8.

    Numbers with a point or an exponent are float, others int. Of two equal keys the last wins,
    or with `reject_duplicates` the text is refused. A number too large for a float is refused, or
    with `allow_overflow` an infinity, for callers that check their own ranges and ignore the rest.
    Raises JsonError, and nothing else.
    """
    if not isinstance(text, str):
        text = _decode(text)
    elif not text.isascii():
        _check_characters(text)
    if text.count("[") + text.count("{") > max_depth:
        _check_depth(text, max_depth)
    if "\\u" in text and _SURROGATE_ESCAPE.search(text) is not None:
        _check_pairs(text)
    decoder = _DECODERS[reject_duplicates, allow_overflow]
    try:
        return decoder.decode(text)
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(
            " at"
        )  # some messages end where a position was meant to follow
        raise JsonError(f"{what} at line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise JsonError(f"nested too deep for the stack, under {max_depth} levels") from None
    except JsonError:
        raise
    except ValueError as error:  # int() refuses thousands of digits, whose cost is quadratic
        raise JsonError(f"a number cannot be read: {error}") from None


def json_string(text: str) -> str:
    """Return the text as a JSON string, quoted and escaped.

    Raises JsonError for a lone surrogate, which UTF-8 cannot carry.
    """
    if text.isascii():  # nearly all; then this one leaves nothing
        quoted: str = encode_basestring_ascii(text)
        return quoted
    return _left_by_encoder().sub(_escape, encode_basestring(text))


def dump_json(value: Json) -> str:
    """Return the value as JSON text, without white space.

    Raises JsonError for NaN, infinity, a lone surrogate or a value too deep or inside itself, and
    TypeError for an object that has no JSON form.
    """
    try:
        text = _ENCODER.encode(value)
    except (ValueError, RecursionError) as error:
        raise JsonError(f"not a JSON value: {error}") from None
    if text.isascii() and "\x7f" not in text:
        return text
    return _left_by_encoder().sub(_escape, text)  # all of them can stand inside strings alone


@cache  # made when it is first needed: that takes a thirtieth of the time of this import
def _left_by_encoder() -> re.Pattern[str]:
    """Return what finds the characters that json's encoder leaves as they are, and we do not."""
    return re.compile("[\x7f\x85\u2028\u2029\ud800-\udfff]")


def _decode(data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JsonError(f"not UTF-8: {error.reason} at byte {error.start}") from None
    if text.startswith("\ufeff"):
        raise JsonError("starts with a byte order mark (RFC 8259, section 8.1)")
    return text


def _check_characters(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise JsonError(f"a lone surrogate at character {error.start}") from None
    if text.startswith("\ufeff"):
        raise JsonError("starts with a byte order mark (RFC 8259, section 8.1)")


def _check_depth(text: str, max_depth: int) -> None:
    """Follow the brackets outside strings; of a text that is no JSON the depth does not matter."""
    brackets = _STRING.sub("", text).encode("ascii", "ignore").translate(None, _NO_BRACKETS)
    if max(accumulate(map(_STEP.__getitem__, brackets)), default=0) > max_depth:
        raise JsonError(f"nested over {max_depth} levels")


def _check_pairs(text: str) -> None:
    """RFC 8259, section 7: a character beyond U+FFFF is a pair of escapes; half of one is none."""
    paired = _PAIRED.match(text)
    if paired is not None and paired.end() < len(text):
        raise JsonError(f"a lone surrogate escape at character {paired.end()}")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise JsonError(f"the number {digits[:40]} is out of range")
    return value


def _refuse_constant(name: str) -> None:
    raise JsonError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise JsonError(f"the key {json_string(key)} stands twice in an object")
        members[key] = value
    return members


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if 0xD800 <= code <= 0xDFFF:
        raise JsonError(f"a lone surrogate U+{code:04X} has no UTF-8 form")
    return f"\\u{code:04x}"


# By (reject_duplicates, allow_overflow).
_DECODERS = {
    (unique, overflow): json.JSONDecoder(
        parse_float=None if overflow else _finite,
        parse_constant=_refuse_constant,
        object_pairs_hook=_unique if unique else None,
    )
    for unique in (False, True)
    for overflow in (False, True)
}
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
