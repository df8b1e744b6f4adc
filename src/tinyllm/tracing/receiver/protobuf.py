"""OTLP's protobuf bodies, by the official messages of the optional package opentelemetry-proto.

A request is turned into the JSON form and read like one, so that there is one set of checks.
"""

from __future__ import annotations

import base64
from typing import Any

from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError as ProtobufError  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tinyllm.tracing.receiver.place import DecodeError
from tinyllm.tracing.receiver.received import ReceivedSpan, decode_message


def decode_protobuf(body: bytes) -> list[ReceivedSpan]:
    """Return the spans of an ExportTraceServiceRequest; raise DecodeError."""
    try:
        request = ExportTraceServiceRequest.FromString(body)
    except ProtobufError:
        raise DecodeError("the body is no ExportTraceServiceRequest") from None
    message = MessageToDict(request, use_integers_for_enums=True)
    for resource_spans in message.get("resourceSpans", []):
        for scope_spans in resource_spans.get("scopeSpans", []):
            for span in scope_spans.get("spans", []):
                _ids_to_hex(span)
                for link in span.get("links", []):
                    _ids_to_hex(link)
    return decode_message(message)


def success(rejected: int, message: str) -> bytes:
    """Return ExportTraceServiceResponse; without a rejection its partial success is unset."""
    if not rejected:
        return b""
    partial = ExportTracePartialSuccess(rejected_spans=rejected, error_message=message)
    data: bytes = ExportTraceServiceResponse(partial_success=partial).SerializeToString()
    return data


def status(code: int, message: str) -> bytes:
    """Return google.rpc.Status: an integer and a string, as in the message used here."""
    lookalike = ExportTracePartialSuccess(rejected_spans=code, error_message=message)
    data: bytes = lookalike.SerializeToString()
    return data


def _ids_to_hex(message: dict[str, Any]) -> None:
    """OTLP's JSON has ids as hex, where proto3's own mapping has base64."""
    for key in message.keys() & {"traceId", "spanId", "parentSpanId"}:
        message[key] = base64.b64decode(message[key]).hex()
