"""Spans of the real server: a process, a collector on loopback, and clients of all kinds."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import requests
from opentelemetry import propagate, trace
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from opentelemetry.instrumentation.requests import RequestsInstrumentor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from support.collectors import FakeCollector, closed_port, collector, hang, response
from support.processes import TlServe
from support.wire import complete, connect, exchange, get, post
from tinyllm import __version__

TRACEPARENT = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@contextmanager
def traced(model: Path, endpoint: str, *arguments: str, **variables: str) -> Iterator[TlServe]:
    """A server that exports within milliseconds."""
    environ = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_SERVICE_NAME": "engine",
        "OTEL_BSP_SCHEDULE_DELAY": "10",
        **variables,
    }
    with TlServe(model, "--no-access-log", *arguments, environ=environ) as server:
        yield server


@pytest.fixture(scope="module")
def observed(succ_model: Path) -> Iterator[tuple[TlServe, FakeCollector]]:
    """A server and its collector, shared by tests that look for spans of their own."""
    with collector() as fake, traced(succ_model, fake.endpoint) as server:
        yield server, fake


def attributes(span: dict[str, Any]) -> dict[str, Any]:
    """A span's attributes with plain values."""
    return {item["key"]: next(iter(item["value"].values())) for item in span["attributes"]}


def span_of_request(fake: FakeCollector, request_id: str) -> dict[str, Any]:
    """Wait for the span of the request that had this X-Request-Id."""

    def found(fake: FakeCollector) -> list[dict[str, Any]]:
        captured = {"values": [{"stringValue": request_id}]}
        header = "http.request.header.x-request-id"
        return [
            span
            for received in fake.requests
            for span in received.spans()
            if attributes(span).get(header) == captured
        ]

    fake.wait_for(lambda fake: bool(found(fake)))
    (span,) = found(fake)
    return span


def test_exports_child_span_of_traceparent(observed: tuple[TlServe, FakeCollector]) -> None:
    server, fake = observed
    before = time.time_ns()
    reply = complete(server.address, TRACEPARENT, "X-Request-Id: child", max_tokens=3)
    after = time.time_ns()
    assert reply.status == 200
    span = span_of_request(fake, "child")
    assert span["traceId"] == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert span["parentSpanId"] == "00f067aa0ba902b7"
    assert len(bytes.fromhex(span["spanId"])) == 8
    assert span["spanId"] not in ("00f067aa0ba902b7", "0" * 16)
    assert (span["name"], span["kind"], span["status"]) == ("POST /v1/completions", 2, {})
    assert before <= int(span["startTimeUnixNano"]) < after
    assert int(span["startTimeUnixNano"]) < int(span["endTimeUnixNano"])
    found = attributes(span)
    assert found["http.response.status_code"] == "200"
    assert found["gen_ai.request.model"] == "m"
    assert (found["gen_ai.usage.input_tokens"], found["gen_ai.usage.output_tokens"]) == ("1", "3")
    assert found["gen_ai.response.id"] == reply.json()["id"]
    assert found["server.address"] == "test"
    resource = json.loads(fake.requests[-1].body)["resourceSpans"][0]["resource"]
    named = attributes(resource)
    assert (named["service.name"], named["service.version"]) == ("engine", __version__)
    assert named["process.pid"] == str(server.process.pid)


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param([], id="none"),
        pytest.param([TRACEPARENT.upper().replace("TRACEPARENT", "traceparent")], id="upper"),
        pytest.param([f"traceparent: 00-{'0' * 32}-00f067aa0ba902b7-01"], id="zero-trace-id"),
        pytest.param([f"traceparent: 00-{'a' * 32}-{'0' * 16}-01"], id="zero-span-id"),
        pytest.param([TRACEPARENT, TRACEPARENT], id="two-of-them"),
        pytest.param(["traceparent: "], id="empty"),
    ],
)
def test_starts_a_new_trace_without_traceparent(
    observed: tuple[TlServe, FakeCollector], headers: list[str], request: pytest.FixtureRequest
) -> None:
    server, fake = observed
    name = request.node.callspec.id
    complete(server.address, *headers, f"X-Request-Id: new-{name}")
    span = span_of_request(fake, f"new-{name}")
    assert "parentSpanId" not in span
    assert int(span["traceId"], 16) != 0
    assert span["traceId"] not in ("4bf92f3577b34da6a3ce929d0e0e4736", "a" * 32)


def test_tracestate_goes_with_its_parent(observed: tuple[TlServe, FakeCollector]) -> None:
    server, fake = observed
    complete(server.address, TRACEPARENT, "tracestate: a=1", "tracestate: b=2", "X-Request-Id: ts")
    assert span_of_request(fake, "ts")["traceState"] == "a=1,b=2"


def test_a_streams_span_has_its_first_token_and_its_end(
    observed: tuple[TlServe, FakeCollector],
) -> None:
    server, fake = observed
    complete(server.address, "X-Request-Id: stream", stream=True, max_tokens=5)
    span = span_of_request(fake, "stream")
    first, last = span["events"]
    assert (first["name"], last["name"]) == ("tinyllm.first_token", "tinyllm.end_of_stream")
    assert (
        int(span["startTimeUnixNano"])
        < int(first["timeUnixNano"])
        <= int(last["timeUnixNano"])
        <= int(span["endTimeUnixNano"])
    )
    found = attributes(span)
    assert found["gen_ai.request.stream"] is True
    assert found["gen_ai.usage.output_tokens"] == "5"
    assert found["tinyllm.time_to_first_token"] > 0


@pytest.mark.parametrize(
    ("request_bytes", "status", "name"),
    [
        pytest.param(
            post("/v1/completions", b"{", "X-Request-Id: bad-json"),
            400,
            "POST /v1/completions",
            id="bad-json",
        ),
        pytest.param(
            get("/v1/completions", "X-Request-Id: wrong-method"),
            405,
            "GET /v1/completions",
            id="wrong-method",
        ),
    ],
)
def test_a_refused_request_has_its_span_and_no_error(
    observed: tuple[TlServe, FakeCollector],
    request_bytes: bytes,
    status: int,
    name: str,
    request: pytest.FixtureRequest,
) -> None:
    server, fake = observed
    assert exchange(server.address, request_bytes).status == status
    span = span_of_request(fake, request.node.callspec.id)
    assert (span["name"], span["status"]) == (name, {})
    assert attributes(span)["http.response.status_code"] == str(status)
    assert "error.type" not in attributes(span)


def test_an_abandoned_stream_is_an_error_of_its_client(
    observed: tuple[TlServe, FakeCollector],
) -> None:
    server, fake = observed
    # The name is in every event: the stream is larger than the buffers on its way.
    body = {"model": "m" * 3000, "prompt": "a", "max_tokens": 4096, "stream": True}
    with connect(server.address) as connection:
        connection.sendall(post("/v1/completions", body, "X-Request-Id: abandoned"))
        assert connection.recv(100).startswith(b"HTTP/1.1 200 OK")
        # Bytes unread at the close make it a reset, whatever the server still had to send.
    span = span_of_request(fake, "abandoned")
    found = attributes(span)
    assert int(found["gen_ai.usage.output_tokens"]) < 4096
    assert span["status"] == {"code": 2}
    assert found["error.type"] == "client_gone"
    assert found["tinyllm.abandoned"] is True
    assert found["http.response.status_code"] == "200"


def test_other_paths_have_no_spans(succ_model: Path) -> None:
    with collector() as fake, traced(succ_model, fake.endpoint) as server:
        exchange(server.address, get("/healthz"))
        exchange(server.address, get("/missing"))
        complete(server.address)
        assert server.stop()[0] == 0
    assert [span["name"] for span in fake.spans()] == ["POST /v1/completions"]


def test_a_thousand_requests_give_a_thousand_spans(succ_model: Path) -> None:
    with collector() as fake, traced(succ_model, fake.endpoint) as server:
        with connect(server.address) as connection, connection.makefile("rb") as reader:
            for _ in range(1000):
                body = {"model": "m", "prompt": "a", "max_tokens": 1}
                connection.sendall(post("/v1/completions", body, "Connection: keep-alive"))
                head = b"".join(iter(reader.readline, b"\r\n"))
                length = next(
                    line for line in head.splitlines() if line.startswith(b"Content-Length: ")
                )
                reader.read(int(length.split(b": ")[1]))
        code, _, errors = server.stop()
    assert (code, errors) == (0, "")
    spans = fake.spans()
    assert len(spans) == len({span["spanId"] for span in spans}) == 1000


# An OpenTelemetry client and the engine make one tree


@pytest.fixture
def recorded() -> Iterator[tuple[TracerProvider, InMemorySpanExporter]]:
    """The official SDK, which keeps the client's spans in memory."""
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    yield provider, memory
    provider.shutdown()


def client_span(memory: InMemorySpanExporter) -> ReadableSpan:
    (span,) = [span for span in memory.get_finished_spans() if span.kind is trace.SpanKind.CLIENT]
    return span


def assert_one_tree(client: ReadableSpan, fake: FakeCollector, request_id: str) -> None:
    server_span = span_of_request(fake, request_id)
    context = client.get_span_context()
    assert context is not None
    assert server_span["traceId"] == f"{context.trace_id:032x}"
    assert server_span["parentSpanId"] == f"{context.span_id:016x}"
    # One machine, one clock: the child begins within its parent. (It may end a little after it:
    # a client can have its answer before the server has noted that it wrote the last byte.)
    assert client.start_time is not None
    assert client.end_time is not None
    assert client.start_time <= int(server_span["startTimeUnixNano"]) < client.end_time


BODY = {"model": "m", "prompt": "a", "max_tokens": 3}


def test_an_instrumented_requests_client_and_the_engine_make_one_tree(
    observed: tuple[TlServe, FakeCollector],
    recorded: tuple[TracerProvider, InMemorySpanExporter],
) -> None:
    server, fake = observed
    provider, memory = recorded
    RequestsInstrumentor().instrument(tracer_provider=provider)
    try:
        reply = requests.post(
            f"{server.base_url}/v1/completions",
            json=BODY,
            headers={"X-Request-Id": "by-requests"},
            timeout=20,
        )
    finally:
        RequestsInstrumentor().uninstrument()
    assert reply.status_code == 200
    assert_one_tree(client_span(memory), fake, "by-requests")


def test_an_instrumented_httpx_client_and_the_engine_make_one_tree(
    observed: tuple[TlServe, FakeCollector],
    recorded: tuple[TracerProvider, InMemorySpanExporter],
) -> None:
    server, fake = observed
    provider, memory = recorded
    with httpx.Client() as client:
        HTTPXClientInstrumentor.instrument_client(client, tracer_provider=provider)
        reply = client.post(
            f"{server.base_url}/v1/completions", json=BODY, headers={"X-Request-Id": "by-httpx"}
        )
    assert reply.status_code == 200
    assert_one_tree(client_span(memory), fake, "by-httpx")


def test_the_official_propagators_headers_are_read(
    observed: tuple[TlServe, FakeCollector],
    recorded: tuple[TracerProvider, InMemorySpanExporter],
) -> None:
    server, fake = observed
    provider, _ = recorded
    with provider.get_tracer("test").start_as_current_span("gateway") as gateway:
        headers: dict[str, str] = {}
        propagate.inject(headers)
    complete(server.address, *(f"{k}: {v}" for k, v in headers.items()), "X-Request-Id: propagated")
    context = gateway.get_span_context()
    assert span_of_request(fake, "propagated")["parentSpanId"] == f"{context.span_id:016x}"


# Faults never reach a client, and never delay an exit


def test_sigterm_sends_what_is_waiting(succ_model: Path) -> None:
    slow = {"OTEL_BSP_SCHEDULE_DELAY": "600000"}
    with collector() as fake, traced(succ_model, fake.endpoint, **slow) as server:
        for _ in range(20):
            complete(server.address)
        assert fake.requests == []
        code, _, errors = server.stop(signal.SIGTERM)
    assert (code, errors) == (0, "")
    assert len(fake.spans()) == 20


@pytest.mark.parametrize("fault", ["closed", "silent", "refusing"])
def test_a_broken_collector_costs_spans_and_nothing_else(succ_model: Path, fault: str) -> None:
    answer = hang if fault == "silent" else response(400, b'{"message":"no thanks"}')
    with collector(answer) as fake:
        endpoint = f"http://127.0.0.1:{closed_port()}" if fault == "closed" else fake.endpoint
        with traced(succ_model, endpoint) as server:
            for _ in range(50):
                reply = complete(server.address, max_tokens=3, temperature=0)
                assert reply.json()["choices"][0]["text"] == "bcd"
            start = time.monotonic()
            code, _, errors = server.stop(signal.SIGTERM)
            assert time.monotonic() - start < 12
    assert code == 0
    # Once when a kind of loss first happens, once at the end.
    assert len(errors.splitlines()) <= 3
    assert "0 spans exported, 50 lost: " in errors
