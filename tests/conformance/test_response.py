"""Responses as RFC 9112 writes them, and those that only look like it."""

from __future__ import annotations

import pytest

from conformance.servers import connected, scripted, sends
from tinyllm.conformance.evidence import CheckFailed, Mark
from tinyllm.conformance.response import Framing, Response, read_response


def read(data: bytes, method: str = "GET") -> Response:
    """Return what the reader makes of these bytes."""
    with scripted(sends(data)) as address:
        connection = connected(address)
        try:
            return read_response(connection, method)
        finally:
            connection.close()


def marked(mark: Mark | None) -> bytes:
    assert mark is not None
    return bytes(mark.exchange.received[mark.start : mark.end])


OK = b"HTTP/1.1 200 OK\r\n"

GOOD = {
    "length": (OK + b"Content-Length: 2\r\n\r\nhi", Framing.LENGTH, b"hi"),
    "length, then more": (OK + b"content-length:2\r\n\r\nhiXX", Framing.LENGTH, b"hi"),
    "no body": (OK + b"Content-Length: 0\r\n\r\n", Framing.LENGTH, b""),
    "close": (OK + b"\r\nall of it", Framing.CLOSE, b"all of it"),
    "chunks": (
        OK
        + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\nA;x=y\r\n0123456789\r\n0\r\nX: y\r\n\r\n",
        Framing.CHUNKED,
        b"hi0123456789",
    ),
    "204": (b"HTTP/1.1 204 No Content\r\n\r\n", Framing.NONE, b""),
    "no reason": (b"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", Framing.LENGTH, b""),
    "after 100": (
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 1\r\n\r\nx",
        Framing.LENGTH,
        b"x",
    ),
}


@pytest.mark.parametrize(("data", "framing", "body"), GOOD.values(), ids=GOOD)
def test_the_body_ends_where_the_head_says(data: bytes, framing: Framing, body: bytes) -> None:
    response = read(data)
    assert (response.framing, bytes(response.body)) == (framing, body)


def test_a_head_answer_has_no_body_whatever_its_length() -> None:
    assert read(OK + b"Content-Length: 5\r\n\r\n", "HEAD").framing is Framing.NONE


BAD = {
    "no HTTP": (b"hello\r\n\r\n", "not a status line", b"hello"),
    "status of two digits": (b"HTTP/1.1 20 OK\r\n\r\n", "not a status line", b"HTTP/1.1 20 OK"),
    "HTTP/2": (b"HTTP/2 200 OK\r\n\r\n", "not a status line", b"HTTP/2 200 OK"),
    "bare LF": (b"HTTP/1.1 200 OK\n\n", "ends without CR", b"HTTP/1.1 200 OK"),
    "no colon": (OK + b"nonsense\r\n\r\n", "not a field line", b"nonsense"),
    "space before colon": (OK + b"A : b\r\n\r\n", "not a field line", b"A : b"),
    "length of letters": (OK + b"Content-Length: x\r\n\r\n", "decimal", b"Content-Length: x"),
    "negative length": (OK + b"Content-Length: -1\r\n\r\n", "decimal", b"Content-Length: -1"),
    "two lengths": (
        OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        "more than one",
        b"Content-Length: 1",
    ),
    "length and chunks": (
        OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "both",
        b"Transfer-Encoding: chunked",
    ),
    "another coding": (
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        "coding",
        b"Transfer-Encoding: gzip, chunked",
    ),
    "chunk size of letters": (
        OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "not a chunk size",
        b"xyz",
    ),
    "chunk longer than its size": (
        OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
        "longer than its size",
        b"b",
    ),
    "cut body": (OK + b"Content-Length: 5\r\n\r\nhi", "3 bytes before", b""),
    "cut head": (OK + b"Content-Le", "closed inside", b"Content-Le"),
    "nothing": (b"", "closed without an answer", b""),
    "a head without an end": (OK + b"A: " + b"x" * 20000, "no line end", b"A: " + b"x" * 20000),
}


@pytest.mark.parametrize(("data", "reason", "part"), BAD.values(), ids=BAD)
def test_a_broken_response_is_refused_with_its_broken_part_marked(
    data: bytes, reason: str, part: bytes
) -> None:
    with pytest.raises(CheckFailed, match=reason) as failed:
        read(data)
    assert marked(failed.value.mark)[: len(part)] == part


def test_a_mark_in_a_chunked_body_points_at_the_bytes_on_the_wire() -> None:
    data = OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n"
    response = read(data)
    assert marked(response.body_mark(3, 5)) == b"de"
    assert marked(response.body_mark(1, 5)) == b"bc\r\n3\r\nde"


@pytest.mark.parametrize(
    ("head", "stays"),
    [
        (OK + b"Content-Length: 0\r\n\r\n", True),
        (OK + b"Content-Length: 0\r\nConnection: close\r\n\r\n", False),
        (OK + b"Content-Length: 0\r\nConnection: x, Close\r\n\r\n", False),
        (OK + b"\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n", True),
    ],
)
def test_what_a_head_promises_about_its_connection(head: bytes, stays: bool) -> None:
    assert read(head).stays_open is stays


def test_a_body_that_is_no_json_is_marked_at_the_byte_that_breaks_it() -> None:
    response = read(OK + b'Content-Length: 12\r\n\r\n{"a":"\xc3\xa9" 1}')
    with pytest.raises(CheckFailed, match="the body is not JSON") as failed:
        response.json()
    assert marked(failed.value.mark) == b"1"
