"""Spans as a collector receives them, read as strictly as collectors read them.

Two kinds of trouble are told apart. A value of the wrong form makes a collector refuse the whole
request: DecodeError, with the place (place.py). A span that is well formed but of no use to a
backend has a `rejection`; one that is merely odd has a `remark`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, field

from tinyllm.tracing.receiver.place import Place, is_base64, kind_of
from tinyllm.wire.jsontext import parse_json

_NON_FINITE = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


@dataclass(slots=True)
class ReceivedSpan:
    """What one span says, whoever sent it."""

    trace_id: str  # hex, lower case
    span_id: str
    parent_id: str  # "" for a root
    name: str
    service: str
    start: int  # nanoseconds since 1970
    end: int
    kind: int = 0
    error: bool = False
    status_message: str = ""
    attributes: dict[str, object] = field(default_factory=dict)
    events: list[tuple[int, str]] = field(default_factory=list)  # time, name

    @property
    def rejection(self) -> str | None:
        """Why no backend can use the span, or None."""
        if not self.trace_id.strip("0"):
            return "the trace id is missing or all zero"
        if not self.span_id.strip("0"):
            return "the span id is missing or all zero"
        return None

    @property
    def remark(self) -> str | None:
        """What is odd about the span though it is taken, or None."""
        if not self.name:
            return "the span has no name"
        if self.start == 0 or self.end == 0:
            return "the span has no start or no end"
        if self.end < self.start:
            return "the span ends before it starts"
        if self.parent_id == self.span_id:
            return "the span is its own parent"
        if any(not self.start <= moment <= self.end for moment, _ in self.events):
            return "an event lies outside of its span"
        return None


def decode_json(body: bytes) -> list[ReceivedSpan]:
    """Return the spans of an ExportTraceServiceRequest; raise ValueError, which names the place."""
    return decode_message(parse_json(body))


def decode_message(message: object) -> list[ReceivedSpan]:
    """Return the spans of the message's JSON form; whoever parsed it has bounded its depth."""
    return [
        _span(span.well_spelt(), service)
        for resource_spans in Place(message).well_spelt().members("resourceSpans")
        for service in [_service(resource_spans.well_spelt())]
        for scope_spans in resource_spans.members("scopeSpans")
        for span in scope_spans.well_spelt().members("spans")
    ]


def _service(resource_spans: Place) -> str:
    attributes = _attributes(resource_spans.member("resource"))
    name = attributes.get("service.name")
    return name if isinstance(name, str) and name else "unknown_service"


def _span(place: Place, service: str) -> ReceivedSpan:
    status = place.member("status")
    place.member("traceState").text()
    place.member("flags").integer(0, 2**32)
    for link in place.members("links"):
        link.member("traceId").hex(32)
        link.member("spanId").hex(16)
    return ReceivedSpan(
        trace_id=place.member("traceId").hex(32),
        span_id=place.member("spanId").hex(16),
        parent_id=place.member("parentSpanId").hex(16),
        name=place.member("name").text(),
        service=service,
        start=_time(place.member("startTimeUnixNano")),
        end=_time(place.member("endTimeUnixNano")),
        kind=place.member("kind").integer(0, 2**31),
        error=status.member("code").integer(0, 2**31) == 2,
        status_message=status.member("message").text(),
        attributes=_attributes(place),
        events=[_event(event) for event in place.members("events")],
    )


def _event(place: Place) -> tuple[int, str]:
    _attributes(place)  # not shown, but a collector reads them
    return _time(place.member("timeUnixNano")), place.member("name").text()


def _time(place: Place) -> int:
    return place.integer(0, 2**64)


def _attributes(place: Place) -> dict[str, object]:
    return {
        attribute.member("key").text(): _any_value(attribute.member("value"))
        for attribute in place.members("attributes")
    }


def _any_value(place: Place) -> object:
    """Return what an AnyValue holds: the one member that is set."""
    held = {kind: found for kind in _READERS if (found := place.member(kind)).value is not None}
    if len(held) > 1:
        raise place.fail(f"{' and '.join(held)} at once")
    return next((_READERS[kind](found) for kind, found in held.items()), None)


def _boolean(place: Place) -> bool:
    if not isinstance(place.value, bool):
        raise place.fail(f"{kind_of(place.value)}, not a boolean")
    return place.value


def _double(place: Place) -> float:
    value = place.value
    if isinstance(value, str) and value in _NON_FINITE:
        return _NON_FINITE[value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise place.fail(f"{kind_of(value)}, not a number")
    return float(value)


def _array(place: Place) -> list[object]:
    return [_any_value(element) for element in place.members("values")]


def _key_values(place: Place) -> dict[str, object]:
    return {
        item.member("key").text(): _any_value(item.member("value"))
        for item in place.members("values")
    }


def _bytes(place: Place) -> bytes:
    text = place.text()
    if not is_base64(text):
        raise place.fail("not base64")
    return base64.b64decode(text)


_READERS: dict[str, Callable[[Place], object]] = {
    "stringValue": Place.text,
    "boolValue": _boolean,
    "intValue": lambda place: place.integer(-(2**63), 2**63),
    "doubleValue": _double,
    "arrayValue": _array,
    "kvlistValue": _key_values,
    "bytesValue": _bytes,
}
