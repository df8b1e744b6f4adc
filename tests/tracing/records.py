"""Requests as the server tells them, for the tests of this folder."""

from __future__ import annotations

from typing import Any

from tinyllm.tracing import CompletionSpan, ExporterProcess, SpanExporter, TraceContext

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT_ID = "00f067aa0ba902b7"
SPAN_ID = "a1b2c3d4e5f60718"
START = 1_791_518_626_123_456_789

PARENT = TraceContext(TRACE_ID, PARENT_ID, 1, "vendor=a b")


def record(**facts: Any) -> CompletionSpan:
    """A stream of four tokens with every fact there can be; `facts` replace some."""
    return CompletionSpan(**{**EVERYTHING, **facts})


EVERYTHING: dict[str, Any] = {
    "start_unix_nano": START,
    "duration_ns": 2_500_000,
    "parent": PARENT,
    "method": "POST",
    "status": 200,
    "request_id": "req-7",
    "response_id": "cmpl-9d9d",
    "model": "tracer",
    "max_tokens": 4,
    "temperature": 0.5,
    "seed": 42,
    "stream": True,
    "input_tokens": 6,
    "output_tokens": 4,
    "finish_reason": "length",
    "first_token_ns": 1_500_000,
    "host": "engine.example:8000",
    "client_address": "127.0.0.1",
    "user_agent": "curl/8.5.0",
    "query": "a=1&b",
    "http_version": "1.1",
    "path": "/v1/completions",
}


def bare(**facts: Any) -> CompletionSpan:
    """What is known of a request of which nothing could be read."""
    return CompletionSpan(START, **facts)


def offer(exporter: SpanExporter | ExporterProcess, count: int, first: int = 0) -> None:
    """Offer spans that their `response_id` tells apart."""
    for number in range(first, first + count):
        exporter.offer(record(response_id=f"cmpl-{number}"))


def wanted_ids(count: int) -> list[str]:
    """The `response_id` of each of the first spans."""
    return [f"cmpl-{number}" for number in range(count)]
