"""The OTLP/HTTP JSON body: the specification's trace, and every field read back as protobuf."""

from __future__ import annotations

import json
import math
import time

import pytest

from tinyllm import __version__
from tinyllm.tracing import Span, TraceContext, otlp_json, parse_traceparent, unix_nanos
from tinyllm.tracing.attributes import span_of
from tinyllm.tracing.span import AttrValue
from tracing.official import only_span, parsed, plain_attributes
from tracing.records import PARENT_ID, SPAN_ID, START, TRACE_ID, bare, record


def a_span(**fields: object) -> Span:
    span = Span(TRACE_ID, SPAN_ID, None, "name", START, START + 1)
    for name, value in fields.items():
        setattr(span, name, value)
    return span


def test_the_specifications_trace() -> None:
    parent = parse_traceparent(f"00-{TRACE_ID}-{PARENT_ID}-01")
    assert parent is not None
    request = bare(parent=TraceContext(*parent), status=200)
    body = json.loads(otlp_json("engine", span_of(request, parent[0], SPAN_ID)))
    resource_spans = body["resourceSpans"][0]
    assert resource_spans["resource"] == {
        "attributes": [{"key": "service.name", "value": {"stringValue": "engine"}}]
    }
    assert resource_spans["scopeSpans"][0]["scope"] == {"name": "tinyllm", "version": __version__}
    span = resource_spans["scopeSpans"][0]["spans"][0]
    assert span["traceId"] == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert span["parentSpanId"] == "00f067aa0ba902b7"
    assert span["name"] == "POST /v1/completions"
    assert span["kind"] == 2
    assert span["startTimeUnixNano"] == "1791518626123456789"
    status = {"key": "http.response.status_code", "value": {"intValue": "200"}}
    assert status in span["attributes"]


def test_the_smallest_body_byte_for_byte() -> None:
    assert otlp_json("s", a_span()) == (
        '{"resourceSpans":[{"resource":{"attributes":'
        '[{"key":"service.name","value":{"stringValue":"s"}}]},'
        f'"scopeSpans":[{{"scope":{{"name":"tinyllm","version":"{__version__}"}},"spans":['
        '{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"a1b2c3d4e5f60718","flags":259,'
        '"name":"name","kind":2,"startTimeUnixNano":"1791518626123456789",'
        '"endTimeUnixNano":"1791518626123456790","attributes":[],"events":[],"status":{}}'
        "]}]}]}"
    )


def test_official_protobuf_reads_every_field_as_meant() -> None:
    resource: dict[str, AttrValue] = {"service.name": "engine", "process.pid": 7}
    body = otlp_json(resource, span_of(record(error="SamplingError"), TRACE_ID, SPAN_ID))
    (resource_spans,) = parsed(body).resource_spans
    assert plain_attributes(resource_spans.resource) == resource
    (scope_spans,) = resource_spans.scope_spans
    assert (scope_spans.scope.name, scope_spans.scope.version) == ("tinyllm", __version__)
    (span,) = scope_spans.spans
    assert span.trace_id == bytes.fromhex(TRACE_ID)
    assert span.span_id == bytes.fromhex(SPAN_ID)
    assert span.parent_span_id == bytes.fromhex(PARENT_ID)
    assert span.trace_state == "vendor=a b"
    assert span.flags == 0x301  # remote parent, and known to be; sampled
    assert span.name == "POST /v1/completions"
    assert span.kind == span.SPAN_KIND_SERVER
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (START, START + 2_500_000)
    assert span.status.code == span.status.STATUS_CODE_ERROR
    assert span.status.message == ""
    assert [(event.time_unix_nano - START, event.name) for event in span.events] == [
        (1_500_000, "tinyllm.first_token")
    ]
    assert plain_attributes(span) == {
        "http.request.method": "POST",
        "url.path": "/v1/completions",
        "url.scheme": "http",
        "http.route": "/v1/completions",
        "http.response.status_code": 200,
        "error.type": "SamplingError",
        "network.protocol.version": "1.1",
        "server.address": "engine.example",
        "server.port": 8000,
        "client.address": "127.0.0.1",
        "user_agent.original": "curl/8.5.0",
        "gen_ai.operation.name": "text_completion",
        "gen_ai.provider.name": "tinyllm",
        "gen_ai.request.model": "tracer",
        "gen_ai.request.max_tokens": 4,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.stream": True,
        "gen_ai.response.finish_reasons": ["length"],
        "gen_ai.usage.input_tokens": 6,
        "gen_ai.usage.output_tokens": 4,
        "gen_ai.response.id": "cmpl-9d9d",
        "tinyllm.time_to_first_token": 0.0015,
        "gen_ai.request.seed": 42,
        "http.request.header.x-request-id": ["req-7"],
        "url.query": "a=1&b",
    }


def test_a_root_span_has_no_parent() -> None:
    body = otlp_json("s", span_of(record(parent=None), TRACE_ID, SPAN_ID))
    assert "parentSpanId" not in body
    assert "traceState" not in body
    span = only_span(body)
    assert span.parent_span_id == b""
    assert span.flags == 0x103  # known to have no remote parent; random trace id, sampled


def test_flags_keep_the_callers_word_on_a_random_trace_id() -> None:
    parent = TraceContext(TRACE_ID, PARENT_ID, flags=0xFE)  # not sampled, yet recorded by us
    span = only_span(otlp_json("s", span_of(record(parent=parent), TRACE_ID, SPAN_ID)))
    assert span.flags == 0x303


@pytest.mark.parametrize(
    ("value", "read"),
    [
        pytest.param('é\u2028\x00"\\\U0001f600', 'é\u2028\x00"\\\U0001f600', id="string"),
        pytest.param(True, True, id="true"),
        pytest.param(False, False, id="false"),
        pytest.param(-1, -1, id="negative"),
        pytest.param(2**63 - 1, 2**63 - 1, id="largest-int64"),
        pytest.param(-(2**63), -(2**63), id="smallest-int64"),
        pytest.param(2**63, "9223372036854775808", id="beyond-int64-is-a-string"),
        pytest.param(2**64 - 1, "18446744073709551615", id="largest-seed"),
        pytest.param(0.1, 0.1, id="double"),
        pytest.param(2.0, 2.0, id="whole-double"),
        pytest.param(1e300, 1e300, id="large-double"),
        pytest.param(math.inf, math.inf, id="infinity"),
        pytest.param(-math.inf, -math.inf, id="minus-infinity"),
        pytest.param(["a", "b"], ["a", "b"], id="strings"),
        pytest.param([], [], id="no-strings"),
    ],
)
def test_attribute_values_read_back(value: AttrValue, read: object) -> None:
    span = only_span(otlp_json("s", a_span(attributes=[("k", value)])))
    assert plain_attributes(span) == {"k": read}
    assert type(plain_attributes(span)["k"]) is type(read)


def test_not_a_number_reads_back() -> None:
    span = only_span(otlp_json("s", a_span(attributes=[("k", math.nan)])))
    assert math.isnan(plain_attributes(span)["k"])


def test_several_spans_share_one_body() -> None:
    (resource_spans,) = parsed(otlp_json("s", a_span(), a_span(name="other"))).resource_spans
    assert [span.name for span in resource_spans.scope_spans[0].spans] == ["name", "other"]


def test_unix_nanos_is_the_wall_clock() -> None:
    before = time.time_ns()
    assert before <= unix_nanos() <= time.time_ns()
