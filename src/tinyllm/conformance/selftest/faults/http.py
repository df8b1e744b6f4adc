"""Faults of the HTTP edge: what a request may look like, and how long it may be."""

# ruff: noqa: D102 (a method is explained where it is right; its class says what is wrong here)

from __future__ import annotations

import re
import socket
import struct

from tinyllm.conformance.selftest.engine import Engine
from tinyllm.conformance.selftest.fault import caught_by, caught_on_both
from tinyllm.conformance.selftest.heads import Request
from tinyllm.conformance.selftest.httpd import Answer, HttpServer, Refused
from tinyllm.conformance.selftest.stream import Gone, Stream


@caught_on_both("http.header_case")
class NamesCompared(HttpServer):
    """Header names are compared exactly: content-length is not found, 411 (mutant s07)."""

    def length_of(self, request: Request) -> int | None:
        length = super().length_of(request)
        spelled = "Content-Length" in request.names or length is None
        if not spelled and request.method == "POST":
            raise Refused(411, "a POST needs a Content-Length")
        return length


@caught_on_both("http.header_space")
class ValueAfterColonSpace(HttpServer):
    """A field is cut at colon and space: without the space it is malformed."""

    def read_head(self, stream: Stream) -> bytes:
        head = super().read_head(stream)
        if re.search(rb"Content-Length:[^ ]", head):
            raise Refused(400, "malformed request: no space after a colon")
        return head


@caught_on_both("http.split", shared=("http.cut_request",), may=("*.http.byte_by_byte",))
class OneReadForTheBody(HttpServer):
    """The body is whatever one read brings."""

    def read_body(self, stream: Stream, length: int) -> bytes:
        if not stream.buffer and length:
            stream.fill()
        return stream.take(min(length, len(stream.buffer)))


@caught_on_both("http.byte_by_byte")
class FourReadsForTheHead(HttpServer):
    """A head that takes more than four reads is refused."""

    def read_head(self, stream: Stream) -> bytes:
        before = stream.reads
        head = super().read_head(stream)
        if stream.reads > before + 4:
            raise Refused(400, "malformed request: too many pieces")
        return head


@caught_on_both("http.absolute_form")
class PathsOnly(HttpServer):
    """A whole URL as the target is refused."""

    def read_head(self, stream: Stream) -> bytes:
        head = super().read_head(stream)
        if b" http://" in head:
            raise Refused(400, "malformed request: not a path")
        return head


@caught_on_both("http.empty_lines")
class NoEmptyLine(HttpServer):
    """An empty line before the request line is refused."""

    def skip_empty_lines(self, stream: Stream) -> None:
        while len(stream.buffer) < 2:
            stream.fill()
        if stream.buffer.startswith(b"\r\n"):
            raise Refused(400, "malformed request: no request line")


@caught_on_both("http.http10")
class NeedsHttp11(HttpServer):
    """HTTP/1.0 is refused."""

    def length_of(self, request: Request) -> int | None:
        if request.version == "1.0":
            raise Refused(400, "malformed request: HTTP/1.1 is needed")
        return super().length_of(request)


@caught_by("v0.http.request_id")
class NoRequestId(Engine):
    """X-Request-Id is not echoed in streams."""

    def extra(self, request: Request) -> list[tuple[str, str]]:
        return [] if b'"stream": true' in request.body else super().extra(request)


@caught_by("v0.http.no_request_id")
class AnyRequestId(Engine):
    """Any X-Request-Id is echoed."""

    def extra(self, request: Request) -> list[tuple[str, str]]:
        value = request.header("x-request-id")
        return [("X-Request-Id", value)] if value else []


@caught_on_both("http.length_required", also=("wire.errors.shape",))
class LengthNotNeeded(HttpServer):
    """A POST without a length is taken to have no body."""

    def length_of(self, request: Request) -> int | None:
        return super().length_of(request) or 0


@caught_on_both("http.body_too_large", "http.expect_refused", shared=("http.answer_survives",))
class CapOf4Mebibytes(HttpServer):
    """Bodies of up to 4 MiB are read."""

    BODY_BYTES = 4 * 1024 * 1024


@caught_on_both("http.body_at_limit")
class CapOf64Kibibytes(HttpServer):
    """Bodies over 64 KiB are refused."""

    BODY_BYTES = 64 * 1024


@caught_on_both("http.answer_survives")
class ResetsLargeBodies(HttpServer):
    """A body that is sent and too large gets a reset instead of an answer."""

    def write_answer(self, stream: Stream, answer: Answer, request: Request, keep: bool) -> None:
        if answer.status == 413 and stream.buffer.endswith(b"  "):
            linger_zero = struct.pack("ii", 1, 0)
            stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_zero)
            stream.socket.close()
            raise Gone
        super().write_answer(stream, answer, request, keep)


@caught_on_both("http.huge_length")
class LengthOverflows(HttpServer):
    """A length of more than 18 digits is called malformed."""

    def length_of(self, request: Request) -> int | None:
        if len(request.header("content-length") or "") > 18:
            raise Refused(400, "malformed request: number too long")
        return super().length_of(request)


@caught_on_both("http.head_too_large")
class CapOf64KibibyteHeads(HttpServer):
    """Heads of up to 64 KiB are read."""

    HEAD_BYTES = 64 * 1024


@caught_on_both("http.head_at_limit")
class CapOf8KibibyteHeads(HttpServer):
    """Heads over 8 KiB are refused."""

    HEAD_BYTES = 8 * 1024


@caught_on_both("http.transfer_coding")
class ReadsChunks(HttpServer):
    """Chunked bodies are understood, which the contract excludes."""

    coded = False

    def length_of(self, request: Request) -> int | None:
        length = super().length_of(request)
        self.coded = request.header("transfer-encoding") == "chunked"
        request.fields = [field for field in request.fields if field[0] != "transfer-encoding"]
        return 0 if self.coded else length

    def read_body(self, stream: Stream, length: int) -> bytes:
        if not self.coded:
            return super().read_body(stream, length)
        body = b""
        while size := self.chunk_size(stream):
            body += stream.take(size)
            stream.take(2)
        return body

    def chunk_size(self, stream: Stream) -> int:
        """Read the line in front of a chunk."""
        while b"\r\n" not in stream.buffer:
            stream.fill()
        return int(stream.take(stream.buffer.index(b"\r\n") + 2), 16)


@caught_by("v0.http.chunked_request", shared=("v0.http.transfer_coding",))
class CodingIs400(Engine):
    """A transfer coding is called malformed."""

    TRANSFER_CODING = 400


@caught_on_both("http.expect_continue")
class NeverContinues(HttpServer):
    """A client that waits for 100 Continue waits for ever."""

    def encourage(self, request: Request, stream: Stream, length: int) -> None:
        """Say nothing."""


@caught_on_both("http.expect_refused")
class ContinuesAlways(HttpServer):
    """100 Continue is said before the length is looked at."""

    def length_of(self, request: Request) -> int | None:
        self.continued = request.header("expect") is not None
        return super().length_of(request)

    def answer_bytes(self, answer: Answer, request: Request, keep: bool) -> bytes:
        early = b"HTTP/1.1 100 Continue\r\n\r\n" if answer.status == 413 and self.continued else b""
        return early + super().answer_bytes(answer, request, keep)


@caught_on_both("http.leftover")
class ReadsAllThereIs(HttpServer):
    """The body is what was sent, whatever length was announced."""

    def read_body(self, stream: Stream, length: int) -> bytes:
        body = super().read_body(stream, length)
        if self.keeps_nothing(stream):
            body += stream.take(len(stream.buffer))
        return body

    def keeps_nothing(self, stream: Stream) -> bool:
        """Whether what follows is no request."""
        return not stream.buffer.startswith(b"GET ")


@caught_on_both("http.cut_request")
class TakesHalfABody(HttpServer):
    """A body that the client cuts short is taken as it is."""

    def read_body(self, stream: Stream, length: int) -> bytes:
        try:
            return super().read_body(stream, length)
        except Gone:
            return stream.take(len(stream.buffer))
