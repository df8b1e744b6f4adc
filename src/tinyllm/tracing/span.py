"""A span and its OTLP/HTTP JSON body: the readable reference form.

`otlp_json` builds nested dictionaries as the protocol's messages nest, and prints them. The
exporter writes the same text a faster way (encoding.py); a test holds the two together.

OTLP's JSON mapping (opentelemetry.io/docs/specs/otlp, "JSON Protobuf Encoding") is proto3's,
with these points: ids are lower-case hex and not base64, 64-bit integers are decimal strings,
enums are numbers, keys are lowerCamelCase.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from tinyllm import __version__
from tinyllm.wire.jsontext import Json, dump_json

AttrValue = str | int | float | bool | list[str]

KIND_SERVER = 2  # trace.proto, SpanKind
STATUS_ERROR = 2  # trace.proto, Status.StatusCode
SCOPE = {"name": "tinyllm", "version": __version__}

# trace.proto, SpanFlags: the low eight bits are the W3C trace flags of this span's context, bit 8
# says that bit 9 is known, and bit 9 that the parent is in another process.
SAMPLED = 0x01
RANDOM_TRACE_ID = 0x02  # W3C Trace Context level 2: the trace id was drawn at random
ROOT_FLAGS = 0x100 | RANDOM_TRACE_ID | SAMPLED
REMOTE_PARENT_FLAGS = 0x300 | SAMPLED

INT64_RANGE = range(-(2**63), 2**63)


@dataclass(slots=True)
class SpanEvent:
    """Something that happened at one moment of a span."""

    name: str
    unix_nano: int


@dataclass(slots=True)
class Span:
    """One operation of one process: what OTLP calls a span of kind SERVER."""

    trace_id: str  # 32 lower-case hex digits
    span_id: str  # 16 of them
    parent_span_id: str | None
    name: str
    start_unix_nano: int
    end_unix_nano: int
    attributes: list[tuple[str, AttrValue]] = field(default_factory=list)
    error: bool = False
    events: list[SpanEvent] = field(default_factory=list)
    trace_state: str = ""
    flags: int = ROOT_FLAGS


def unix_nanos() -> int:
    """Return the wall clock's nanoseconds since 1970.

    A span takes its start from here and its length from the monotonic clock, so that a clock
    that is set back in mid-request never gives a span that ends before it starts.
    """
    return time.time_ns()


def otlp_json(resource: str | Mapping[str, AttrValue], *spans: Span) -> str:
    """Return the body of one export (ExportTraceServiceRequest): all spans of one process.

    `resource` is the service's name, or all the resource's attributes, `service.name` among them.
    """
    attributes = {"service.name": resource} if isinstance(resource, str) else resource
    scope_spans: dict[str, Json] = {"scope": SCOPE, "spans": [_span(span) for span in spans]}
    resource_spans: dict[str, Json] = {
        "resource": {"attributes": [attribute_message(*item) for item in attributes.items()]},
        "scopeSpans": [scope_spans],
    }
    return dump_json({"resourceSpans": [resource_spans]})


def span_json(span: Span) -> str:
    """Return one span as a member of an export's `spans`."""
    return dump_json(_span(span))


def any_value(value: AttrValue) -> dict[str, Json]:
    """Return an attribute's value as the message AnyValue."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        # An integer that int64 cannot hold would make a collector refuse the whole batch.
        kind = "intValue" if value in INT64_RANGE else "stringValue"
        return {kind: str(value)}
    if isinstance(value, float):
        return {"doubleValue": value if math.isfinite(value) else non_finite_name(value)}
    if isinstance(value, str):
        return {"stringValue": value}
    return {"arrayValue": {"values": [any_value(item) for item in value]}}


def non_finite_name(value: float) -> str:
    """Return how proto3's JSON mapping spells a double that JSON has no number for."""
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def attribute_message(key: str, value: AttrValue) -> dict[str, Json]:
    """Return an attribute as the message KeyValue."""
    return {"key": key, "value": any_value(value)}


def _span(span: Span) -> dict[str, Json]:
    message: dict[str, Json] = {"traceId": span.trace_id, "spanId": span.span_id}
    if span.parent_span_id is not None:
        message["parentSpanId"] = span.parent_span_id
    if span.trace_state:
        message["traceState"] = span.trace_state
    message["flags"] = span.flags
    message["name"] = span.name
    message["kind"] = KIND_SERVER
    message["startTimeUnixNano"] = str(span.start_unix_nano)
    message["endTimeUnixNano"] = str(span.end_unix_nano)
    message["attributes"] = [attribute_message(key, value) for key, value in span.attributes]
    message["events"] = [
        {"timeUnixNano": str(event.unix_nano), "name": event.name} for event in span.events
    ]
    message["status"] = {"code": STATUS_ERROR} if span.error else {}
    return message
