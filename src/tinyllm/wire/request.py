"""Read HTTP/1.1 requests from bytes (RFC 9112); no sockets here.

The parser holds the bytes it was fed and answers `next_request()` with a whole request, or None
while bytes are missing. It never guesses: a broken rule raises the HttpError that names it, and
from then on every call does, because after a broken request no byte's meaning is known. What
belongs to no request yet stays in the parser for the next one (keep-alive, pipelining).
"""

from __future__ import annotations

import enum
from typing import Protocol

from tinyllm.wire.buffer import ReceiveBuffer
from tinyllm.wire.errors import ClientGone, HttpError
from tinyllm.wire.grammar import ABSOLUTE_FORM
from tinyllm.wire.head import FieldIndex, Fields, Head, expects_continue, index_fields, parse_head

MAX_HEAD_BYTES = 16 * 1024  # request line and fields; a client cannot make us hold more
MAX_BODY_BYTES = 1024 * 1024
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Request:
    """One request, whole. Its attributes are not to be changed.

    `method`, `target` and `version` ("1.0" or "1.1") are ASCII text as sent, `body` is bytes.
    `fields` are the (name, value) pairs as bytes, in order, as sent, outer white space removed.
    """

    __slots__ = ("_fields", "_index", "body", "method", "target", "version")

    def __init__(
        self,
        method: str,
        target: str,
        fields: Fields,
        body: bytes = b"",
        version: str = "1.1",
        index: FieldIndex | None = None,
    ) -> None:
        self.method = method
        self.target = target
        self.version = version
        self.body = body
        self._fields = fields
        self._index = index_fields(fields) if index is None else index

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The fields as text, a character for each byte (latin-1): UTF-8 is not decoded."""
        return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self._fields]

    def header(self, name: str) -> str | None:
        """Return the first value under a name, ASCII case ignored, as latin-1; None if absent."""
        value = self._index.get(name.encode("ascii", "replace").lower())
        return None if value is None else value.decode("latin-1")

    def header_values(self, name: str) -> list[str]:
        """Return all values under a name, in order, as latin-1."""
        key = name.encode("ascii", "replace").lower()
        if key not in self._index:
            return []
        return [value.decode("latin-1") for field, value in self._fields if field.lower() == key]

    @property
    def path(self) -> str:
        """The target's path, not decoded; also that of an absolute-form target."""
        if self.target[0] == "/":
            return self.target.partition("?")[0]
        absolute = ABSOLUTE_FORM.fullmatch(self.target.encode("ascii"))
        return self.target if absolute is None else absolute[1].decode("ascii") or "/"

    def query(self, key: str) -> str | None:
        """Return the first value of `key` in the query, not decoded; None if the key is absent."""
        for pair in self.target.partition("?")[2].split("&"):
            name, _, value = pair.partition("=")
            if name == key:
                return value
        return None

    @property
    def wants_keep_alive(self) -> bool:
        """Whether the client itself sent the Connection option keep-alive, and not close."""
        if b"connection" not in self._index:
            return False
        values = b",".join(value for name, value in self._fields if name.lower() == b"connection")
        options = {option.strip(b" \t") for option in values.lower().split(b",")}
        return b"keep-alive" in options and b"close" not in options

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Request):
            return NotImplemented
        return self._key() == other._key()

    __hash__ = None  # type: ignore[assignment]  # it holds a list

    def _key(self) -> tuple[str, str, str, Fields, bytes]:
        return self.method, self.target, self.version, self._fields, self.body

    def __repr__(self) -> str:
        return f"<Request {self.method} {self.target} ({len(self.body)} bytes)>"


class ParserState(enum.Enum):
    """Which deadline applies to the bytes that are missing."""

    IDLE = "no byte of a request seen"
    HEAD = "the head has begun"
    BODY = "the head was accepted, its body is not whole"


class RequestParser:
    """Bytes in, requests out: one per connection."""

    __slots__ = ("_buffer", "_ended", "_error", "_head", "_max_body_bytes")

    def __init__(
        self, max_head_bytes: int = MAX_HEAD_BYTES, max_body_bytes: int = MAX_BODY_BYTES
    ) -> None:
        self._buffer = ReceiveBuffer(max_head_bytes)
        self._max_body_bytes = max_body_bytes
        self._head: Head | None = None  # accepted, its body not yet whole
        self._error: HttpError | None = None
        self._ended = False

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream; `b""` says that it has ended."""
        self._buffer.data += data
        if not data:
            self._ended = True

    def next_request(self) -> Request | None:
        """Return the next whole request; None while bytes are missing.

        Raises HttpError, the same one from then on: ClientGone when the stream ended and no whole
        request is left, else the error of the first rule that was broken.
        """
        if self._error is not None:
            raise self._error
        try:
            request = self._maybe_take_request()
        except HttpError as error:
            self._error = error
            raise
        if request is None and self._ended:
            self._error = ClientGone(f"the client closed: {self.state.value}")
            raise self._error
        return request

    def _maybe_take_request(self) -> Request | None:
        buffer = self._buffer
        if (head := self._head) is None:
            end = buffer.maybe_find_head()
            if end is None:
                return None
            head = parse_head(buffer.data, end, self._max_body_bytes)
            buffer.drop(end)
        body = b""
        if head.body_length:
            taken = buffer.maybe_take_exactly(head.body_length)
            if taken is None:
                self._head = head
                return None
            self._head = None
            body = taken
        method, target, version, fields, index, _ = head
        return Request(
            method.decode("ascii"),
            target.decode("ascii"),
            fields,
            body,
            version.decode("ascii"),
            index,
        )

    @property
    def state(self) -> ParserState:
        """Which deadline applies; of the bytes that `next_request` has already looked at."""
        if self._head is not None:
            return ParserState.BODY
        # A lone CR may be half of an empty line, which is no byte of a request.
        data = self._buffer.data
        return ParserState.IDLE if not data or data == b"\r" else ParserState.HEAD

    @property
    def expects_continue(self) -> bool:
        """Whether the client waits for `CONTINUE`: true until the body is whole, answer it once."""
        return self._head is not None and expects_continue(self._head)

    @property
    def buffered(self) -> int:
        """How many bytes are held that no request has taken."""
        return len(self._buffer.data)

    @property
    def missing_body_bytes(self) -> int:
        """How many bytes the body of the accepted head still lacks; 0 while there is none."""
        return 0 if self._head is None else self._head.body_length - len(self._buffer.data)


class ByteReader(Protocol):
    """A blocking binary reader: io.BytesIO, socket.makefile("rb"), any io.BufferedReader."""

    def readline(self, size: int, /) -> bytes:
        """Return bytes up to and with the next LF, at most `size`; b"" at the end."""

    def read(self, size: int, /) -> bytes | None:
        """Return up to `size` bytes; b"" at the end."""


def read_request(reader: ByteReader) -> Request:
    """Return the next request from a blocking reader.

    Raises HttpError; its `status` is what to answer, 0 when nobody is left to answer.

    It takes from the reader what belongs to the request and not a byte more: the head line by line,
    then the body by its length. So the next request of a pipelining client is still in the reader,
    for the next call. After an error the reader stands somewhere in the broken request.
    """
    parser = RequestParser()
    while (request := parser.next_request()) is None:
        missing = parser.missing_body_bytes
        data = reader.read(missing) if missing else reader.readline(MAX_HEAD_BYTES + 1)
        parser.feed(data or b"")
    return request
