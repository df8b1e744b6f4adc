"""Responses as bytes: the specification's own, every status, and nothing that splits one."""

from __future__ import annotations

import io
from http import HTTPStatus

import pytest

from tinyllm.wire import (
    REASON_PHRASES,
    response_bytes,
    sse_head_bytes,
    write_response,
    write_sse_head,
)


def test_health_response_is_the_worked_example() -> None:
    assert response_bytes(200, "application/json", body=b'{"ok":true}') == (
        b"HTTP/1.1 200 OK\r\n"
        b"Content-Type: application/json\r\n"
        b"Content-Length: 11\r\n"
        b"Connection: close\r\n"
        b"\r\n"
        b'{"ok":true}'
    )


def test_stream_head_is_the_worked_example() -> None:
    assert sse_head_bytes() == (
        b"HTTP/1.1 200 OK\r\n"
        b"Content-Type: text/event-stream\r\n"
        b"Cache-Control: no-cache\r\n"
        b"Connection: close\r\n"
        b"\r\n"
    )


def test_extra_fields_stand_before_connection_in_their_order() -> None:
    extra = [("Allow", "GET"), ("X-Request-Id", "a b\t\u00e9")]
    assert response_bytes(405, "text/plain", extra, b"no", connection="keep-alive") == (
        b"HTTP/1.1 405 Method Not Allowed\r\n"
        b"Content-Type: text/plain\r\n"
        b"Content-Length: 2\r\n"
        b"Allow: GET\r\n"
        b"X-Request-Id: a b\t\xe9\r\n"
        b"Connection: keep-alive\r\n"
        b"\r\n"
        b"no"
    )
    assert b"\r\nAllow: GET\r\nX-Request-Id: a b\t\xe9\r\n" in sse_head_bytes(extra)


def test_content_length_counts_bytes() -> None:
    sent = response_bytes(200, "application/json", body='{"text":"hé","bytes":3}'.encode())
    assert b"\r\nContent-Length: 24\r\n" in sent


def test_answer_to_head_has_the_length_and_no_body() -> None:
    sent = response_bytes(200, "text/plain", body=b"12345", head_only=True)
    assert b"\r\nContent-Length: 5\r\n" in sent
    assert sent.endswith(b"\r\n\r\n")


def test_reason_phrases_are_those_of_the_registry() -> None:
    # The library's are the same, but for four that its older versions name as RFC 2616 did.
    changed = {
        413: "Content Too Large",
        414: "URI Too Long",
        416: "Range Not Satisfiable",
        422: "Unprocessable Content",
    }
    theirs = {status.value: status.phrase for status in HTTPStatus} | changed
    unused = {418: "I'm a Teapot", 510: "Not Extended"}
    assert theirs == REASON_PHRASES | unused


def test_status_without_a_phrase_keeps_its_space() -> None:
    # RFC 9112, section 4: status-line = HTTP-version SP status-code SP [ reason-phrase ]
    assert response_bytes(299, "text/plain").startswith(b"HTTP/1.1 299 \r\n")


@pytest.mark.parametrize("status", [0, 99, 100, 101, 199, 204, 600, -200])
def test_status_without_content_is_refused(status: int) -> None:
    # RFC 9110, section 8.6: no Content-Length in a 1xx or 204 response.
    with pytest.raises(ValueError, match="status"):
        response_bytes(status, "text/plain")


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("a\r\nSet-Cookie: b", id="crlf"),
        pytest.param("a\nb", id="lf"),
        pytest.param("a\rb", id="cr"),
        pytest.param("a\0b", id="nul"),
        pytest.param("a\x7fb", id="del"),
        pytest.param("a\x1bb", id="escape"),
        pytest.param(" a", id="space-first"),
        pytest.param("a\t", id="tab-last"),
        pytest.param("a\u010d", id="becomes-cr-lf-when-cut"),
        pytest.param("\ud800", id="surrogate"),
    ],
)
def test_value_that_is_not_one_line_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="cannot be sent"):
        response_bytes(200, "text/plain", [("X", value)])
    with pytest.raises(ValueError, match="cannot be sent"):
        response_bytes(200, value)
    with pytest.raises(ValueError, match="cannot be sent"):
        response_bytes(200, "text/plain", connection=value)
    with pytest.raises(ValueError, match="cannot be sent"):
        sse_head_bytes([("X", value)])


@pytest.mark.parametrize("name", ["", "X:", "X Y", "X\r\nY", "X\0", "é", "\u0158"])
def test_name_that_is_no_token_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not a field name"):
        response_bytes(200, "text/plain", [(name, "a")])
    with pytest.raises(ValueError, match="not a field name"):
        sse_head_bytes([(name, "a")])


@pytest.mark.parametrize(
    "name", ["Content-Length", "content-type", "TRANSFER-ENCODING", "Connection"]
)
def test_field_that_frames_the_message_is_written_once(name: str) -> None:
    with pytest.raises(ValueError, match="by the framing itself"):
        response_bytes(200, "text/plain", [(name, "1")])
    with pytest.raises(ValueError, match="by the framing itself"):
        sse_head_bytes([(name, "1")])


class Narrow(io.BytesIO):
    """A writer that takes three bytes at a time, as a socket with a full buffer may."""

    def __init__(self) -> None:
        super().__init__()
        self.flushed = b""

    def write(self, data: bytes | memoryview, /) -> int:  # type: ignore[override]
        return super().write(bytes(data[:3]))

    def flush(self) -> None:
        self.flushed = self.getvalue()


def test_writers_write_all_and_flush() -> None:
    writer = Narrow()
    write_response(writer, 404, "application/json", [("X", "y")], b"{}")
    write_sse_head(writer, [("X", "y")])
    assert writer.flushed == response_bytes(
        404, "application/json", [("X", "y")], b"{}"
    ) + sse_head_bytes([("X", "y")])


def test_writer_that_does_not_block_is_refused() -> None:
    class Full(Narrow):
        def write(self, data: bytes | memoryview, /) -> None:  # type: ignore[override]
            return None

    with pytest.raises(BlockingIOError, match="blocks"):
        write_response(Full(), 200, "text/plain")
