"""A real collector takes our spans: rotel (Rust, from a wheel) between the engine and a sink.

Engine -> OTLP/HTTP JSON -> rotel -> OTLP/HTTP protobuf -> the official messages. What rotel could
not read it could not pass on.
"""

from __future__ import annotations

import gzip
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from support.collectors import FakeCollector, Received, closed_port, collector, response
from support.processes import TlServe
from support.wire import complete
from tinyllm.tracing import ExportConfig, SpanExporter, otlp_json
from tinyllm.tracing.attributes import span_of
from tracing.official import only_span, plain_attributes
from tracing.records import SPAN_ID, TRACE_ID, record

rotel = pytest.importorskip("rotel")
START_SECONDS = 30.0
TRACEPARENT = f"traceparent: 00-{TRACE_ID}-00f067aa0ba902b7-01"


@contextmanager
def forwarding_to(sink: FakeCollector) -> Iterator[str]:
    """Run rotel; yield the endpoint that takes OTLP/HTTP."""
    address = f"127.0.0.1:{closed_port()}"
    command: list[str | Path] = [
        Path(rotel.__file__).parent / "rotel-agent",
        "start",
        *("--otlp-http-endpoint", address),
        *("--otlp-grpc-endpoint", f"127.0.0.1:{closed_port()}"),
        *("--exporter", "otlp", "--otlp-exporter-protocol", "http"),
        *("--otlp-exporter-endpoint", sink.endpoint),
        *("--batch-timeout", "50ms"),
    ]
    environ = {name: value for name, value in os.environ.items() if "ROTEL" not in name}
    with subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL) as process:
        try:
            wait_until_listening(address, process)
            yield f"http://{address}"
        finally:
            process.kill()


def wait_until_listening(address: str, process: subprocess.Popen[bytes]) -> None:
    host, port = address.split(":")
    give_up = time.monotonic() + START_SECONDS
    while time.monotonic() < give_up and process.poll() is None:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            time.sleep(0.02)  # rotel does not say when it listens
        else:
            return
    raise AssertionError(f"rotel does not listen on {address}; its exit code: {process.poll()}")


def spans(received: Received) -> list[Any]:
    """The spans of a protobuf body, as the official messages."""
    gzipped = received.headers.get("content-encoding") == "gzip"
    body = gzip.decompress(received.body) if gzipped else received.body
    return [
        span
        for resource_spans in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope_spans in resource_spans.scope_spans
        for span in scope_spans.spans
    ]


def all_spans(sink: FakeCollector) -> list[Any]:
    return [span for received in sink.requests for span in spans(received)]


@pytest.mark.parametrize("compress", [False, True], ids=["plain", "gzip"])
def test_a_real_collector_takes_every_span_once(compress: bool) -> None:
    with collector(response(200, b"")) as sink, forwarding_to(sink) as endpoint:
        exporter = SpanExporter(ExportConfig(f"{endpoint}/v1/traces", gzip=compress))
        for number in range(2000):
            exporter.offer(
                record(seed=2**63 + number)
            )  # beyond int64: a collector's stumbling block
        assert exporter.close(20)
        assert (exporter.exported, exporter.dropped) == (2000, {})
        sink.wait_for(lambda sink: len(all_spans(sink)) >= 2000)
        arrived = all_spans(sink)
    seeds = [plain_attributes(span)["gen_ai.request.seed"] for span in arrived]
    assert sorted(seeds) == [str(2**63 + number) for number in range(2000)]
    assert len({span.span_id for span in arrived}) == 2000


def test_a_real_collector_understands_every_field() -> None:
    with collector(response(200, b"")) as sink, forwarding_to(sink) as endpoint:
        exporter = SpanExporter(ExportConfig(f"{endpoint}/v1/traces"))
        exporter.offer(record(error="SamplingError"))
        assert exporter.close(20)
        sink.wait_for(lambda sink: bool(all_spans(sink)))
        (arrived,) = all_spans(sink)
    wanted = only_span(otlp_json("s", span_of(record(error="SamplingError"), TRACE_ID, SPAN_ID)))
    wanted.span_id = arrived.span_id  # drawn at random
    assert arrived == wanted


def test_the_engine_exports_through_a_real_collector(succ_model: Path) -> None:
    with collector(response(200, b"")) as sink, forwarding_to(sink) as endpoint:
        environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_BSP_SCHEDULE_DELAY": "10"}
        with TlServe(succ_model, "--no-access-log", environ=environ) as server:
            assert complete(server.address, TRACEPARENT, max_tokens=3).status == 200
            sink.wait_for(lambda sink: bool(all_spans(sink)))
            assert server.stop()[0] == 0
        (span,) = all_spans(sink)
    assert (span.name, span.trace_id.hex()) == ("POST /v1/completions", TRACE_ID)
    assert plain_attributes(span)["gen_ai.usage.output_tokens"] == 3
