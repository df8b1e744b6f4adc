"""The text of spans, written fast: what `otlp_json(resource, span_of(record))` writes for each.

At ten thousand requests a second a span may cost a few microseconds, and most of a span is the
same every time. So a template is kept per combination of facts (method, status, host, ...), and
what differs from request to request, or is any client's to choose, is put between the template's
pieces. Spans of one template are written together, fact by fact: what is left for the interpreter
to do is a step per fact and not per span, which takes 1.7 microseconds a span; one by one, and
with a formatting call, it were 7. A new template costs as much as thirty spans, so few facts are
left to it; the memory is bounded.

A template is made by the reference form itself, from a record with marks in place of what
differs. Marks are random, so that no client can send one; tests/tracing/test_encoding.py compares
both forms.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tinyllm.tracing.attributes import span_of
from tinyllm.tracing.body import SEPARATOR
from tinyllm.tracing.completion import CompletionSpan, Facts
from tinyllm.tracing.span import INT64_RANGE, span_json
from tinyllm.tracing.traceparent import TraceContext
from tinyllm.wire.jsontext import json_string

MAX_COMBINATIONS = 512  # templates kept, about 2 KiB each; then the oldest is forgotten
MAX_INT64 = INT64_RANGE[-1]

# Where a record has the facts that are in a template, and those of which it has a slot or nothing.
SHARED: Final = slice(1, 11)
OPTIONAL: Final = slice(12, 23)
PARENT: Final = CompletionSpan._fields.index("parent")
SEED: Final = CompletionSpan._fields.index("seed")

Key = tuple[object, ...]
Columns = Mapping[str, Sequence[Any]]  # by the name of a fact: that fact of each span


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


class _Slot(NamedTuple):
    """A place in a span's text for a value that differs: its mark, and the values of many spans."""

    mark: str  # with its quotation marks if the value is escaped, which adds them
    texts: Callable[[Columns], Iterable[str]]


def _plain(fact: str) -> Callable[[Columns], Iterable[str]]:
    return lambda columns: map(str, columns[fact])


def _quoted(fact: str) -> Callable[[Columns], Iterable[str]]:
    return lambda columns: map(json_string, columns[fact])


def _quoted_once(fact: str) -> Callable[[Columns], Iterable[str]]:
    """As `_quoted`, for a fact that most spans share."""

    def texts(columns: Columns) -> Iterable[str]:
        known = {text: json_string(text) for text in set(columns[fact])}
        return map(known.__getitem__, columns[fact])

    return texts


def _moment(fact: str) -> Callable[[Columns], Iterable[str]]:
    """The wall clock's time of a fact that counts from the start."""

    def texts(columns: Columns) -> Iterable[str]:
        return [
            str(start + since)
            for start, since in zip(columns["start_unix_nano"], columns[fact], strict=True)
        ]

    return texts


def _parents(index: int) -> Callable[[Columns], Iterable[str]]:
    return lambda columns: [parent[index] for parent in columns["parent"]]


# As they stand in a span, from its beginning to its end.
_IN_ORDER: Final = (
    _Slot(_TRACE_ID, _plain("trace_id")),
    _Slot(_SPAN_ID, _plain("span_id")),
    _Slot(_PARENT_ID, _parents(1)),
    _Slot(f'"{_TRACE_STATE}"', lambda columns: map(json_string, _parents(3)(columns))),
    _Slot(str(_START), _plain("start_unix_nano")),
    _Slot(str(_START + _DURATION), _moment("duration_ns")),
    _Slot(f'"{_USER_AGENT}"', _quoted_once("user_agent")),
    _Slot(f'"{_MODEL}"', _quoted_once("model")),
    _Slot(str(_MAX_TOKENS), _plain("max_tokens")),
    _Slot(str(_INPUT_TOKENS), _plain("input_tokens")),
    _Slot(str(_OUTPUT_TOKENS), _plain("output_tokens")),
    _Slot(f'"{_RESPONSE_ID}"', _quoted("response_id")),
    # Seconds: a JSON number may have an exponent, and no float has to be written.
    _Slot(
        repr(_FIRST_TOKEN / 10**9),
        lambda columns: [f"{nanoseconds}e-9" for nanoseconds in columns["first_token_ns"]],
    ),
    _Slot(str(_SEED), _plain("seed")),
    _Slot(str(_LARGE_SEED), _plain("seed")),
    _Slot(f'"{_REQUEST_ID}"', _quoted("request_id")),
    _Slot(f'"{_QUERY}"', _quoted("query")),
    _Slot(str(_START + _FIRST_TOKEN), _moment("first_token_ns")),
    _Slot(str(_START + _DURATION), _moment("duration_ns")),
)


class _Template(NamedTuple):
    """The text of one span in pieces: before, between and after its slots."""

    pieces: list[str]  # every second one is an empty slot
    slots: list[_Slot]


class SpanEncoder:
    """Writes spans as members of OTLP's `spans` array. For one thread."""

    def __init__(self) -> None:
        self._kept: dict[Key, _Template] = {}

    def encode(
        self, records: Sequence[Facts], trace_ids: Sequence[str], span_ids: Sequence[str]
    ) -> str:
        """Return the JSON texts of the spans, a SEPARATOR behind each; their order may differ.

        A span with a parent has the parent's trace id instead. Raises JsonError for a string that
        has no UTF-8 form.
        """
        texts: list[str] = []
        for key, numbers in _groups(records):
            members = [records[number] for number in numbers]
            template = self._kept.get(key) or self._keep(key, members[0])
            columns: dict[str, Sequence[Any]] = dict(
                zip(CompletionSpan._fields, zip(*members, strict=True), strict=True)
            )
            parents = columns["parent"]
            columns["span_id"] = [span_ids[number] for number in numbers]
            columns["trace_id"] = [
                trace_ids[number] if parent is None else parent[0]
                for number, parent in zip(numbers, parents, strict=True)
            ]
            filled = template.pieces * len(members)
            for number, slot in enumerate(template.slots):
                filled[2 * number + 1 :: len(template.pieces)] = slot.texts(columns)
            texts += filled
        return "".join(texts)

    def _keep(self, key: Key, record: Facts) -> _Template:
        template = _template(record)
        if len(self._kept) >= MAX_COMBINATIONS:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = template
        return template


def _groups(records: Sequence[Facts]) -> Iterable[tuple[Key, Sequence[int]]]:
    """Return the numbers of the spans of each template, and what they have in common."""
    if len(records) > 1 and _alike(records):  # as in most batches
        return [(_key(records[0]), range(len(records)))]
    groups: dict[Key, list[int]] = {}
    for number, record in enumerate(records):
        groups.setdefault(_key(record), []).append(number)
    return groups.items()


def _alike(records: Sequence[Facts]) -> bool:
    """Whether one template is surely that of all; asked fact by fact, a third of what keys cost."""
    count = len(records)
    columns = list(zip(*records, strict=True))
    if any(column.count(column[0]) < count for column in columns[SHARED]):
        return False
    if any(0 < column.count(None) < count for column in columns[OPTIONAL]):
        return False
    parents, seeds = columns[PARENT], columns[SEED]
    return (parents[0] is None or len({_flags(parent) for parent in parents}) == 1) and (
        seeds[0] is None or (min(seeds) > MAX_INT64) == (max(seeds) > MAX_INT64)
    )


def _flags(parent: Sequence[Any]) -> tuple[object, bool]:
    """Return what of a parent is in the template."""
    return parent[2], not parent[3]


def _key(record: Facts) -> Key:
    """Return what spans of one template have in common.

    Equal values of two types (True and 1, 0.0 and -0.0) count as one: whoever makes records gives
    each fact one type, as serving/schema.py does.
    """
    # By position: a tuple is taken apart in a third of the time that its names take.
    first_token, parent, request_id, user_agent, query = record[12:17]
    response_id, model, max_tokens, seed, inputs, outputs = record[17:]
    return (
        record[SHARED],
        None if parent is None else _flags(parent),
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


def _template(facts: Facts) -> _Template:
    """Return the template of the record's span."""
    text = span_json(span_of(_marked(CompletionSpan.of(facts)), _TRACE_ID, _SPAN_ID))
    pieces, slots, position = [], [], 0
    for slot in _IN_ORDER:
        if (found := text.find(slot.mark, position)) >= 0:
            pieces += [text[position:found], ""]
            slots.append(slot)
            position = found + len(slot.mark)
    pieces.append(text[position:] + SEPARATOR)
    return _Template(pieces, slots)


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
