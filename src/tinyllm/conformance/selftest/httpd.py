"""A small, deliberately good HTTP server: a thread per connection, every rule of the contract.

Each step of a connection is a method of its own, so that a broken server of the self-test is a
subclass that overrides one of them and is right in everything else.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from tinyllm.conformance.client import Address
from tinyllm.conformance.selftest.heads import (
    BrokenHead,
    Request,
    Rules,
    body_length,
    parse_head,
)
from tinyllm.conformance.selftest.stream import Gone, Late, Stream

THREADS = 100  # more than any case has connections
REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    411: "Length Required",
    413: "Content Too Large",
    422: "Unprocessable Content",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
}


class Refused(Exception):
    """The request is answered with an error; `allow` is the Allow field of a 405."""

    def __init__(
        self, status: int, message: str, param: str | None = None, allow: str = ""
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.allow = allow


class Malformed(Refused):
    """The head is no HTTP."""


@dataclass(slots=True)
class Answer:
    """One response, before it is bytes."""

    status: int
    body: bytes
    fields: list[tuple[str, str]] = field(default_factory=list)
    content_type: str = "application/json"


class HttpServer:
    """Listens on a free port of loopback until `stop`."""

    HEAD_BYTES = 16 * 1024
    BODY_BYTES = 1024 * 1024
    HEAD_TOO_LARGE = 431
    TRANSFER_CODING = 501
    HEAD_SECONDS = 0.5  # the contract's 10 and 30 s, shortened for the self-test
    BODY_SECONDS = 0.5
    lenient: Rules = frozenset()

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.address = Address("127.0.0.1", self._listener.getsockname()[1])
        self._open: set[socket.socket] = set()
        self._pool = ThreadPoolExecutor(THREADS)
        self._acceptor = threading.Thread(target=self._accept)
        self._acceptor.start()

    def stop(self) -> None:
        """Close the listener and every connection, and wait for the threads."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in list(self._open):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        self._pool.shutdown()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self._open.add(sock)
            self.dispatch(sock)

    def dispatch(self, sock: socket.socket) -> None:
        """Give a connection its thread."""
        self._pool.submit(self.connection, sock)

    def connection(self, sock: socket.socket) -> None:
        """Serve a connection to its end."""
        stream = Stream(sock)
        try:
            while self.one_request(stream):
                pass
        except Gone:
            pass
        finally:
            self.close(stream)
            self._open.discard(sock)

    def close(self, stream: Stream) -> None:
        """End a connection so that the client can still read its answer."""
        stream.close_gently()

    def one_request(self, stream: Stream) -> bool:
        """Serve one request; True if the connection goes on."""
        request = Request()
        try:
            request = self.read_request(stream)
            keep = self.keeps(request)
            return self.respond(request, stream, keep) and keep
        except Refused as refused:
            self.write_answer(stream, self.refusal(refused, request), request, False)
        except Late:
            self.late(stream)
        return False

    def late(self, stream: Stream) -> None:
        """Answer a client that missed a deadline."""
        self.write_answer(
            stream, self.refusal(Refused(408, "too late"), Request()), Request(), False
        )

    # Reading

    def read_request(self, stream: Stream) -> Request:
        """Read one request. Raises Refused, Late or Gone."""
        head = self.read_head(stream)
        try:
            request = parse_head(head, self.lenient)
            length = self.length_of(request)
        except BrokenHead as error:
            raise Malformed(400, f"malformed request: {error}") from None
        both_let_pass = length is not None and "length_and_coding" in self.lenient
        if request.header("transfer-encoding") is not None and not both_let_pass:
            raise Refused(self.TRANSFER_CODING, "transfer codings are not understood")
        if length is None:
            if request.method == "POST":
                raise Refused(411, "a POST needs a Content-Length")
            length = 0
        if length > self.BODY_BYTES:
            raise Refused(413, "the body is too large")
        stream.deadline = time.monotonic() + self.BODY_SECONDS
        self.encourage(request, stream, length)
        request.body = self.read_body(stream, length)
        return request

    def read_head(self, stream: Stream) -> bytes:
        """Read up to the empty line, and return what is before it."""
        stream.deadline = time.monotonic() + self.HEAD_SECONDS
        self.skip_empty_lines(stream)
        ends = (b"\r\n\r\n", b"\n\n", b"\n\r\n")  # a bare LF ends it too, and is then refused
        while not (found := [i for end in ends if (i := stream.buffer.find(end)) >= 0]):
            if len(stream.buffer) > self.HEAD_BYTES:
                raise Refused(self.HEAD_TOO_LARGE, "the head is too large")
            stream.fill()
        start = min(found)
        if start > self.HEAD_BYTES:
            raise Refused(self.HEAD_TOO_LARGE, "the head is too large")
        separator = next(e for e in ends if stream.buffer.startswith(e, start))
        return stream.take(start + len(separator))[:start]

    def skip_empty_lines(self, stream: Stream) -> None:
        """Drop CRLF in front of a request line (RFC 9112, section 2.2)."""
        while True:
            while len(stream.buffer) < 2:
                stream.fill()
            if not stream.buffer.startswith(b"\r\n"):
                return
            stream.take(2)

    def length_of(self, request: Request) -> int | None:
        """Return the body's length, None if it is not given."""
        return body_length(request, self.lenient)

    def encourage(self, request: Request, stream: Stream, length: int) -> None:
        """Say 100 Continue to a client that waits for it."""
        waits = (request.header("expect") or "").lower() == "100-continue"
        if waits and len(stream.buffer) < length:
            stream.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def read_body(self, stream: Stream, length: int) -> bytes:
        """Read the body."""
        return stream.take(length)

    def keeps(self, request: Request) -> bool:
        """Whether the connection stays open: only for a client that asked for it."""
        tokens = [t.strip().lower() for v in request.values("connection") for t in v.split(",")]
        return "keep-alive" in tokens and "close" not in tokens

    # Answering

    def respond(self, request: Request, stream: Stream, keep: bool) -> bool:
        """Answer a request; False if the connection must end. Raises Refused."""
        self.write_answer(stream, self.answer(request), request, keep)
        return True

    def answer(self, request: Request) -> Answer:
        """Return the answer of the route. Raises Refused."""
        raise NotImplementedError

    def refusal(self, refused: Refused, request: Request) -> Answer:
        """Return the answer that an error is."""
        raise NotImplementedError

    def write_answer(self, stream: Stream, answer: Answer, request: Request, keep: bool) -> None:
        """Send an answer."""
        stream.write(self.answer_bytes(answer, request, keep))

    def answer_bytes(self, answer: Answer, request: Request, keep: bool) -> bytes:
        """Return an answer's bytes."""
        fields = [
            ("Content-Type", answer.content_type),
            ("Content-Length", str(self.announced(answer.body))),
            ("Connection", self.connection_value(keep)),
            *answer.fields,
        ]
        body = b"" if request.method == "HEAD" else answer.body
        return self.head_bytes(answer.status, fields) + body

    def announced(self, body: bytes) -> int:
        """Return what Content-Length says."""
        return len(body)

    def connection_value(self, keep: bool) -> str:
        """Return what Connection says."""
        return "keep-alive" if keep else "close"

    def head_bytes(self, status: int, fields: list[tuple[str, str]]) -> bytes:
        """Return a status line and fields as bytes."""
        lines = [f"HTTP/1.1 {status} {REASONS[status]}", *(f"{n}: {v}" for n, v in fields)]
        return "".join(f"{line}\r\n" for line in [*lines, ""]).encode("latin-1")
