"""The text of a span, written fast: what `otlp_json(resource, span_of(record))` writes.

At twenty thousand requests a second a span may cost a few microseconds, and most of a span is
the same every time. So the text of all common attributes is kept per combination of facts
(method, status, model, temperature, ...), and only ids, times and the attributes of the one
request are printed anew. The memory is bounded: clients choose some of those facts.

Both forms read the table in attributes.py; tests/tracing/test_encoding.py compares them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from tinyllm.tracing.attributes import (
    COMMON,
    END_OF_STREAM_EVENT,
    FIRST_TOKEN_EVENT,
    SINGULAR,
    Attribute,
    Type,
    span_flags,
)
from tinyllm.tracing.completion import CompletionSpan
from tinyllm.tracing.span import (
    INT64_RANGE,
    KIND_SERVER,
    ROOT_FLAGS,
    STATUS_ERROR,
    AttrValue,
    non_finite_name,
)
from tinyllm.wire.jsontext import json_string

MAX_COMBINATIONS = 512  # texts kept, about 2 KiB each; then all are forgotten

# The fields of CompletionSpan that decide the common attributes, the name and the status.
_combination = attrgetter(
    "status",
    "error",
    "model",
    "max_tokens",
    "temperature",
    "stream",
    "finish_reason",
    "host",
    "client_address",
    "user_agent",
    "http_version",
    "method",
    "path",
)


class SpanEncoder:
    """Writes spans as members of OTLP's `spans` array."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], tuple[str, str]] = {}

    def encode(self, record: CompletionSpan, trace_id: str, span_id: str) -> str:
        """Return the JSON text of the span. `trace_id` is the parent's if there is one.

        Raises JsonError for a string that has no UTF-8 form.
        """
        key = _combination(record)
        kept = self._kept.get(key)
        if kept is None:
            kept = self._keep(key, record)
        name_and_kind, common = kept
        start = record.start_unix_nano
        end = start + record.duration_ns
        return (
            f'{{"traceId":"{trace_id}","spanId":"{span_id}",{_link(record)}{name_and_kind}'
            f'"startTimeUnixNano":"{start}","endTimeUnixNano":"{end}",'
            f"{common}{_singular(record)}],{_events(record, end)}"
        )

    def _keep(self, key: tuple[object, ...], record: CompletionSpan) -> tuple[str, str]:
        """Return what comes before the times, and what comes after them up to the seams."""
        name_and_kind = f'"name":{json_string(record.name)},"kind":{KIND_SERVER},'
        status = f'{{"code":{STATUS_ERROR}}}' if record.error_type is not None else "{}"
        attributes = ",".join(
            _attribute(row, fact)
            for row in COMMON
            if (fact := getattr(record, row.fact)) is not None
        )
        kept = name_and_kind, f'"status":{status},"attributes":[{attributes}'
        if len(self._kept) >= MAX_COMBINATIONS:
            self._kept.clear()
        self._kept[key] = kept
        return kept


def _link(record: CompletionSpan) -> str:
    parent = record.parent
    if parent is None:
        return f'"flags":{ROOT_FLAGS},'
    state = f'"traceState":{json_string(parent.trace_state)},' if parent.trace_state else ""
    return f'"parentSpanId":"{parent.span_id}",{state}"flags":{span_flags(record)},'


def _singular(record: CompletionSpan) -> str:
    """Return the attributes of one request. A line per row of SINGULAR: a loop costs twice."""
    text = ""
    if record.input_tokens is not None:
        text = f'{_INPUT_TOKENS}{record.input_tokens}"}}}}'
    if record.output_tokens is not None:
        text += f'{_OUTPUT_TOKENS}{record.output_tokens}"}}}}'
    if record.response_id is not None:
        text += f"{_RESPONSE_ID}{json_string(record.response_id)}}}}}"
    if record.first_token_ns is not None:
        text += f"{_TIME_TO_FIRST_TOKEN}{record.first_token_ns / 1e9!r}}}}}"
    if record.seed is not None:
        text += f"{_SEED}{_int(record.seed)}}}"
    if record.request_id is not None:
        text += f"{_REQUEST_IDS}{_strings((record.request_id,))}}}"
    if record.query is not None:
        text += f"{_QUERY}{_string(record.query)}}}"
    return text


def _events(record: CompletionSpan, end: int) -> str:
    """Return the events, and the end of the span's object."""
    whole_stream = record.stream and record.status == 200 and record.error is None
    last = f'{{"timeUnixNano":"{end}","name":"{END_OF_STREAM_EVENT}"}}' if whole_stream else ""
    if record.first_token_ns is None:
        return f'"events":[{last}]}}'
    moment = record.start_unix_nano + record.first_token_ns
    comma = "," if last else ""
    return f'"events":[{{"timeUnixNano":"{moment}","name":"{FIRST_TOKEN_EVENT}"}}{comma}{last}]}}'


def _attribute(row: Attribute, fact: AttrValue) -> str:
    return f'{{"key":"{row.key}","value":{_WRITERS[row.type](fact)}}}'


def _string(value: str) -> str:
    return f'{{"stringValue":{json_string(value)}}}'


def _int(value: int) -> str:
    kind = "intValue" if value in INT64_RANGE else "stringValue"
    return f'{{"{kind}":"{value}"}}'


def _double(value: float) -> str:
    number = float(value)
    text = repr(number) if math.isfinite(number) else f'"{non_finite_name(number)}"'
    return f'{{"doubleValue":{text}}}'


def _boolean(value: bool) -> str:
    return '{"boolValue":true}' if value else '{"boolValue":false}'


def _strings(values: Sequence[str]) -> str:
    return f'{{"arrayValue":{{"values":[{",".join(map(_string, values))}]}}}}'


_WRITERS: dict[Type, Callable[[Any], str]] = {
    Type.STRING: _string,
    Type.INT: _int,
    Type.DOUBLE: _double,
    Type.BOOLEAN: _boolean,
    Type.STRINGS: _strings,
}


def _opening(fact: str, value: str = "") -> str:
    """Return the text before a fact's value; a comma first, as common attributes came before."""
    key = next(row.key for row in SINGULAR if row.fact == fact)
    return f',{{"key":"{key}","value":{value}'


_INPUT_TOKENS = _opening("input_tokens", '{"intValue":"')
_OUTPUT_TOKENS = _opening("output_tokens", '{"intValue":"')
_RESPONSE_ID = _opening("response_id", '{"stringValue":')
_TIME_TO_FIRST_TOKEN = _opening("time_to_first_token", '{"doubleValue":')
_SEED = _opening("seed")
_REQUEST_IDS = _opening("request_ids")
_QUERY = _opening("query")
