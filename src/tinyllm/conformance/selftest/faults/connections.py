"""Faults of a connection's life."""

# ruff: noqa: D102 (a method is explained where it is right; its class says what is wrong here)

from __future__ import annotations

import select
import socket

from tinyllm.conformance.selftest.fault import caught_on_both
from tinyllm.conformance.selftest.heads import Request
from tinyllm.conformance.selftest.httpd import Answer, HttpServer
from tinyllm.conformance.selftest.stream import Gone, Reset, Stream


@caught_on_both(
    "http.close_honoured",
    also=("v0.plain.content_length", "v0.healthz.head", "wire.echo.content_length"),
)
class NeverCloses(HttpServer):
    """After Connection: close was asked for and promised, the connection stays open."""

    def write_answer(self, stream: Stream, answer: Answer, request: Request, keep: bool) -> None:
        super().write_answer(stream, answer, request, keep)
        if request.header("connection") == "close":
            stream.deadline = None
            stream.take(len(stream.buffer) + 1)  # waits for the client's own close


@caught_on_both("http.always_close", also=("wire.health.bytes",))
class KeepsByDefault(HttpServer):
    """A connection is kept, and said to be, unless the client asks for a close."""

    def keeps(self, request: Request) -> bool:
        unsaid = request.version == "1.1" and not request.values("connection")
        return super().keeps(request) or unsaid


@caught_on_both("http.keep_alive_kept", shared=("http.pipelining",))
class KeepAliveIsALie(HttpServer):
    """keep-alive is promised and the connection closed."""

    def one_request(self, stream: Stream) -> bool:
        super().one_request(stream)
        return False


@caught_on_both("http.keep_alive_offered")
class KeepsNothing(HttpServer):
    """Connections are never kept."""

    def keeps(self, request: Request) -> bool:
        return False


@caught_on_both("http.pipelining")
class DropsWhatFollows(HttpServer):
    """Bytes after a request are dropped, the next request among them."""

    def one_request(self, stream: Stream) -> bool:
        kept = super().one_request(stream)
        stream.buffer.clear()
        return kept


@caught_on_both("http.half_close")
class HalfCloseIsGone(HttpServer):
    """A client that ends its sending side is taken to have left."""

    def read_body(self, stream: Stream, length: int) -> bytes:
        body = super().read_body(stream, length)
        ended, _, _ = select.select([stream.socket], [], [], 0.002)
        if ended and not stream.socket.recv(1, socket.MSG_PEEK):
            raise Gone
        return body


@caught_on_both("http.left_early")
class FaintsAtAReset(HttpServer):
    """A client that resets its connection in mid-request costs the next client its answer."""

    fainted = False

    def read_request(self, stream: Stream) -> Request:
        try:
            request = super().read_request(stream)
        except Reset:
            self.fainted = self.fainted or bool(stream.buffer)
            raise
        if self.fainted:
            self.fainted = False
            raise Gone
        return request
