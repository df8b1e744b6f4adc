"""Read an HTTP/1.1 response as RFC 9112 writes it, and nothing that only looks like it.

The reader knows the three ways a body can end (section 6.3: a length, chunks, the close) and
keeps, for every byte of the body, where it lay in what came over the wire: with chunks the two
differ, and a mark must point at the real place.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from tinyllm.conformance.client import Connection
from tinyllm.conformance.evidence import CheckFailed, Exchange, Mark, NoAnswer, check, fail
from tinyllm.conformance.strictjson import JsonBroken, read_json

MAX_HEAD_BYTES: Final = 64 * 1024
MAX_LINE_BYTES: Final = 16 * 1024

STATUS_LINE: Final = re.compile(rb"HTTP/(1\.[01]) ([1-5][0-9][0-9]) [\t \x21-\x7e\x80-\xff]*")
FIELD_LINE: Final = re.compile(
    rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t \x21-\x7e\x80-\xff]*?)[ \t]*"
)
CHUNK_LINE: Final = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(;[\t \x21-\x7e\x80-\xff]*)?")


class Framing(Enum):
    """How the reader knows where the body ends (RFC 9112, section 6.3)."""

    NONE = "no body"
    LENGTH = "Content-Length"
    CHUNKED = "chunked"
    CLOSE = "close of the connection"


@dataclass(slots=True)
class Response:
    """One response: head, body, and where each lies in its exchange."""

    exchange: Exchange
    status: int
    version: str
    fields: list[tuple[str, str, Mark]]  # name as sent, value, the field's line
    head: Mark
    status_line: Mark
    interim: list[int] = field(default_factory=list)  # the 1xx that came before
    framing: Framing = Framing.NONE
    body: bytearray = field(default_factory=bytearray)
    pieces: list[tuple[int, int]] = field(default_factory=list)  # (offset in body, in exchange)

    def header(self, name: str) -> str | None:
        """Return the first field of this name, in any case, or None."""
        return next((v for n, v, _ in self.fields if n.lower() == name.lower()), None)

    def header_mark(self, name: str) -> Mark:
        """Return the field's line, or the whole head if there is none."""
        found = (m for n, _, m in self.fields if n.lower() == name.lower())
        return next(found, self.head)

    def has_token(self, name: str, token: str) -> bool:
        """Whether a comma-separated field holds this token (RFC 9110, section 5.6.1)."""
        values = [v for n, v, _ in self.fields if n.lower() == name.lower()]
        return token in [part.strip().lower() for v in values for part in v.split(",")]

    @property
    def stays_open(self) -> bool:
        """Whether the server promised a further response here (RFC 9112, section 9.3)."""
        if self.has_token("Connection", "close") or self.framing is Framing.CLOSE:
            return False
        return self.version == "1.1" or self.has_token("Connection", "keep-alive")

    @property
    def media_type(self) -> str:
        """The Content-Type without its parameters, in lower case."""
        return (self.header("Content-Type") or "").split(";")[0].strip().lower()

    def raw_offset(self, offset: int) -> int:
        """Return where a byte of the body lay in what came over the wire."""
        index = bisect.bisect_right(self.pieces, offset, key=lambda piece: piece[0])
        start, raw = self.pieces[index - 1] if index else (0, self.head.end)
        return raw + offset - start

    def body_mark(self, start: int = 0, end: int | None = None) -> Mark:
        """Return a mark on body[start:end]."""
        last = len(self.body) if end is None else end
        stop = self.raw_offset(last - 1) + 1 if last > start else self.raw_offset(start)
        return Mark(self.exchange, self.raw_offset(start), stop)

    def json(self) -> object:
        """Return the body as a JSON value; a body that is none breaks the case."""
        try:
            return read_json(bytes(self.body))
        except JsonBroken as error:
            offset = min(error.offset, max(0, len(self.body) - 1))
            mark = self.body_mark(offset, min(offset + 1, len(self.body)))
            raise CheckFailed(f"the body is not JSON: {error.reason}", mark) from None


def read_response(connection: Connection, method: str = "GET") -> Response:
    """Read the next whole response on the connection."""
    response = read_head(connection, method)
    for _ in body_pieces(connection, response):
        pass
    return response


def read_head(connection: Connection, method: str = "GET") -> Response:
    """Read status line and fields, past any 1xx; the body is left for `body_pieces`."""
    interim: list[int] = []
    while (response := _read_one_head(connection)).status // 100 == 1:
        interim.append(response.status)
        check(len(interim) < 20, "1xx responses without an end", response.head)
    response.interim = interim
    response.framing = _framing(response, method)
    return response


def body_pieces(connection: Connection, response: Response) -> Iterator[bytes]:
    """Yield the body's bytes as they arrive, transfer coding removed; they stay in `body` too."""
    match response.framing:
        case Framing.LENGTH:
            yield from _take(connection, response, int(response.header("Content-Length") or 0))
        case Framing.CHUNKED:
            yield from _chunks(connection, response)
        case Framing.CLOSE:
            yield from _until_close(connection, response)


def _read_one_head(connection: Connection) -> Response:
    exchange, start = connection.exchange, connection.position
    line, status_line = _line(connection, "the status line")
    parts = STATUS_LINE.fullmatch(line)
    if parts is None:
        fail("not a status line (RFC 9112, section 4)", status_line)
    fields = []
    while True:
        line, mark = _line(connection, "the header fields")
        if line == b"":
            break
        found = FIELD_LINE.fullmatch(line)
        if found is None:
            fail("not a field line (RFC 9112, section 5)", mark)
        fields.append((found[1].decode("ascii"), found[2].decode("latin-1"), mark))
        check(mark.end - start <= MAX_HEAD_BYTES, "a head without an end", mark)
    head = Mark(exchange, start, connection.position)
    version, status = parts[1].decode("ascii"), int(parts[2])
    return Response(exchange, status, version, fields, head, status_line)


def _framing(response: Response, method: str) -> Framing:
    if method == "HEAD" or response.status in (204, 304):
        return Framing.NONE
    lengths = [(v, m) for n, v, m in response.fields if n.lower() == "content-length"]
    if response.header("Transfer-Encoding") is not None:
        mark = response.header_mark("Transfer-Encoding")
        check(not lengths, "both Content-Length and Transfer-Encoding (RFC 9112, 6.2)", mark)
        check(response.version == "1.1", "chunks in an HTTP/1.0 response (RFC 9112, 6.1)", mark)
        check(
            (response.header("Transfer-Encoding") or "").lower() == "chunked",
            "a transfer coding that nobody asked for (RFC 9112, section 6.1)",
            mark,
        )
        return Framing.CHUNKED
    if not lengths:
        return Framing.CLOSE
    value, mark = lengths[0]
    check(len(lengths) == 1, "more than one Content-Length", mark)
    good = re.fullmatch("[0-9]{1,15}", value) is not None
    check(good, "Content-Length is not a decimal number (RFC 9110, section 8.6)", mark)
    return Framing.LENGTH


def _line(connection: Connection, what: str) -> tuple[bytes, Mark]:
    """Take one CRLF line; its mark spans the line without its end."""
    received, start = connection.exchange.received, connection.position
    while (end := received.find(b"\n", start)) < 0:
        mark = connection.exchange.mark(start)
        check(len(received) - start <= MAX_LINE_BYTES, f"no line end in {what}", mark)
        if not connection.receive():
            if len(received) == start:
                raise NoAnswer("the connection closed without an answer", connection.exchange)
            fail(f"the connection closed inside {what}", connection.exchange.mark(start))
    mark = connection.exchange.mark(start, end)
    check(end > start and received[end - 1] == 0x0D, f"a line of {what} ends without CR", mark)
    connection.position = end + 1
    line = bytes(received[start : end - 1])
    return line, connection.exchange.mark(start, end - 1)


def _take(connection: Connection, response: Response, count: int) -> Iterator[bytes]:
    """Yield exactly `count` bytes of the body."""
    left = count
    while left > 0:
        piece = _available(connection, response, left)
        if not piece:
            message = f"the connection closed {left} bytes before the body's announced end"
            fail(message, connection.exchange)
        left -= len(piece)
        yield piece


def _until_close(connection: Connection, response: Response) -> Iterator[bytes]:
    while piece := _available(connection, response, 1 << 30):
        yield piece


def _available(connection: Connection, response: Response, limit: int) -> bytes:
    """Take what is there, at most `limit` bytes; read once if nothing is. Empty at the close."""
    received = connection.exchange.received
    if connection.position == len(received) and not connection.receive():
        return b""
    piece = bytes(received[connection.position : connection.position + limit])
    response.pieces.append((len(response.body), connection.position))
    response.body += piece
    connection.position += len(piece)
    return piece


def _chunks(connection: Connection, response: Response) -> Iterator[bytes]:
    """Yield the data of each chunk (RFC 9112, section 7.1); trailer fields are read and dropped."""
    while True:
        line, mark = _line(connection, "a chunk's size")
        size = CHUNK_LINE.fullmatch(line)
        if size is None:
            fail("not a chunk size (RFC 9112, section 7.1)", mark)
        if int(size[1], 16) == 0:
            break
        yield from _take(connection, response, int(size[1], 16))
        after, mark = _line(connection, "a chunk's end")
        check(after == b"", "chunk data longer than its size", mark)
    while _line(connection, "the trailer fields")[0] != b"":
        pass
