"""An OTLP/HTTP receiver for traces: what arrives is answered as a collector answers it.

OTLP/HTTP (opentelemetry.io/docs/specs/otlp): POST /v1/traces with JSON or protobuf, plain or
gzip; 200 with the reply message, whose partial success is set when spans were rejected; 400
with a Status message for a body that cannot be read. The reply has the request's encoding.

The HTTP server is the standard library's, with a thread per connection.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import NamedTuple

from tinyllm.tracing.config import TRACES_PATH
from tinyllm.tracing.receiver.framing import RefusedRequest, read_body, unpacked
from tinyllm.tracing.receiver.received import ReceivedSpan, decode_json
from tinyllm.wire.jsontext import dump_json

IDLE_SECONDS = 120.0  # after which a silent connection is closed
INVALID_ARGUMENT = 3  # google.rpc.Code

DRAINED_BYTES = 4 * 1024 * 1024  # read and dropped after a refusal, so that the answer gets through
DRAIN_SECONDS = 1.0

JSON, PROTOBUF = "application/json", "application/x-protobuf"


class Received(NamedTuple):
    """What one request brought: spans that were taken, and what was wrong."""

    spans: list[ReceivedSpan]
    problems: list[str]


class Codec(NamedTuple):
    """One encoding of the protocol's messages."""

    content_type: str
    decode: Callable[[bytes], list[ReceivedSpan]]  # raises ValueError
    success: Callable[[int, str], bytes]  # spans rejected, and why
    status: Callable[[int, str], bytes]  # google.rpc code, and why


class TraceReceiver(ThreadingHTTPServer):
    """Listens on an address, and calls `took` with what each request brought."""

    daemon_threads = True

    def __init__(
        self,
        address: tuple[str, int],
        took: Callable[[Received], None],
        overview: Callable[[], str],
    ) -> None:
        """Bind; raise OSError if that cannot be. `overview` is the text that GET / shows."""
        self.took = took
        self.overview = overview
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Bind without asking name servers for our name, which can take seconds."""
        TCPServer.server_bind(self)
        self.server_port: int = self.server_address[1]

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away in mid-request is no event."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS
    server: TraceReceiver

    def do_GET(self) -> None:
        if self.path == "/":
            self._answer(200, "text/plain; charset=utf-8", self.server.overview().encode())
        else:
            self._refuse(RefusedRequest(404, f"there is POST {TRACES_PATH} and GET / here"), _JSON)

    def do_POST(self) -> None:
        codec = _JSON
        try:
            body = self._body()
            if self.path.partition("?")[0] != TRACES_PATH:
                raise RefusedRequest(404, f"traces go to {TRACES_PATH}; nothing else is taken")
            codec = _codec(self.headers.get_content_type())
            spans = _decoded(codec, unpacked(body, self.headers.get("Content-Encoding", "")))
        except RefusedRequest as refused:
            self.server.took(Received([], [f"refused with {refused.status}: {refused.message}"]))
            self._refuse(refused, codec)
            return
        reasons = [span.rejection for span in spans if span.rejection is not None]
        why = reasons[0] if reasons else ""
        problems = [f"{len(reasons)} of {len(spans)} spans rejected: {why}"] if reasons else []
        self.server.took(Received([span for span in spans if span.rejection is None], problems))
        self._answer(200, codec.content_type, codec.success(len(reasons), why))

    def log_message(self, *args: object) -> None:
        """Requests are not logged one by one; their traces are shown."""

    def _body(self) -> bytes:
        try:
            return read_body(self.headers, self.rfile)
        except RefusedRequest:
            self.close_connection = True
            raise

    def _refuse(self, refused: RefusedRequest, codec: Codec) -> None:
        body = codec.status(INVALID_ARGUMENT, refused.message)
        self._answer(refused.status, codec.content_type, body)
        if self.close_connection:  # the body may be unread: closing now could reset the answer away
            self.connection.settimeout(DRAIN_SECONDS)
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_WR)  # the client need not wait for us
                self.rfile.read(DRAINED_BYTES)

    def _answer(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)


def _codec(content_type: str) -> Codec:
    if content_type == JSON:
        return _JSON
    if content_type != PROTOBUF:
        raise RefusedRequest(415, f"{content_type[:100]!r} is neither {JSON} nor {PROTOBUF}")
    try:
        from tinyllm.tracing.receiver import protobuf
    except ImportError:
        message = "protobuf needs the package opentelemetry-proto: pip install 'tinyllm[traces]'"
        raise RefusedRequest(415, message) from None
    return Codec(PROTOBUF, protobuf.decode_protobuf, protobuf.success, protobuf.status)


def _decoded(codec: Codec, body: bytes) -> list[ReceivedSpan]:
    try:
        return codec.decode(body)
    except ValueError as problem:
        raise RefusedRequest(400, str(problem)) from None


def _json_success(rejected: int, message: str) -> bytes:
    """ExportTraceServiceResponse; without a rejection its partial success is unset."""
    partial = {"rejectedSpans": str(rejected), "errorMessage": message}
    return dump_json({"partialSuccess": partial} if rejected else {}).encode()


def _json_status(code: int, message: str) -> bytes:
    return dump_json({"code": code, "message": message}).encode()


_JSON = Codec(JSON, decode_json, _json_success, _json_status)
