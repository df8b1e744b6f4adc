"""Read HTTP/1.1 requests from bytes (RFC 9112); no sockets here.

The parser holds the bytes it was fed and answers `next_request()` with a whole request, or None
while bytes are missing. It never guesses: a broken rule raises the HttpError that names it, and
from then on every call does, because after a broken request no byte's meaning is known. What
belongs to no request yet stays in the parser for the next one (keep-alive, pipelining).
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Protocol

from tinyllm.wire.buffer import ReceiveBuffer
from tinyllm.wire.errors import ClientGone, HttpError
from tinyllm.wire.head import parse_head
from tinyllm.wire.message import Request

__all__ = [
    "CONTINUE",
    "MAX_BODY_BYTES",
    "MAX_HEAD_BYTES",
    "ByteReader",
    "ParserState",
    "Request",
    "RequestParser",
    "read_request",
]

MAX_HEAD_BYTES = 16 * 1024  # request line and fields; a client cannot make us hold more
MAX_BODY_BYTES = 1024 * 1024
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class ParserState(enum.Enum):
    """Which deadline applies to the bytes that are missing."""

    IDLE = "no byte of a request seen"
    HEAD = "the head has begun"
    BODY = "the head was accepted, its body is not whole"


class RequestParser:
    """Bytes in, requests out: one per connection."""

    __slots__ = (
        "_body_start",
        "_buffer",
        "_end",
        "_ended",
        "_error",
        "_max_body_bytes",
        "_request",
    )

    def __init__(
        self, max_head_bytes: int = MAX_HEAD_BYTES, max_body_bytes: int = MAX_BODY_BYTES
    ) -> None:
        self._buffer = ReceiveBuffer(max_head_bytes)
        self._max_body_bytes = max_body_bytes
        self._request: Request | None = None  # its head was accepted, its body is not whole
        self._body_start = 0  # offsets of that request's body in the buffer
        self._end = 0
        self._error: HttpError | None = None
        self._ended = False

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream; `b""` says that it has ended."""
        if data:
            self._buffer.append(data)
        else:
            self._ended = True

    def next_request(self) -> Request | None:
        """Return the next whole request; None while bytes are missing.

        Raises HttpError, the same one from then on: ClientGone when the stream ended and no whole
        request is left, else the error of the first rule that was broken.
        """
        if self._error is not None:
            raise self._error
        buffer = self._buffer
        try:
            request = self._request
            if request is None and buffer.unchecked_line and (end := buffer.maybe_find_head()):
                request, body_length = parse_head(buffer.data, end, self._max_body_bytes)
                self._request, self._body_start, self._end = request, end, end + body_length
            if request is not None and len(buffer.data) >= self._end:
                request.body = buffer.take(self._body_start, self._end)
                self._request = None
                return request
            if self._ended:
                raise ClientGone(f"the client closed: {self.state.value}")
        except HttpError as error:
            self._error = error
            raise
        return None

    @property
    def state(self) -> ParserState:
        """Which deadline applies, as of the last `next_request`."""
        if self._request is not None:
            return ParserState.BODY
        data = self._buffer.data  # a lone CR may be half of an empty line: no byte of a request
        return ParserState.IDLE if not data or data == b"\r" else ParserState.HEAD

    @property
    def pending(self) -> Request | None:
        """The request whose head was accepted and whose body is not whole, without its body."""
        return self._request

    @property
    def expects_continue(self) -> bool:
        """Whether the client waits for `CONTINUE`: true until the body is whole, answer it once."""
        return self._request is not None and self._request.expects_continue

    @property
    def buffered(self) -> int:
        """How many bytes are held that belong to no accepted head and no whole request."""
        return len(self._buffer.data) - (0 if self._request is None else self._body_start)

    @property
    def missing_body_bytes(self) -> int:
        """How many bytes the body of the accepted head still lacks; 0 while there is none."""
        return 0 if self._request is None else self._end - len(self._buffer.data)


class ByteReader(Protocol):
    """A blocking binary reader: io.BytesIO, socket.makefile("rb"), any io.BufferedReader."""

    def readline(self, size: int, /) -> bytes | None:
        """Return bytes up to and with the next LF, at most `size`; b"" at the end."""

    def read(self, size: int, /) -> bytes | None:
        """Return up to `size` bytes; b"" at the end."""


def read_request(reader: ByteReader, on_head: Callable[[Request], None] | None = None) -> Request:
    """Return the next request from a blocking reader.

    Raises HttpError; its `status` is what to answer, 0 when nobody is left to answer.

    It takes from the reader what belongs to the request and not a byte more: the head line by line,
    then the body by its length. So the next request of a pipelining client is still in the reader,
    for the next call. After an error the reader stands somewhere in the broken request.

    `on_head` gets the request, without its body, when the head was accepted and a body is to be
    read: the place to send `CONTINUE` to a client that waits for it, to start another deadline, or
    to raise instead of reading the body.
    """
    parser = RequestParser()
    while (request := parser.next_request()) is None:
        if parser.pending is None:
            data = reader.readline(MAX_HEAD_BYTES + 1)
        else:
            if on_head is not None:
                on_head(parser.pending)
                on_head = None
            data = reader.read(parser.missing_body_bytes)
        if data is None:
            raise BlockingIOError("read_request needs a reader that blocks")
        parser.feed(data)
    return request
