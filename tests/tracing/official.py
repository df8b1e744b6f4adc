"""The official protobuf messages, as an oracle for our JSON."""

from __future__ import annotations

import base64
import json
from typing import Any

from google.protobuf import json_format  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

ID_FIELDS = ("traceId", "spanId", "parentSpanId")


def parsed(body: str | bytes) -> Any:
    """Read an OTLP/HTTP JSON body into ExportTraceServiceRequest; an unknown field is an error.

    OTLP writes ids as hex, proto3's own JSON mapping reads bytes as base64.
    """
    message = json.loads(body)
    for resource_spans in message["resourceSpans"]:
        for scope_spans in resource_spans["scopeSpans"]:
            for span in scope_spans["spans"]:
                for key in span.keys() & set(ID_FIELDS):
                    span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
    return json_format.ParseDict(message, ExportTraceServiceRequest())


def only_span(body: str | bytes) -> Any:
    """The one span of a body."""
    ((span,),) = [
        scope_spans.spans
        for found in parsed(body).resource_spans
        for scope_spans in found.scope_spans
    ]
    return span


def plain(value: Any) -> Any:
    """An AnyValue as a Python value."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [plain(item) for item in value.array_value.values]
    return getattr(value, kind)


def plain_attributes(message: Any) -> dict[str, Any]:
    """A message's attributes as a dict; a key that comes twice is an error."""
    pairs = [(item.key, plain(item.value)) for item in message.attributes]
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)
