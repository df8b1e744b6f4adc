"""The text of a span, written fast: what `otlp_json(resource, span_of(record))` writes.

At ten thousand requests a second a span may cost a few microseconds, and most of a span is the
same every time. So a template is kept per combination of facts (method, status, host, ...), and
what differs from request to request, or is any client's to choose, is filled in by one formatting
call. A new template costs as much as twenty spans, so few facts are left to it; the memory is
bounded.

A template is made by the reference form itself, from a record with marks in place of what
differs. Marks are random, so that no client can send one; tests/tracing/test_encoding.py compares
both forms.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from operator import attrgetter
from typing import Any, Final

from tinyllm.tracing.attributes import span_of
from tinyllm.tracing.completion import CompletionSpan
from tinyllm.tracing.span import INT64_RANGE, span_json
from tinyllm.tracing.traceparent import TraceContext
from tinyllm.wire.jsontext import json_string

MAX_COMBINATIONS = 512  # templates kept, about 2 KiB each; then the oldest is forgotten
MAX_INT64 = INT64_RANGE[-1]

# The fields of CompletionSpan that a template has in its text.
_combination = attrgetter(
    "status",
    "error",
    "temperature",
    "stream",
    "finish_reason",
    "host",
    "client_address",
    "http_version",
    "method",
    "path",
)


def _mark() -> str:
    return f"mark-{secrets.token_hex(16)}"


def _number() -> int:
    """Return a random number of 18 digits: no sum of a few leaves int64 or loses a digit."""
    return 10**17 + secrets.randbelow(9 * 10**17)


_TRACE_ID, _SPAN_ID, _PARENT_ID, _TRACE_STATE = _mark(), _mark(), _mark(), _mark()
_USER_AGENT, _MODEL, _RESPONSE_ID, _REQUEST_ID, _QUERY = (_mark() for _ in range(5))
_START, _DURATION, _FIRST_TOKEN, _MAX_TOKENS = (_number() for _ in range(4))
_INPUT_TOKENS, _OUTPUT_TOKENS, _SEED = _number(), _number(), _number()
_LARGE_SEED: Final = _SEED + 2**63  # a string in OTLP

# As they stand in a span, from its beginning to its end. Quotation marks go with a text that is
# escaped when it is filled in.
_IN_ORDER: Final = (
    (_TRACE_ID,),
    (_SPAN_ID,),
    (_PARENT_ID,),
    (f'"{_TRACE_STATE}"',),
    (str(_START),),
    (str(_START + _DURATION),),
    (f'"{_USER_AGENT}"',),
    (f'"{_MODEL}"',),
    (str(_MAX_TOKENS),),
    (str(_INPUT_TOKENS),),
    (str(_OUTPUT_TOKENS),),
    (f'"{_RESPONSE_ID}"',),
    (repr(_FIRST_TOKEN / 1e9),),
    (str(_SEED), str(_LARGE_SEED)),
    (f'"{_REQUEST_ID}"',),
    (f'"{_QUERY}"',),
    (str(_START + _FIRST_TOKEN),),
    (str(_START + _DURATION),),
)


class SpanEncoder:
    """Writes spans as members of OTLP's `spans` array. For one thread."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], str] = {}

    def encode(self, record: CompletionSpan, trace_id: str, span_id: str) -> str:
        """Return the JSON text of the span. `trace_id` is the parent's if there is one.

        Raises JsonError for a string that has no UTF-8 form.
        """
        parent, seed, first_token = record.parent, record.seed, record.first_token_ns
        inputs, outputs = record.input_tokens, record.output_tokens
        response_id, request_id, query = record.response_id, record.request_id, record.query
        user_agent, model, max_tokens = record.user_agent, record.model, record.max_tokens
        trace_state = "" if parent is None else parent.trace_state
        key = (
            _combination(record),
            None if parent is None else parent.flags,
            not trace_state,
            user_agent is None,
            model is None,
            max_tokens is None,
            inputs is None,
            outputs is None,
            response_id is None,
            first_token is None,
            None if seed is None else seed > MAX_INT64,
            request_id is None,
            query is None,
        )
        template = self._kept.get(key)
        if template is None:
            template = self._keep(key, record)
        start = record.start_unix_nano
        end = start + record.duration_ns
        return template % (
            trace_id,
            span_id,
            None if parent is None else parent.span_id,
            json_string(trace_state) if trace_state else None,
            start,
            end,
            None if user_agent is None else json_string(user_agent),
            None if model is None else json_string(model),
            max_tokens,
            inputs,
            outputs,
            None if response_id is None else json_string(response_id),
            None if first_token is None else first_token / 1e9,
            seed,
            None if request_id is None else json_string(request_id),
            None if query is None else json_string(query),
            None if first_token is None else start + first_token,
            end,
        )

    def _keep(self, key: tuple[object, ...], record: CompletionSpan) -> str:
        template = _template(record)
        if len(self._kept) >= MAX_COMBINATIONS:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = template
        return template


def _template(record: CompletionSpan) -> str:
    """Return the record's span with a `%s` for each value that differs, `%.0s` if it has none."""
    text, template, position = span_json(span_of(_marked(record), _TRACE_ID, _SPAN_ID)), "", 0
    for marks in _IN_ORDER:
        for mark in marks:
            if (found := text.find(mark, position)) >= 0:
                template += text[position:found].replace("%", "%%") + "%s"
                position = found + len(mark)
                break
        else:
            template += "%.0s"
    return template + text[position:].replace("%", "%%")


def _marked(record: CompletionSpan) -> CompletionSpan:
    """Return the record with marks for the facts that it has, of those that differ."""
    parent = record.parent
    marks: dict[str, Any] = {
        "user_agent": _USER_AGENT,
        "model": _MODEL,
        "max_tokens": _MAX_TOKENS,
        "response_id": _RESPONSE_ID,
        "request_id": _REQUEST_ID,
        "query": _QUERY,
        "first_token_ns": _FIRST_TOKEN,
        "input_tokens": _INPUT_TOKENS,
        "output_tokens": _OUTPUT_TOKENS,
        "seed": _SEED if (record.seed or 0) <= MAX_INT64 else _LARGE_SEED,
    }
    return replace(
        record,
        start_unix_nano=_START,
        duration_ns=_DURATION,
        parent=parent
        and TraceContext(_TRACE_ID, _PARENT_ID, parent.flags, parent.trace_state and _TRACE_STATE),
        **{fact: mark for fact, mark in marks.items() if getattr(record, fact) is not None},
    )
