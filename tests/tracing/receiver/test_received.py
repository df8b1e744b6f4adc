"""Spans as a collector reads them: what it refuses, and the place it names."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest

from tinyllm.tracing import otlp_json
from tinyllm.tracing.attributes import span_of
from tinyllm.tracing.receiver.place import DecodeError
from tinyllm.tracing.receiver.received import ReceivedSpan, decode_json
from tracing.records import PARENT_ID, SPAN_ID, START, TRACE_ID, record

SPAN = {
    "traceId": TRACE_ID,
    "spanId": SPAN_ID,
    "name": "n",
    "startTimeUnixNano": "1000",
    "endTimeUnixNano": "2000",
}
HERE = "resourceSpans[0].scopeSpans[0].spans[0]"


def body(**members: Any) -> bytes:
    """A body with one span, of which some members are replaced."""
    scope_spans = [{"spans": [{**SPAN, **members}]}]
    return json.dumps({"resourceSpans": [{"scopeSpans": scope_spans}]}).encode()


def only(**members: Any) -> ReceivedSpan:
    (span,) = decode_json(body(**members))
    return span


def test_our_own_spans_are_read_back_whole() -> None:
    (span,) = decode_json(otlp_json("engine", span_of(record(), TRACE_ID, SPAN_ID)).encode())
    assert (span.trace_id, span.span_id, span.parent_id) == (TRACE_ID, SPAN_ID, PARENT_ID)
    assert (span.service, span.name, span.kind) == ("engine", "POST /v1/completions", 2)
    assert (span.start, span.end, span.error) == (START, START + 2_500_000, False)
    assert span.events == [
        (START + 1_500_000, "tinyllm.first_token"),
        (START + 2_500_000, "tinyllm.end_of_stream"),
    ]
    assert span.attributes["gen_ai.usage.output_tokens"] == 4
    assert span.attributes["gen_ai.response.finish_reasons"] == ["length"]
    assert span.rejection is span.remark is None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"{}", id="empty-message"),
        pytest.param(b'{"resourceSpans":[]}', id="no-resources"),
        pytest.param(b'{"resourceSpans":null}', id="null-is-absent"),
        pytest.param(b'{"resourceSpans":[{"scopeSpans":[{"spans":[]}]}]}', id="no-spans"),
        pytest.param(b'{"resourceSpans":[{"resource":null,"scopeSpans":null}]}', id="nulls"),
        pytest.param(b'{"resourceSpans":[{"later":[1]}],"more":2}', id="unknown-fields"),
    ],
)
def test_a_message_may_have_no_spans(text: bytes) -> None:
    assert decode_json(text) == []


@pytest.mark.parametrize(
    ("member", "value", "place", "reason"),
    [
        ("traceId", TRACE_ID[:-1], "traceId", "31 hex digits, not 32"),
        ("traceId", f"{TRACE_ID}0", "traceId", "33 hex digits, not 32"),
        ("traceId", "z" * 32, "traceId", "is not hex; base64"),
        ("traceId", "S/kvNXezTaajzpKdDg5HNg==", "traceId", "is not hex; base64"),
        ("traceId", "-" * 32, "traceId", "is not hex"),
        ("traceId", 7, "traceId", "a number, not a string"),
        ("spanId", "abc", "spanId", "3 hex digits, not 16"),
        ("parentSpanId", "00", "parentSpanId", "2 hex digits, not 16"),
        ("name", ["n"], "name", "an array, not a string"),
        ("startTimeUnixNano", "yesterday", "startTimeUnixNano", "a string, not an integer"),
        ("startTimeUnixNano", "-1", "startTimeUnixNano", "-1 is out of range"),
        ("startTimeUnixNano", 2**64, "startTimeUnixNano", "out of range"),
        ("startTimeUnixNano", 1.5, "startTimeUnixNano", "a number, not an integer"),
        ("endTimeUnixNano", True, "endTimeUnixNano", "a boolean, not an integer"),
        ("endTimeUnixNano", "1_000", "endTimeUnixNano", "a string, not an integer"),
        ("endTimeUnixNano", "9" * 30, "endTimeUnixNano", "a string, not an integer"),
        ("kind", "SPAN_KIND_SERVER", "kind", "a string, not an integer"),
        ("kind", -1, "kind", "out of range"),
        ("flags", 2**32, "flags", "out of range"),
        ("traceState", 1, "traceState", "a number, not a string"),
        ("status", [], "status", "an array, not an object"),
        ("status", {"code": "ERROR"}, "status.code", "a string, not an integer"),
        ("status", {"message": 1}, "status.message", "a number, not a string"),
        ("attributes", {"a": 1}, "attributes", "an object, not an array"),
        ("attributes", ["a"], "attributes[0]", "a string, not an object"),
        ("attributes", [{"key": 1}], "attributes[0].key", "a number, not a string"),
        ("attributes", [{"value": "v"}], "attributes[0].value", "a string, not an object"),
        ("events", [{}, {"timeUnixNano": "x"}], "events[1].timeUnixNano", "not an integer"),
        ("events", [{"name": 1}], "events[0].name", "a number, not a string"),
        ("events", [{"attributes": 1}], "events[0].attributes", "a number, not an array"),
        ("links", [{"traceId": "ab"}], "links[0].traceId", "2 hex digits, not 32"),
        ("trace_id", TRACE_ID, "", "'trace_id' is no field; OTLP/HTTP JSON has 'traceId'"),
        ("span_id", SPAN_ID, "", "'span_id' is no field; OTLP/HTTP JSON has 'spanId'"),
    ],
)
def test_a_value_of_the_wrong_form_is_refused_by_its_place(
    member: str, value: object, place: str, reason: str
) -> None:
    with pytest.raises(DecodeError) as refused:
        decode_json(body(**{member: value}))
    where, _, why = str(refused.value).partition(": ")
    assert where == f"{HERE}.{place}".rstrip(".")
    assert reason in why


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"[]", "the body: an array, not an object"),
        (b'{"resourceSpans":{}}', "resourceSpans: an object, not an array"),
        (b'{"resourceSpans":[1]}', "resourceSpans[0]: a number, not an object"),
        (b'{"resource_spans":[]}', "the body: 'resource_spans' is no field"),
        (b'{"resourceSpans":[{"scope_spans":[]}]}', "resourceSpans[0]: 'scope_spans' is no field"),
        (
            b'{"resourceSpans":[{"instrumentationLibrarySpans":[]}]}',
            "resourceSpans[0]: 'instrumentationLibrarySpans' is no field",
        ),
        (b'{"resourceSpans":[{"resource":[]}]}', "resourceSpans[0].resource: an array"),
        (b"", "Expecting value"),
        (b'{"resourceSpans":', "Expecting value"),
        (b"\xff", "not UTF-8"),
        (b'{"a":' * 200 + b"1" + b"}" * 200, "nested over"),
    ],
)
def test_a_broken_message_is_refused(text: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)) as refused:
        decode_json(text)
    assert str(refused.value).startswith(problem)


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ({"stringValue": "s"}, "s"),
        ({"stringValue": ""}, ""),
        ({"boolValue": False}, False),
        ({"intValue": "-5"}, -5),
        ({"intValue": 5}, 5),
        ({"intValue": 1e3}, 1000),
        ({"intValue": str(2**63 - 1)}, 2**63 - 1),
        ({"doubleValue": 1}, 1.0),
        ({"doubleValue": "-Infinity"}, -math.inf),
        ({"arrayValue": {"values": [{"intValue": "1"}, {}]}}, [1, None]),
        ({"arrayValue": {}}, []),
        ({"kvlistValue": {"values": [{"key": "k", "value": {"boolValue": True}}]}}, {"k": True}),
        ({"bytesValue": "AP8="}, b"\x00\xff"),
        ({"stringValue": None}, None),
        ({"laterValue": 1}, None),
        ({}, None),
        (None, None),
    ],
)
def test_attribute_values(value: object, read: object) -> None:
    assert only(attributes=[{"key": "k", "value": value}]).attributes == {"k": read}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"stringValue": 1}, "stringValue: a number, not a string"),
        ({"boolValue": "true"}, "boolValue: a string, not a boolean"),
        ({"intValue": "x"}, "intValue: a string, not an integer"),
        ({"intValue": str(2**63)}, "intValue: 9223372036854775808 is out of range"),
        ({"doubleValue": "1.5"}, "doubleValue: a string, not a number"),
        ({"doubleValue": True}, "doubleValue: a boolean, not a number"),
        ({"arrayValue": []}, "arrayValue: an array, not an object"),
        ({"arrayValue": {"values": [1]}}, "arrayValue.values[0]: a number, not an object"),
        ({"bytesValue": "A"}, "bytesValue: not base64"),
        ({"stringValue": "a", "intValue": 1}, "stringValue and intValue at once"),
    ],
)
def test_attribute_values_of_the_wrong_form(value: object, reason: str) -> None:
    with pytest.raises(DecodeError) as refused:
        only(attributes=[{"key": "k", "value": value}])
    assert str(refused.value).startswith(f"{HERE}.attributes[0].value")
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("members", "rejection"),
    [
        ({"traceId": ""}, "the trace id is missing or all zero"),
        ({"traceId": "0" * 32}, "the trace id is missing or all zero"),
        ({"spanId": None}, "the span id is missing or all zero"),
        ({"spanId": "0" * 16}, "the span id is missing or all zero"),
        ({}, None),
        ({"traceId": TRACE_ID.upper()}, None),
    ],
)
def test_spans_that_no_backend_can_use(members: dict[str, Any], rejection: str | None) -> None:
    assert only(**members).rejection == rejection


@pytest.mark.parametrize(
    ("members", "remark"),
    [
        ({"name": ""}, "the span has no name"),
        ({"startTimeUnixNano": None}, "the span has no start or no end"),
        ({"endTimeUnixNano": "0"}, "the span has no start or no end"),
        ({"endTimeUnixNano": "999"}, "the span ends before it starts"),
        ({"parentSpanId": SPAN_ID}, "the span is its own parent"),
        ({"events": [{"timeUnixNano": "2001"}]}, "an event lies outside of its span"),
        ({"events": [{"timeUnixNano": "2000"}]}, None),
        ({"endTimeUnixNano": "1000"}, None),
    ],
)
def test_spans_that_are_odd(members: dict[str, Any], remark: str | None) -> None:
    assert only(**members).remark == remark


def test_ids_are_hex_in_any_case() -> None:
    assert only(traceId=TRACE_ID.upper()).trace_id == TRACE_ID


def test_the_service_is_the_resources() -> None:
    attributes = [{"key": "service.name", "value": {"stringValue": "gateway"}}]
    resource_spans = {
        "resource": {"attributes": attributes},
        "scopeSpans": [{"spans": [SPAN]}],
    }
    message = {"resourceSpans": [resource_spans, {"scopeSpans": [{"spans": [SPAN]}]}]}
    spans = decode_json(json.dumps(message).encode())
    assert [span.service for span in spans] == ["gateway", "unknown_service"]
