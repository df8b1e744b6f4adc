"""The body of a request, whole and unpacked, however it came; every size has a bound.

Clients of all kinds come here, and some send their bodies in chunks (RFC 9112, section 7.1),
which the engine's own HTTP layer refuses; so this reads both framings, and undoes gzip.
"""

from __future__ import annotations

import zlib
from email.message import Message
from io import BufferedIOBase

MAX_BODY_BYTES = 20 * 1024 * 1024  # packed and unpacked; the official collector's default
MAX_LINE_BYTES = 1024  # of a chunk's head or a trailer
MAX_TRAILERS = 100

_DIGITS = {10: frozenset("0123456789"), 16: frozenset("0123456789abcdefABCDEF")}


class RefusedRequest(Exception):
    """A request that is answered with an error status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def read_body(headers: Message, reader: BufferedIOBase) -> bytes:
    """Return the body as it is framed (RFC 9112, section 6.3).

    Raises RefusedRequest, after which what is left of the connection has no meaning.
    """
    lengths = headers.get_all("Content-Length", [])
    coding = headers.get("Transfer-Encoding")
    if coding is None:
        if len(lengths) != 1:
            raise RefusedRequest(411, "a body needs one Content-Length, or chunks")
        return _read_exactly(reader, _number(lengths[0], 10))
    if coding.lower() != "chunked" or lengths:
        raise RefusedRequest(400, "the body's length is given in more than one way")
    return _read_chunks(reader)


def unpacked(body: bytes, coding: str) -> bytes:
    """Undo the content coding: gzip or none."""
    if coding.lower() in ("", "identity"):
        return body
    if coding.lower() != "gzip":
        raise RefusedRequest(415, f"the content coding {coding[:100]!r} is not gzip")
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)  # 16: with gzip's head and checksum
    try:
        data = unpacker.decompress(body, MAX_BODY_BYTES + 1)
    except zlib.error as problem:
        raise RefusedRequest(400, f"the body is no gzip: {problem}") from None
    if len(data) > MAX_BODY_BYTES:
        raise RefusedRequest(413, f"the body unpacks to more than {MAX_BODY_BYTES} bytes")
    if not unpacker.eof or unpacker.unused_data:
        raise RefusedRequest(400, "the body is not one whole gzip member")
    return data


def _read_chunks(reader: BufferedIOBase) -> bytes:
    """Read a chunked body (RFC 9112, section 7.1); extensions and trailers are dropped."""
    body = bytearray()
    while size := _number(_line(reader).partition(";")[0].rstrip(" \t"), 16):
        body += _read_exactly(reader, size, MAX_BODY_BYTES - len(body))
        if _line(reader):
            raise RefusedRequest(400, "a chunk is longer than it says")
    for _ in range(MAX_TRAILERS):
        if not _line(reader):
            return bytes(body)
    raise RefusedRequest(400, f"more than {MAX_TRAILERS} trailers")


def _line(reader: BufferedIOBase) -> str:
    line = reader.readline(MAX_LINE_BYTES)
    if not line.endswith(b"\r\n"):
        raise RefusedRequest(400, "a line of the chunked body is too long or not ended by CRLF")
    return line[:-2].decode("latin-1")


def _number(text: str, base: int) -> int:
    """Return the value of digits, which int() alone would not insist on."""
    digits = _DIGITS[base]
    if not 0 < len(text) <= 16 or not set(text) <= digits:
        raise RefusedRequest(400, f"{text[:40]!r} is no length")
    return int(text, base)


def _read_exactly(reader: BufferedIOBase, size: int, limit: int = MAX_BODY_BYTES) -> bytes:
    if size > limit:
        raise RefusedRequest(413, f"the body has more than {MAX_BODY_BYTES} bytes")
    data = reader.read(size)
    if len(data) < size:
        raise RefusedRequest(400, "the body ended early")
    return data
