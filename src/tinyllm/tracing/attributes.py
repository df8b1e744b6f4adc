"""The one table of what a completion's span says, and the document that says so.

Each row names an attribute, its type, the fact of `CompletionSpan` that it holds and the
convention that defines it. `span_of` reads the table into a `Span`; encoding.py reads the same
table into text; docs/tracing.md prints it, and a test compares the two.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from tinyllm.tracing.completion import CompletionSpan
from tinyllm.tracing.span import (
    RANDOM_TRACE_ID,
    REMOTE_PARENT_FLAGS,
    ROOT_FLAGS,
    AttrValue,
    Span,
    SpanEvent,
)

FIRST_TOKEN_EVENT = "tinyllm.first_token"
END_OF_STREAM_EVENT = "tinyllm.end_of_stream"


class Type(Enum):
    """An attribute's type, as the conventions write it."""

    STRING = "string"
    INT = "int"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    STRINGS = "string[]"


class Source(Enum):
    """Where an attribute is defined: (repository of open-telemetry, file), or ours."""

    HTTP = "semantic-conventions, docs/http/http-spans.md"
    GEN_AI = "semantic-conventions-genai, docs/registry/attributes/gen-ai.md"
    OURS = "tinyllm"


class Attribute(NamedTuple):
    """One row: `key` holds the fact that `CompletionSpan` calls `fact`."""

    key: str
    type: Type
    fact: str
    source: Source
    meaning: str


# Facts that take few values on one server: encoding.py keeps their text per combination.
COMMON = (
    Attribute("http.request.method", Type.STRING, "known_method", Source.HTTP, "`POST`"),
    Attribute(
        "http.request.method_original",
        Type.STRING,
        "unknown_method",
        Source.HTTP,
        "the method as sent, when it is none that HTTP defines",
    ),
    Attribute("url.path", Type.STRING, "path", Source.HTTP, "`/v1/completions`"),
    Attribute("url.scheme", Type.STRING, "scheme", Source.HTTP, "`http`"),
    Attribute("http.route", Type.STRING, "path", Source.HTTP, "`/v1/completions`"),
    Attribute(
        "http.response.status_code",
        Type.INT,
        "status",
        Source.HTTP,
        "of the status line that was sent; absent if none was",
    ),
    Attribute(
        "error.type",
        Type.STRING,
        "error_type",
        Source.HTTP,
        "a 5xx status, `client_gone`, or the class of the error that cut the answer off",
    ),
    Attribute("network.protocol.version", Type.STRING, "http_version", Source.HTTP, "`1.1`"),
    Attribute("server.address", Type.STRING, "server_address", Source.HTTP, "from `Host`"),
    Attribute("server.port", Type.INT, "server_port", Source.HTTP, "from `Host`"),
    Attribute("client.address", Type.STRING, "client_address", Source.HTTP, "the peer's address"),
    Attribute("user_agent.original", Type.STRING, "user_agent", Source.HTTP, "`User-Agent`"),
    Attribute(
        "gen_ai.operation.name", Type.STRING, "operation", Source.GEN_AI, "`text_completion`"
    ),
    Attribute("gen_ai.provider.name", Type.STRING, "provider", Source.GEN_AI, "`tinyllm`"),
    Attribute("gen_ai.request.model", Type.STRING, "model", Source.GEN_AI, "`model`"),
    Attribute("gen_ai.request.max_tokens", Type.INT, "max_tokens", Source.GEN_AI, "`max_tokens`"),
    Attribute(
        "gen_ai.request.temperature", Type.DOUBLE, "temperature", Source.GEN_AI, "`temperature`"
    ),
    Attribute("gen_ai.request.stream", Type.BOOLEAN, "stream", Source.GEN_AI, "`stream`"),
    Attribute(
        "gen_ai.response.finish_reasons",
        Type.STRINGS,
        "finish_reasons",
        Source.GEN_AI,
        '`["length"]`',
    ),
    Attribute(
        "tinyllm.abandoned",
        Type.BOOLEAN,
        "abandoned",
        Source.OURS,
        "`true` if the client went away before its answer was whole",
    ),
)

# Facts that differ from one request to the next.
SINGULAR = (
    Attribute(
        "gen_ai.usage.input_tokens", Type.INT, "input_tokens", Source.GEN_AI, "`prompt_tokens`"
    ),
    Attribute(
        "gen_ai.usage.output_tokens",
        Type.INT,
        "output_tokens",
        Source.GEN_AI,
        "tokens generated, also of an answer that was cut off",
    ),
    Attribute("gen_ai.response.id", Type.STRING, "response_id", Source.GEN_AI, "`cmpl-...`"),
    Attribute(
        "tinyllm.time_to_first_token",
        Type.DOUBLE,
        "time_to_first_token",
        Source.OURS,
        "seconds from the request's head to the first token written",
    ),
    Attribute(
        "gen_ai.request.seed",
        Type.INT,
        "seed",
        Source.GEN_AI,
        "`seed`; a string from 2^63 on, which OTLP's int64 cannot hold",
    ),
    Attribute(
        "http.request.header.x-request-id",
        Type.STRINGS,
        "request_ids",
        Source.HTTP,
        "the `X-Request-Id` that was echoed",
    ),
    Attribute("url.query", Type.STRING, "query", Source.HTTP, "what followed `?` in the target"),
)

ATTRIBUTES = COMMON + SINGULAR


def span_of(record: CompletionSpan, trace_id: str, span_id: str) -> Span:
    """Return the span of a finished request. `trace_id` is the parent's if there is one."""
    parent = record.parent
    values = ((row.key, _value(row.type, getattr(record, row.fact))) for row in ATTRIBUTES)
    return Span(
        trace_id,
        span_id,
        None if parent is None else parent.span_id,
        record.name,
        record.start_unix_nano,
        record.start_unix_nano + record.duration_ns,
        attributes=[(key, value) for key, value in values if value is not None],
        error=record.error_type is not None,
        events=_events(record),
        trace_state="" if parent is None else parent.trace_state,
        flags=span_flags(record),
    )


def span_flags(record: CompletionSpan) -> int:
    """Return the flags: sampled, a trace id drawn at random or not, a remote parent or none."""
    if record.parent is None:
        return ROOT_FLAGS
    return REMOTE_PARENT_FLAGS | (record.parent.flags & RANDOM_TRACE_ID)


def _value(kind: Type, fact: AttrValue | None) -> AttrValue | None:
    """Return the fact as its attribute's type: a temperature of 1 is the double 1.0."""
    return float(fact) if kind is Type.DOUBLE and isinstance(fact, int | float) else fact


def _events(record: CompletionSpan) -> list[SpanEvent]:
    events = []
    if record.first_token_ns is not None:
        moment = record.start_unix_nano + record.first_token_ns
        events.append(SpanEvent(FIRST_TOKEN_EVENT, moment))
    if record.streamed:
        moment = record.start_unix_nano + record.duration_ns
        events.append(SpanEvent(END_OF_STREAM_EVENT, moment))
    return events
