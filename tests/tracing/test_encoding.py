"""The fast text of a span says what the reference form says, for every combination of facts."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tinyllm.tracing import AttrValue, CompletionSpan, TraceContext, encoding, otlp_json
from tinyllm.tracing.attributes import span_of
from tinyllm.tracing.body import SEPARATOR, Body, body_head
from tinyllm.tracing.completion import Facts
from tinyllm.tracing.encoding import SpanEncoder
from tinyllm.wire.jsontext import JsonError
from tracing.official import parsed
from tracing.records import EVERYTHING, PARENT_ID, SPAN_ID, TRACE_ID, bare, record

RESOURCE: dict[str, AttrValue] = {"service.name": "é", "process.pid": 7}


def reference(span: CompletionSpan) -> Any:
    body = json.loads(otlp_json("s", span_of(span, TRACE_ID, SPAN_ID)))
    return body["resourceSpans"][0]["scopeSpans"][0]["spans"][0]


def encoded(encoder: SpanEncoder, *spans: Facts) -> Any:
    text = encoder.encode(spans, [TRACE_ID] * len(spans), [SPAN_ID] * len(spans))
    assert text.count("\n") == len(spans), "a line for each"
    return json.loads(f"[{text.removesuffix(SEPARATOR)}]")


def assert_same(encoder: SpanEncoder, span: CompletionSpan) -> None:
    for _ in range(2):  # written, then taken from what was kept
        assert encoded(encoder, span) == [reference(span)]
        assert encoded(encoder, span, span.plain()) == [reference(span)] * 2


@pytest.mark.parametrize("fact", EVERYTHING)
def test_each_fact_alone_and_each_fact_missing(fact: str) -> None:
    encoder = SpanEncoder()
    assert_same(encoder, record())
    if fact != "start_unix_nano":
        assert_same(encoder, bare(**{fact: EVERYTHING[fact]}))
        assert_same(encoder, record(**{fact: getattr(bare(), fact)}))


@pytest.mark.parametrize(
    ("fact", "values"),
    [
        ("status", [200, 400, 499, 500, 503]),
        ("error", ["client_gone", "SamplingError"]),
        ("method", ["GET", "BREW", 'A"B']),
        ("model", ["a", 'é"\\\n\u2028\x7f', "\U0001f600"]),
        ("max_tokens", [1, 4096]),
        ("temperature", [0, 0.0, 1e-300, 2, math.inf, math.nan]),
        ("seed", [0, 2**63 - 1, 2**63, 2**64 - 1]),
        ("stream", [False, True]),
        ("finish_reason", ["stop", "length"]),
        ("host", ["h", "[::1]:1", "h:x"]),
        ("client_address", ["::1"]),
        ("user_agent", ['"', "\x80\xff"]),
        ("query", ["", '"&é']),
        ("http_version", ["1.0"]),
        ("path", ["/v1/other"]),
        ("request_id", ['"', "x" * 128]),
        ("response_id", ['"']),
        ("input_tokens", [0, 1]),
        ("output_tokens", [0, 1]),
        ("first_token_ns", [0, 1, 10**12]),
        ("duration_ns", [0, 10**15]),
        ("parent", [TraceContext(TRACE_ID, PARENT_ID, 0), TraceContext(TRACE_ID, PARENT_ID, 255)]),
    ],
)
def test_one_encoder_tells_all_values_apart(fact: str, values: list[object]) -> None:
    encoder = SpanEncoder()
    for value in values:
        assert_same(encoder, record(**{fact: value}))
        assert_same(encoder, bare(**{fact: value}))


TEXTS = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
COUNTS = st.none() | st.integers(0, 2**63 - 1)
STATELESS = EVERYTHING["parent"]._replace(trace_state="")
FACTS = st.fixed_dictionaries(
    {},
    optional={
        "parent": st.none() | st.sampled_from([EVERYTHING["parent"], STATELESS]),
        "status": st.none() | st.integers(200, 599),
        "temperature": st.none() | st.floats(allow_nan=False) | st.integers(0, 2),
        "stream": st.none() | st.booleans(),
        "seed": st.none() | st.sampled_from([2**63 - 1, 2**63]) | st.integers(0, 2**64 - 1),
        **dict.fromkeys(("max_tokens", "first_token_ns", "input_tokens", "output_tokens"), COUNTS),
        **dict.fromkeys(("model", "error", "user_agent", "query", "request_id", "host"), TEXTS),
    },
)
ENCODER = SpanEncoder()


@given(FACTS)
def test_fast_form_equals_the_reference(facts: dict[str, Any]) -> None:
    assert_same(ENCODER, bare(**facts))


@given(FACTS, FACTS, st.sets(st.sampled_from(sorted(EVERYTHING))))
@example({"seed": 1}, {"seed": 2**63}, {"seed"})
@example({"parent": EVERYTHING["parent"]}, {"parent": STATELESS}, {"parent"})
@example({"model": "a"}, {"model": None}, {"model"})
def test_spans_are_alike_if_they_have_one_template(
    facts: dict[str, Any], others: dict[str, Any], changed: set[str]
) -> None:
    one = bare(**facts).plain()
    other = bare(**{**facts, **{fact: others[fact] for fact in changed & others.keys()}}).plain()
    same_key = encoding._key(one) == encoding._key(other)
    assert encoding._alike([one, other]) == encoding._alike([other, one, one]) == same_key


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "MAX_COMBINATIONS", 3)
    encoder = SpanEncoder()
    for number in range(20):
        assert_same(encoder, record(host=f"h{number}"))
        assert len(encoder._kept) <= 3


def test_what_any_client_chooses_makes_no_template_of_its_own() -> None:
    encoder = SpanEncoder()
    for number in range(20):
        text = f"x{number}%s%"
        chosen = record(model=text, user_agent=text, max_tokens=number, request_id=text, query=text)
        assert_same(encoder, chosen)
    assert len(encoder._kept) == 1


def test_a_string_without_utf8_form_is_an_error() -> None:
    with pytest.raises(JsonError, match="surrogate"):
        encoded(SpanEncoder(), record(model="\ud800"))


def test_spans_of_many_templates_are_written_together() -> None:
    kinds: list[dict[str, Any]] = [{}, {"status": 500}, {"parent": None}, {"seed": 2**63}]
    spans = [
        record(response_id=str(number), duration_ns=number, **kinds[number % len(kinds)])
        for number in range(3 * len(kinds))
    ]
    written = encoded(SpanEncoder(), *spans)
    assert sorted(written, key=json.dumps) == sorted(map(reference, spans), key=json.dumps)


@pytest.mark.parametrize("pieces", [[], [1], [5], [16, 1], [64, 64, 3]])
def test_a_body_is_the_reference_body(pieces: list[int]) -> None:
    body, encoder = Body(body_head(RESOURCE)), SpanEncoder()
    for count in pieces:
        ids = [TRACE_ID] * count, [SPAN_ID] * count
        body.add(encoder.encode([record(model=f"m{count}")] * count, *ids), count)
    assert body.spans == sum(pieces)
    spans = [record(model=f"m{count}") for count in pieces for _ in range(count)]
    wanted = otlp_json(RESOURCE, *(span_of(span, TRACE_ID, SPAN_ID) for span in spans))
    written = b"".join(body.finish())
    assert json.loads(written) == json.loads(wanted)
    (resource_spans,) = parsed(written).resource_spans
    assert len(resource_spans.scope_spans[0].spans) == sum(pieces)
