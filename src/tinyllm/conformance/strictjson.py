"""Read JSON as strictly as RFC 8259 writes it, and say at which byte it is broken.

The standard library's reader is lenient in four ways that hide a server's faults: it takes NaN
and Infinity, half a surrogate pair, two members of one name, and it reports places in characters.
"""

from __future__ import annotations

import json
import re
from typing import NoReturn

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class JsonBroken(ValueError):
    """These bytes are no JSON text; `offset` is the byte where that shows."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.offset = offset


def read_json(data: bytes) -> object:
    """Return the value of one whole JSON text. Raises JsonBroken."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JsonBroken(f"not UTF-8 ({error.reason})", error.start) from None
    try:
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique)
        half_a_pair = has_lone_surrogate(value)
    except json.JSONDecodeError as error:
        raise JsonBroken(error.msg, len(text[: error.pos].encode())) from None
    except (ValueError, RecursionError) as error:  # a rule below, too many digits, too deep
        raise JsonBroken(str(error), 0) from None
    if half_a_pair:
        raise JsonBroken("half of a surrogate pair: not a character", data.find(b"\\u"))
    return value


def has_lone_surrogate(value: object) -> bool:
    """Whether any string in the value holds a code point that is no character."""
    if isinstance(value, str):
        return _LONE_SURROGATE.search(value) is not None
    if isinstance(value, dict):
        return any(has_lone_surrogate(part) for pair in value.items() for part in pair)
    return isinstance(value, list) and any(map(has_lone_surrogate, value))


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object has two members of one name")
    return members
