"""Write HTTP/1.1 responses: pure functions that return the bytes, and a writer beside each.

No caller can split a response: names and values are checked, and the fields that say where the
body ends are written here alone (RFC 9112, section 6.3). Two ways to end a body are offered:
Content-Length, which counts bytes, and, for an event stream, the close of the connection.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Protocol

from tinyllm.wire.grammar import FIELD_VALUE, TOKEN

# The IANA registry of HTTP status codes, those in use.
REASON_PHRASES = {
    100: "Continue",
    101: "Switching Protocols",
    102: "Processing",
    103: "Early Hints",
    200: "OK",
    201: "Created",
    202: "Accepted",
    203: "Non-Authoritative Information",
    204: "No Content",
    205: "Reset Content",
    206: "Partial Content",
    207: "Multi-Status",
    208: "Already Reported",
    226: "IM Used",
    300: "Multiple Choices",
    301: "Moved Permanently",
    302: "Found",
    303: "See Other",
    304: "Not Modified",
    305: "Use Proxy",
    307: "Temporary Redirect",
    308: "Permanent Redirect",
    400: "Bad Request",
    401: "Unauthorized",
    402: "Payment Required",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    407: "Proxy Authentication Required",
    408: "Request Timeout",
    409: "Conflict",
    410: "Gone",
    411: "Length Required",
    412: "Precondition Failed",
    413: "Content Too Large",
    414: "URI Too Long",
    415: "Unsupported Media Type",
    416: "Range Not Satisfiable",
    417: "Expectation Failed",
    421: "Misdirected Request",
    422: "Unprocessable Content",
    423: "Locked",
    424: "Failed Dependency",
    425: "Too Early",
    426: "Upgrade Required",
    428: "Precondition Required",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    451: "Unavailable For Legal Reasons",
    500: "Internal Server Error",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
    505: "HTTP Version Not Supported",
    506: "Variant Also Negotiates",
    507: "Insufficient Storage",
    508: "Loop Detected",
    511: "Network Authentication Required",
}

# Written here alone: a second one would contradict the first about where the message ends.
_OWN_FIELDS = {"content-type", "content-length", "connection", "transfer-encoding"}

ExtraFields = Iterable[tuple[str, str]]


class ByteWriter(Protocol):
    """A blocking binary writer; like a raw socket file, it may take less than it was given."""

    def write(self, data: bytes | memoryview, /) -> int | None:
        """Write and return how many bytes were taken."""

    def flush(self) -> object:
        """Send on what a buffer holds."""


def response_bytes(
    status: int,
    content_type: str,
    extra: ExtraFields = (),
    body: bytes = b"",
    *,
    connection: str = "close",
    head_only: bool = False,
) -> bytes:
    """Return one whole response.

    `head_only` answers a HEAD: the fields of the response, Content-Length too, without its body.
    Raises ValueError for a field that could not be sent as one line, for one that is written here
    anyway, and for a status that has no content (1xx, 204).
    """
    fields = _extra_lines(extra) if extra else ""
    start, end = _frame(status, content_type, connection)
    head = f"{start}{len(body)}\r\n{fields}{end}".encode("latin-1")
    return head if head_only else head + body


def sse_head_bytes(extra: ExtraFields = ()) -> bytes:
    """Return the head of an event stream, whose body ends when the connection closes."""
    fields = _extra_lines(extra) if extra else ""
    return (
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
        f"{fields}Connection: close\r\n\r\n"
    ).encode("latin-1")


def write_response(
    writer: ByteWriter,
    status: int,
    content_type: str,
    extra: ExtraFields = (),
    body: bytes = b"",
    *,
    connection: str = "close",
    head_only: bool = False,
) -> None:
    """Write one whole response and flush it; see `response_bytes`."""
    data = response_bytes(
        status, content_type, extra, body, connection=connection, head_only=head_only
    )
    write_all(writer, data)


def write_sse_head(writer: ByteWriter, extra: ExtraFields = ()) -> None:
    """Write the head of an event stream and flush it; see `sse_head_bytes`."""
    write_all(writer, sse_head_bytes(extra))


def write_all(writer: ByteWriter, data: bytes) -> None:
    """Write all bytes, however few the writer takes at a time, and flush."""
    rest = memoryview(data)
    while rest:
        taken = writer.write(rest)
        if taken is None:
            raise BlockingIOError("this needs a writer that blocks")
        rest = rest[taken:]
    writer.flush()


@lru_cache(maxsize=256)
def _frame(status: int, content_type: str, connection: str) -> tuple[str, str]:
    """Return what stands before the length and after the extra fields."""
    if not 200 <= status <= 599 or status == 204:
        raise ValueError(f"status {status} is not that of a final response with content")
    reason = REASON_PHRASES.get(status, "")
    start = f"HTTP/1.1 {status} {reason}\r\n{_line('Content-Type', content_type)}Content-Length: "
    return start, _line("Connection", connection) + "\r\n"


def _extra_lines(extra: ExtraFields) -> str:
    lines = []
    for name, value in extra:
        if name.lower() in _OWN_FIELDS:
            raise ValueError(f"the field {name} is written by the framing itself")
        lines.append(_line(name, value))
    return "".join(lines)


def _line(name: str, value: str) -> str:
    """Return one field line. RFC 9110, section 5.5: no CR, LF, NUL or other control inside."""
    if TOKEN.fullmatch(name.encode("latin-1", "replace")) is None:
        raise ValueError(f"{name!r} is not a field name")
    try:
        sendable = FIELD_VALUE.fullmatch(value.encode("latin-1")) is not None
    except UnicodeEncodeError:
        sendable = False
    if not sendable or value != value.strip(" \t"):
        raise ValueError(f"{value!r} cannot be sent as the value of {name}")
    return f"{name}: {value}\r\n"
