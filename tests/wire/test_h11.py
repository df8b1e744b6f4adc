"""Two parsers of one grammar: h11 and this layer read the same bytes alike.

Where they differ, it is because this layer refuses more, and the reasons are listed here; the few
cases that h11 alone refuses are listed as well. Anything else is a fault of one of them.
"""

from __future__ import annotations

import h11
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support import wiredata
from tinyllm.wire import (
    BadContentLength,
    BadFieldLine,
    BadFieldValue,
    BadHost,
    BadLineEnd,
    BadTarget,
    BadVersion,
    BodyTooLarge,
    ConflictingFraming,
    ExpectationFailed,
    HeadTooLarge,
    HttpError,
    LengthRequired,
    RequestParser,
    TransferCodingUnsupported,
    response_bytes,
    sse_head_bytes,
)

# What we refuse and h11 may take.
STRICTER = {
    BadLineEnd: "h11 takes a bare LF as a line end, as RFC 9112, section 2.2, permits",
    BadVersion: "h11 leaves versions other than 1.0 and 1.1 to its user",
    BadTarget: "h11 checks a target's bytes, not which of the four forms its method asks for",
    BadFieldLine: "h11 unfolds folded lines, as RFC 9112, section 5.2, permits",
    BadFieldValue: "h11 refuses NUL, CR and LF in a value, not the other control characters",
    BadHost: "h11 counts Host fields; it does not read them",
    BadContentLength: "h11 collapses equal lengths, as RFC 9110, section 8.6, permits",
    ConflictingFraming: "h11 lets Transfer-Encoding win over Content-Length",
    TransferCodingUnsupported: "h11 decodes chunked bodies",
    LengthRequired: "h11 takes a POST without a length as one without a body",
    ExpectationFailed: "h11 leaves unknown expectations to its user",
    BodyTooLarge: "h11 has no cap on bodies",
    HeadTooLarge: "h11's cap is for heads that are not whole",
}

Parsed = tuple[bytes, bytes, list[tuple[bytes, bytes]], bytes]


def read_by_us(data: bytes) -> Parsed | HttpError:
    parser = RequestParser()
    parser.feed(data)
    parser.feed(b"")
    try:
        request = parser.next_request()
    except HttpError as error:
        return error
    assert request is not None
    fields = [(name.lower().encode(), value.encode("latin-1")) for name, value in request.headers]
    return request.method.encode(), request.target.encode(), fields, request.body


def read_by_h11(data: bytes) -> Parsed | None:
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=16384)
    try:
        connection.receive_data(data)
        connection.receive_data(b"")
        request = connection.next_event()
        if not isinstance(request, h11.Request):
            return None
        body = b""
        while isinstance(event := connection.next_event(), h11.Data):
            body += event.data
    except h11.RemoteProtocolError:
        return None
    if not isinstance(event, h11.EndOfMessage):
        return None
    fields = [(bytes(name), bytes(value)) for name, value in request.headers]
    return request.method, request.target, fields, body


def stricter_in_h11(data: bytes, ours: Parsed) -> bool:
    """Empty lines before a request; lengths of over 20 digits, zeros included."""
    lengths = [value for name, value in ours[2] if name == b"content-length"]
    return data.startswith(b"\r\n") or any(len(value) > 20 for value in lengths)


def check_both(data: bytes) -> None:
    ours, theirs = read_by_us(data), read_by_h11(data)
    if isinstance(ours, HttpError):
        assert theirs is None or type(ours) in STRICTER
    elif theirs is None:
        assert stricter_in_h11(data, ours)
    else:
        assert ours == theirs


@pytest.mark.parametrize("case", wiredata.rows(wiredata.load("http_requests.json")))
def test_corpus_request_is_read_alike(case: wiredata.Case) -> None:
    if data := wiredata.raw(case):
        check_both(data)


VALID = [
    b"GET /a?b=c HTTP/1.1\r\nHost: example.com:80\r\nAccept: */*\r\nX-Empty:\r\n\r\n",
    b"POST / HTTP/1.0\r\nContent-Length: 4\r\nX: a \t b\r\n\r\nbody",
    b"OPTIONS * HTTP/1.1\r\nHost: [::1]\r\nX: \xe9\r\nConnection: keep-alive, x\r\n\r\n",
]
BYTES = [
    b"\r\n",
    b"\n",
    b"\r",
    b" ",
    b"\t",
    b":",
    b",",
    b"\0",
    b"\x0b",
    b"\x7f",
    b"\x80",
    b"/",
    b"*",
]
WORDS = [b"Host: b\r\n", b"Content-Length: 4\r\n", b"Content-Length: 04,4\r\n", b"Expect: x\r\n"]
WORDS += [b"Transfer-Encoding: chunked\r\n", b"HTTP/1.1", b"CONNECT ", b"http://a"]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A valid request with up to four places changed."""
    data = draw(st.sampled_from(VALID))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(start + 8, len(data))))
        data = data[:start] + draw(st.sampled_from(BYTES + WORDS)) + data[end:]
    return data


@settings(max_examples=200, deadline=None)
@given(damaged())
@example(b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: \r\n\r\n")
def test_damaged_request_is_read_alike(data: bytes) -> None:
    check_both(data)


NAMES = st.from_regex(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}", fullmatch=True).filter(
    lambda name: name.lower() not in (b"host", b"content-length", b"transfer-encoding", b"expect")
)
VALUES = st.from_regex(
    rb"([!-~\x80-\xff]([\t !-~\x80-\xff]{0,20}[!-~\x80-\xff])?)?", fullmatch=True
)


@settings(max_examples=50, deadline=None)
@given(
    method=st.sampled_from([b"GET", b"PUT", b"POST", b"patch"]),
    target=st.from_regex(rb"/[!-~]{0,20}", fullmatch=True),
    fields=st.lists(st.tuples(NAMES, VALUES), max_size=8),
    body=st.binary(max_size=40),
)
def test_request_written_by_h11_is_read_by_both(
    method: bytes, target: bytes, fields: list[tuple[bytes, bytes]], body: bytes
) -> None:
    client = h11.Connection(h11.CLIENT)
    fields = [(b"Host", b"a"), *fields, (b"Content-Length", b"%d" % len(body))]
    events = (
        h11.Request(method=method, target=target, headers=fields),
        h11.Data(body),
        h11.EndOfMessage(),
    )
    data = b"".join(client.send(event) or b"" for event in events)
    assert (
        read_by_us(data)
        == read_by_h11(data)
        == (
            method,
            target,
            [(name.lower(), value) for name, value in fields],
            body,
        )
    )


@settings(max_examples=50, deadline=None)
@given(
    status=st.sampled_from([200, 299, 400, 405, 413, 503, 599]),
    fields=st.lists(st.tuples(NAMES, VALUES), max_size=4),
    body=st.binary(max_size=40),
)
def test_response_written_by_us_is_read_by_h11(
    status: int, fields: list[tuple[bytes, bytes]], body: bytes
) -> None:
    own = (b"content-type", b"connection")
    extra = [(n.decode(), v.decode("latin-1")) for n, v in fields if n.lower() not in own]
    response, received = as_client(response_bytes(status, "text/plain", extra, body))
    assert (response.status_code, received) == (status, body)
    names = [name.encode().lower() for name, _ in extra]
    expected = [b"content-type", b"content-length", *names, b"connection"]
    assert [bytes(name) for name, _ in response.headers] == expected
    response, received = as_client(sse_head_bytes(extra) + body)
    assert (response.status_code, received) == (200, body)


def as_client(data: bytes) -> tuple[h11.Response, bytes]:
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
    client.receive_data(data)
    client.receive_data(b"")
    response = client.next_event()
    assert isinstance(response, h11.Response)
    body = b""
    while isinstance(event := client.next_event(), h11.Data):
        body += event.data
    return response, body
