"""The text of a span, written fast: what `otlp_json(resource, span_of(record))` writes.

At ten thousand requests a second a span may cost a few microseconds, and most of a span is the
same every time. So a template is kept per combination of facts (method, status, host, ...), and
what differs from request to request, or is any client's to choose, is put between the template's
pieces, which are joined: in 2.5 microseconds all in all, where one formatting call took 3 alone. A
new template costs as much as twenty spans, so few facts are left to it; the memory is bounded.

A template is made by the reference form itself, from a record with marks in place of what
differs. Marks are random, so that no client can send one; tests/tracing/test_encoding.py compares
both forms.
"""

from __future__ import annotations

import secrets
from typing import Any, Final

from tinyllm.tracing.attributes import span_of
from tinyllm.tracing.completion import CompletionSpan
from tinyllm.tracing.span import INT64_RANGE, span_json
from tinyllm.tracing.traceparent import TraceContext
from tinyllm.wire.jsontext import json_string

MAX_COMBINATIONS = 512  # templates kept, about 2 KiB each; then the oldest is forgotten
MAX_INT64 = INT64_RANGE[-1]


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
    (repr(_FIRST_TOKEN / 10**9),),
    (str(_SEED), str(_LARGE_SEED)),
    (f'"{_REQUEST_ID}"',),
    (f'"{_QUERY}"',),
    (str(_START + _FIRST_TOKEN),),
    (str(_START + _DURATION),),
)


class SpanEncoder:
    """Writes spans as members of OTLP's `spans` array. For one thread."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], list[str]] = {}

    def encode(self, record: CompletionSpan, trace_id: str, span_id: str) -> str:
        """Return the JSON text of the span. `trace_id` is the parent's if there is one.

        Raises JsonError for a string that has no UTF-8 form.
        """
        # By position: a tuple is taken apart in a third of the time that its names take.
        start, combination = record[0], record[1:11]
        duration, first_token, parent, request_id, user_agent, query = record[11:17]
        response_id, model, max_tokens, seed, inputs, outputs = record[17:]
        trace_state = "" if parent is None else parent.trace_state
        key = (
            combination,
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
        pieces = self._kept.get(key)
        if pieces is None:
            pieces = self._keep(key, record)
        end = str(start + duration)
        pieces[1::2] = (
            trace_id,
            span_id,
            "" if parent is None else parent.span_id,
            json_string(trace_state) if trace_state else "",
            str(start),
            end,
            "" if user_agent is None else json_string(user_agent),
            "" if model is None else json_string(model),
            "" if max_tokens is None else str(max_tokens),
            "" if inputs is None else str(inputs),
            "" if outputs is None else str(outputs),
            "" if response_id is None else json_string(response_id),
            "" if first_token is None else f"{first_token}e-9",
            "" if seed is None else str(seed),
            "" if request_id is None else json_string(request_id),
            "" if query is None else json_string(query),
            "" if first_token is None else str(start + first_token),
            end if record.streamed else "",
        )
        return "".join(pieces)

    def _keep(self, key: tuple[object, ...], record: CompletionSpan) -> list[str]:
        pieces = _pieces(record)
        if len(self._kept) >= MAX_COMBINATIONS:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = pieces
        return pieces


def _pieces(record: CompletionSpan) -> list[str]:
    """Return the record's span in pieces; every second one is room for a value that differs."""
    text, pieces, position = span_json(span_of(_marked(record), _TRACE_ID, _SPAN_ID)), [], 0
    for marks in _IN_ORDER:
        for mark in marks:
            if (found := text.find(mark, position)) >= 0:
                pieces += [text[position:found], ""]
                position = found + len(mark)
                break
        else:
            pieces += ["", ""]
    return [*pieces, text[position:]]


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
    return record._replace(
        start_unix_nano=_START,
        duration_ns=_DURATION,
        parent=parent
        and TraceContext(_TRACE_ID, _PARENT_ID, parent.flags, parent.trace_state and _TRACE_STATE),
        **{fact: mark for fact, mark in marks.items() if getattr(record, fact) is not None},
    )
