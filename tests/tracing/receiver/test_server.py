"""The receiver on the wire: both encodings, gzip, chunks, and every refusal a collector has."""

from __future__ import annotations

import gzip
import json
import re
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from support.wire import Reply, connect, parse_reply, read_all
from tinyllm.tracing import ExportConfig, SpanExporter, otlp_json, receiver
from tinyllm.tracing.attributes import span_of
from tinyllm.tracing.receiver import server
from tinyllm.tracing.receiver.framing import MAX_BODY_BYTES, MAX_TRAILERS
from tinyllm.tracing.receiver.server import JSON, PROTOBUF, Received, TraceReceiver
from tracing.official import parsed
from tracing.records import SPAN_ID, TRACE_ID, record

BODY = otlp_json("engine", span_of(record(), TRACE_ID, SPAN_ID)).encode()
ZERO = BODY.replace(TRACE_ID.encode(), b"0" * 32)


class Running:
    """A receiver that remembers what it took."""

    def __init__(self) -> None:
        self.taken: list[Received] = []
        self.receiver = TraceReceiver(("127.0.0.1", 0), self.taken.append, lambda: "overview\n")
        self.address = ("127.0.0.1", self.receiver.server_port)
        self.thread = threading.Thread(target=self.receiver.serve_forever, args=(0.01,))
        self.thread.start()

    def send(self, body: bytes, *headers: str, path: str = "/v1/traces") -> Reply:
        framing = (
            ()
            if any("ncoding: chunked" in h for h in headers)
            else (f"Content-Length: {len(body)}",)
        )
        kind = (
            () if any(h.startswith("Content-Type") for h in headers) else (f"Content-Type: {JSON}",)
        )
        lines = [f"POST {path} HTTP/1.1", "Host: h", "Connection: close", *framing, *kind, *headers]
        return self.raw("\r\n".join([*lines, "", ""]).encode() + body)

    def raw(self, request: bytes) -> Reply:
        with connect(self.address) as connection:
            connection.sendall(request)
            return parse_reply(read_all(connection))

    def spans(self) -> list[tuple[str, str]]:
        return [(span.service, span.name) for received in self.taken for span in received.spans]

    def problems(self) -> list[str]:
        return [problem for received in self.taken for problem in received.problems]


@pytest.fixture
def running() -> Iterator[Running]:
    found = Running()
    with found.receiver:
        yield found
        found.receiver.shutdown()
        found.thread.join()


TAKEN = [("engine", "POST /v1/completions")]


def chunked(body: bytes, size: int = 100) -> bytes:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    chunks = b"".join(b"%x;ext=1\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return chunks + b"0\r\nTrailer: x\r\n\r\n"


def test_json_is_taken(running: Running) -> None:
    reply = running.send(BODY)
    assert (reply.status, reply.headers["content-type"], reply.body) == (200, JSON, b"{}")
    assert running.spans() == TAKEN
    assert running.problems() == []


@pytest.mark.parametrize(
    "headers",
    [
        ["Content-Type: application/json; charset=utf-8"],
        ["Content-Type: APPLICATION/JSON"],
        ["Content-Encoding: identity"],
    ],
)
def test_spellings_of_json(running: Running, headers: list[str]) -> None:
    assert running.send(BODY, *headers).status == 200
    assert running.spans() == TAKEN


def test_protobuf_is_taken_and_answered_in_kind(running: Running) -> None:
    reply = running.send(parsed(BODY).SerializeToString(), f"Content-Type: {PROTOBUF}")
    assert (reply.status, reply.headers["content-type"], reply.body) == (200, PROTOBUF, b"")
    assert running.spans() == TAKEN
    (received,) = running.taken
    assert received.spans[0].trace_id == TRACE_ID
    assert received.spans[0].attributes["gen_ai.request.seed"] == 42


def test_json_and_protobuf_say_the_same(running: Running) -> None:
    running.send(BODY)
    running.send(parsed(BODY).SerializeToString(), f"Content-Type: {PROTOBUF}")
    from_json, from_protobuf = (received.spans for received in running.taken)
    assert from_json == from_protobuf


def test_gzip_is_unpacked(running: Running) -> None:
    assert running.send(gzip.compress(BODY), "Content-Encoding: gzip").status == 200
    assert running.spans() == TAKEN


@pytest.mark.parametrize("size", [1, 7, 100, 100_000])
def test_chunks_are_joined(running: Running, size: int) -> None:
    reply = running.send(chunked(BODY, size), "Transfer-Encoding: chunked")
    assert reply.status == 200
    assert running.spans() == TAKEN


def test_one_connection_carries_many_requests(running: Running) -> None:
    head = f"POST /v1/traces HTTP/1.1\r\nHost: h\r\nContent-Type: {JSON}\r\n".encode()
    plain = head + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
    in_chunks = head + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(BODY)
    bad = head + b"Content-Length: 1\r\n\r\n{"
    last = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    with connect(running.address) as connection:
        connection.sendall(plain + in_chunks + bad + plain + last)
        answers = read_all(connection)
    assert re.findall(rb"HTTP/1\.1 (\d+) ", answers) == [b"200", b"200", b"400", b"200", b"200"]
    assert answers.endswith(b"overview\n")
    assert running.spans() == TAKEN * 3


def test_a_span_without_ids_is_a_partial_success(running: Running) -> None:
    both = json.loads(BODY)
    both["resourceSpans"] += json.loads(ZERO)["resourceSpans"]
    reply = running.send(json.dumps(both).encode())
    assert (reply.status, reply.json()) == (
        200,
        {
            "partialSuccess": {
                "rejectedSpans": "1",
                "errorMessage": "the trace id is missing or all zero",
            }
        },
    )
    assert running.spans() == TAKEN
    assert running.problems() == ["1 of 2 spans rejected: the trace id is missing or all zero"]


def test_a_partial_success_in_protobuf(running: Running) -> None:
    reply = running.send(parsed(ZERO).SerializeToString(), f"Content-Type: {PROTOBUF}")
    partial = ExportTraceServiceResponse.FromString(reply.body).partial_success
    assert (reply.status, partial.rejected_spans) == (200, 1)
    assert partial.error_message == "the trace id is missing or all zero"


@pytest.mark.parametrize(
    ("body", "headers", "status", "message"),
    [
        pytest.param(b"{", [], 400, "Expecting property name", id="broken-json"),
        pytest.param(
            BODY.replace(TRACE_ID.encode(), b"xyz"), [], 400, "'xyz' is not hex", id="bad-hex"
        ),
        pytest.param(
            b"\xff\xff", [f"Content-Type: {PROTOBUF}"], 400, None, id="broken-protobuf"
        ),
        pytest.param(BODY, ["Content-Type: text/plain"], 415, "neither", id="text"),
        pytest.param(b"", ["Content-Type:"], 415, "neither", id="no-type"),
        pytest.param(BODY, ["Content-Encoding: br"], 415, "is not gzip", id="brotli"),
        pytest.param(BODY, ["Content-Encoding: gzip"], 400, "no gzip", id="not-gzip"),
        pytest.param(
            gzip.compress(BODY)[:-9], ["Content-Encoding: gzip"], 400, "not one whole", id="cut"
        ),
        pytest.param(
            gzip.compress(BODY) + b"x",
            ["Content-Encoding: gzip"],
            400,
            "not one whole",
            id="more-than-gzip",
        ),
        pytest.param(
            gzip.compress(b" " * (MAX_BODY_BYTES + 1)),
            ["Content-Encoding: gzip"],
            413,
            "unpacks to more",
            id="gzip-bomb",
        ),
        pytest.param(BODY, ["Content-Length: 3"], 411, "one Content-Length", id="two-lengths"),
        pytest.param(
            b"zz\r\n", ["Transfer-Encoding: chunked"], 400, "'zz' is no length", id="bad-chunk-size"
        ),
        pytest.param(
            b"+2\r\n{}\r\n0\r\n\r\n",
            ["Transfer-Encoding: chunked"],
            400,
            "no length",
            id="signed-chunk-size",
        ),
        pytest.param(
            b"1\r\n{}\r\n0\r\n\r\n",
            ["Transfer-Encoding: chunked"],
            400,
            "longer than it says",
            id="long-chunk",
        ),
        pytest.param(
            b"1" * 2000, ["Transfer-Encoding: chunked"], 400, "too long", id="endless-chunk-size"
        ),
        pytest.param(
            b"%x\r\n" % (MAX_BODY_BYTES + 1),
            ["Transfer-Encoding: chunked"],
            413,
            "more than",
            id="huge-chunk",
        ),
        pytest.param(
            b"0\r\n" + b"a: b\r\n" * (MAX_TRAILERS + 1),
            ["Transfer-Encoding: chunked"],
            400,
            "trailers",
            id="endless-trailers",
        ),
    ],
)  # fmt: skip
def test_what_a_collector_refuses(
    running: Running, body: bytes, headers: list[str], status: int, message: str | None
) -> None:
    reply = running.send(body, *headers)
    assert reply.status == status
    if message is not None:
        assert reply.json()["code"] == 3
        assert message in reply.json()["message"]
    assert running.spans() == []
    assert running.problems()[0].startswith(f"refused with {status}: ")


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("", 411),
        ("Content-Length: -1\r\n", 400),
        ("Content-Length: +2\r\n", 400),
        ("Content-Length: 1_0\r\n", 400),
        (f"Content-Length: {MAX_BODY_BYTES + 1}\r\n", 413),
        ("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", 400),
        ("Transfer-Encoding: gzip, chunked\r\n", 400),
    ],
)
def test_broken_framing_is_answered_and_ends_the_connection(
    running: Running, head: str, status: int
) -> None:
    request = f"POST /v1/traces HTTP/1.1\r\nHost: h\r\nContent-Type: {JSON}\r\n{head}\r\n{{}}"
    reply = running.raw(request.encode())
    assert reply.status == status
    assert reply.headers["connection"] == "close"


def test_a_refused_client_sees_the_end_at_once(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "DRAIN_SECONDS", 600.0)  # for what the client still sends
    head = f"POST /v1/traces HTTP/1.1\r\nHost: h\r\nContent-Type: {JSON}\r\n"
    assert running.raw(f"{head}Content-Length: -1\r\n\r\n".encode()).status == 400


def test_a_status_in_protobuf(running: Running) -> None:
    reply = running.send(b"\xff\xff", f"Content-Type: {PROTOBUF}")
    assert reply.headers["content-type"] == PROTOBUF
    # google.rpc.Status: field 1 is the code, 3 INVALID_ARGUMENT, field 2 the message.
    assert reply.body == b"\x08\x03\x12\x28the body is no ExportTraceServiceRequest"


def test_protobuf_without_its_package_is_415(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "tinyllm.tracing.receiver.protobuf", raising=False)
    monkeypatch.delattr(receiver, "protobuf", raising=False)
    monkeypatch.setitem(sys.modules, "google.protobuf.json_format", None)
    reply = running.send(b"", f"Content-Type: {PROTOBUF}")
    assert reply.status == 415
    assert "pip install 'tinyllm[traces]'" in reply.json()["message"]


@pytest.mark.parametrize("path", ["/", "/v1/metrics", "/v1/traces/", "/V1/traces"])
def test_other_paths_are_404(running: Running, path: str) -> None:
    assert running.send(BODY, path=path).status == 404


def test_get_shows_the_overview_and_nothing_else(running: Running) -> None:
    reply = running.raw(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    assert (reply.status, reply.body) == (200, b"overview\n")
    reply = running.raw(b"GET /v1/traces HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    assert reply.status == 404


def test_a_client_that_goes_away_harms_nobody(running: Running) -> None:
    with connect(running.address) as connection:
        connection.sendall(b"POST /v1/traces HTTP/1.1\r\nHost: h\r\nContent-Length: 99\r\n\r\n{")
    assert running.send(BODY).status == 200


def test_our_exporter_is_understood(running: Running) -> None:
    url = f"http://127.0.0.1:{running.address[1]}/v1/traces"
    exporter = SpanExporter(ExportConfig(url, gzip=True, resource={"service.name": "engine"}))
    exporter.offer(record())
    assert exporter.close(10)
    assert exporter.exported == 1
    assert running.spans() == TAKEN


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
def test_the_official_exporter_is_understood(running: Running, compression: Any) -> None:
    url = f"http://127.0.0.1:{running.address[1]}/v1/traces"
    provider = TracerProvider(resource=Resource.create({"service.name": "gateway"}))
    exporter = OTLPSpanExporter(url, compression=compression)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with provider.get_tracer("t").start_as_current_span("call"):
        pass
    provider.shutdown()
    assert running.spans() == [("gateway", "call")]
    assert running.problems() == []


def test_an_empty_request_is_fine(running: Running) -> None:
    empty = ExportTraceServiceRequest().SerializeToString()
    assert running.send(empty, f"Content-Type: {PROTOBUF}").status == 200
