"""Requests from bytes: whole, in pieces, one after another, and broken."""

from __future__ import annotations

import pytest

from tinyllm.wire import (
    BadRequest,
    ClientGone,
    HttpError,
    LengthRequired,
    ParserState,
    Request,
    RequestParser,
)

ECHO = (
    b"POST /echo?n=3&delay_ms=0 HTTP/1.1\r\n"
    b"Host: 127.0.0.1:8080\r\n"
    b"Content-Type: \t application/json \r\n"
    b"content-LENGTH: 14\r\n"
    b"\r\n"
    b'{"text":"h\xc3\xa9"}'
)


def parse(data: bytes) -> Request:
    parser = RequestParser()
    parser.feed(data)
    request = parser.next_request()
    assert request is not None
    return request


def test_parses_request_line_headers_and_body() -> None:
    request = parse(ECHO)
    assert request.method == "POST"
    assert request.target == "/echo?n=3&delay_ms=0"
    assert request.version == "1.1"
    assert request.path == "/echo"
    assert request.query("n") == "3"
    assert request.query("delay_ms") == "0"
    assert request.query("m") is None
    assert request.headers == [
        ("Host", "127.0.0.1:8080"),
        ("Content-Type", "application/json"),
        ("content-LENGTH", "14"),
    ]
    assert request.body == '{"text":"hé"}'.encode()


@pytest.mark.parametrize("size", range(1, len(ECHO) + 1))
def test_body_split_across_packets(size: int) -> None:
    parser = RequestParser()
    for start in range(0, len(ECHO), size):
        assert parser.next_request() is None
        parser.feed(ECHO[start : start + size])
    assert parser.next_request() == parse(ECHO)
    assert parser.buffered == 0
    assert parser.state is ParserState.IDLE


def test_bytes_after_a_request_are_the_next_one() -> None:
    parser = RequestParser()
    parser.feed(ECHO + b"\r\nGET /health HTTP/1.0\r\n\r\nGET /")
    assert parser.next_request() == parse(ECHO)
    assert parser.next_request() == parse(b"GET /health HTTP/1.0\r\n\r\n")
    assert parser.next_request() is None
    assert parser.buffered == len(b"GET /")
    assert parser.state is ParserState.HEAD


@pytest.mark.parametrize(
    ("data", "error"),
    [
        pytest.param(b"", ClientGone, id="closed-before-a-request"),
        pytest.param(b"GET / HT", ClientGone, id="closed-in-a-head"),
        pytest.param(ECHO[:-1], ClientGone, id="closed-in-a-body"),
        pytest.param(b"GET / HTTP/2.0\r\n\r\n", BadRequest, id="version"),
        pytest.param(b"POST / HTTP/1.1\r\nHost: a\r\n\r\n", LengthRequired, id="no-length"),
    ],
)
def test_a_broken_request_raises_the_same_error_from_then_on(
    data: bytes, error: type[HttpError]
) -> None:
    parser = RequestParser()
    parser.feed(data)
    parser.feed(b"")
    with pytest.raises(error) as first:
        parser.next_request()
    with pytest.raises(error) as second:
        parser.next_request()
    assert first.value is second.value
