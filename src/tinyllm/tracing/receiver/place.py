"""A JSON message read with its finger on the line: a value, and where it stands.

Every refusal names the place and the rule: `resourceSpans[0].scopeSpans[0].spans[3].traceId: 31
hex digits, not 32`. As in proto3's JSON mapping, `null` stands for an absent field, an unknown
field is passed over, and a 64-bit integer may be a string or a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# What other mappings or older versions write, and what OTLP/HTTP JSON has instead. Passed over as
# unknown fields, they would give an empty trace and no reason.
MISSPELT = {
    "resource_spans": "resourceSpans",
    "scope_spans": "scopeSpans",
    "instrumentationLibrarySpans": "scopeSpans",
    "trace_id": "traceId",
    "span_id": "spanId",
    "parent_span_id": "parentSpanId",
    "start_time_unix_nano": "startTimeUnixNano",
    "end_time_unix_nano": "endTimeUnixNano",
}

_HEX = re.compile("[0-9a-fA-F]*")  # OTLP: ids are hex, "case-insensitive"
_BASE64 = re.compile("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_INTEGER = re.compile("-?[0-9]{1,20}")


class DecodeError(ValueError):
    """A body that a collector refuses whole; the message names the place and the rule."""


class Place:
    """A value and where it stands in the message."""

    __slots__ = ("_key", "_parent", "value")

    def __init__(self, value: object, parent: Place | None = None, key: str = "") -> None:
        self.value = value
        self._parent = parent
        self._key = key

    @property
    def path(self) -> str:
        """The way from the message's root to here."""
        above = "" if self._parent is None else self._parent.path
        return f"{above}{self._key}".lstrip(".")

    def fail(self, problem: str) -> DecodeError:
        """Return the error that says what is wrong here."""
        return DecodeError(f"{self.path or 'the body'}: {problem}")

    def member(self, key: str) -> Place:
        """Return a member of the object here; a null or missing one has the value None."""
        if self.value is None:
            return Place(None, self, f".{key}")
        if not isinstance(self.value, dict):
            raise self.fail(f"{kind_of(self.value)}, not an object")
        return Place(self.value.get(key), self, f".{key}")

    def members(self, key: str) -> Iterator[Place]:
        """Yield the elements of a member that is an array."""
        place = self.member(key)
        if place.value is None:
            return
        if not isinstance(place.value, list):
            raise place.fail(f"{kind_of(place.value)}, not an array")
        for number, element in enumerate(place.value):
            yield Place(element, place, f"[{number}]")

    def well_spelt(self) -> Place:
        """Return the place; raise DecodeError if a member has another mapping's name."""
        if isinstance(self.value, dict):
            for wrong in self.value.keys() & MISSPELT.keys():
                raise self.fail(f"{wrong!r} is no field; OTLP/HTTP JSON has {MISSPELT[wrong]!r}")
        return self

    def text(self) -> str:
        """Return the string here, "" for none."""
        if self.value is None:
            return ""
        if not isinstance(self.value, str):
            raise self.fail(f"{kind_of(self.value)}, not a string")
        return self.value

    def integer(self, low: int, high: int) -> int:
        """Return the integer here, 0 for none: a number, or a string of digits."""
        value = 0 if self.value is None else self.value
        if isinstance(value, str) and _INTEGER.fullmatch(value):
            value = int(value)
        elif isinstance(value, float) and value.is_integer():
            value = int(value)  # proto3's mapping: 1.0 and 1e3 are integers too
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.fail(f"{kind_of(value)}, not an integer")
        if not low <= value < high:
            raise self.fail(f"{value} is out of range")
        return value

    def hex(self, digits: int) -> str:
        """Return the id here in lower case, "" for none."""
        text = self.text()
        if not _HEX.fullmatch(text):
            hint = "; base64, as proto3 writes bytes elsewhere?" if is_base64(text) else ""
            raise self.fail(f"{text[:40]!r} is not hex{hint}")
        if text and len(text) != digits:
            raise self.fail(f"{len(text)} hex digits, not {digits}")
        return text.lower()


def is_base64(text: str) -> bool:
    """Return whether the text is base64 of whole bytes (RFC 4648, section 4)."""
    return _BASE64.fullmatch(text) is not None


def kind_of(value: object) -> str:
    """Return what JSON calls a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
    return "an object"
