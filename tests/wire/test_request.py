"""Requests from bytes: whole, in pieces, one after another."""

from __future__ import annotations

import pytest

from tinyllm.wire import (
    CONTINUE,
    BodyTooLarge,
    ClientGone,
    HeadTooLarge,
    HttpError,
    LengthRequired,
    ParserState,
    Request,
    RequestParser,
)

# The specification's worked example, with the white space and the spellings that clients use.
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


def get(target: str = "/", *fields: bytes) -> Request:
    lines = [b"GET " + target.encode() + b" HTTP/1.1", b"Host: a", *fields, b"", b""]
    return parse(b"\r\n".join(lines))


def test_parses_request_line_headers_and_body() -> None:
    request = parse(ECHO)
    assert request.method == "POST"
    assert request.target == "/echo?n=3&delay_ms=0"
    assert request.version == "1.1"
    assert request.path == "/echo"
    assert request.query("n") == "3"
    assert request.query("delay_ms") == "0"
    assert request.headers == [
        ("Host", "127.0.0.1:8080"),
        ("Content-Type", "application/json"),
        ("content-LENGTH", "14"),
    ]
    assert request.body == '{"text":"hé"}'.encode()


@pytest.mark.parametrize("name", ["content-length", "CONTENT-LENGTH", "Content-Length"])
def test_header_names_are_case_insensitive(name: str) -> None:
    request = parse(f"POST / HTTP/1.1\r\nHost: a\r\n{name}: 2\r\n\r\n{{}}".encode())
    assert request.body == b"{}"
    assert request.header("content-length") == request.header("CONTENT-length") == "2"
    assert request.header_values("Content-LENGTH") == ["2"]


def test_header_names_are_compared_as_ascii() -> None:
    request = get("/", b"K: kelvin", b"X-\x21: bang")
    assert request.header("k") == "kelvin"
    assert request.header("\u212a") is None  # KELVIN SIGN, whose lower case is k
    assert request.header("x-?") is None


def test_first_of_repeated_headers_is_the_header() -> None:
    request = get("/", b"X: 1", b"Y: 2", b"x: 3", b"X:")
    assert request.header("X") == "1"
    assert request.first(b"x") == b"1"
    assert request.header_values("x") == ["1", "3", ""]
    assert request.header("z") is None
    assert request.first(b"z") is None
    assert request.header_values("z") == []


def test_header_values_keep_their_bytes() -> None:
    request = get("/", b"X: caf\xc3\xa9 \x85\t\xa0")
    assert request.header("x") == "caf\u00c3\u00a9 \u0085\t\u00a0"
    assert request.first(b"x") == b"caf\xc3\xa9 \x85\t\xa0"


@pytest.mark.parametrize("pad", [b"", b" ", b"\t", b" \t \t"], ids=["none", "sp", "tab", "mixed"])
def test_white_space_around_a_value_is_not_part_of_it(pad: bytes) -> None:
    request = get("/", b"A:" + pad + b"x y" + pad, b"B:" + pad, b"C:" + pad + b"z")
    assert request.headers[1:] == [("A", "x y"), ("B", ""), ("C", "z")]


@pytest.mark.parametrize(
    ("target", "path"),
    [
        pytest.param("/", "/", id="root"),
        pytest.param("/a/b?c=/d?e", "/a/b", id="first-question-mark"),
        pytest.param("/?", "/", id="empty-query"),
        pytest.param("//a/b", "//a/b", id="two-slashes"),
        pytest.param("/a%2Fb%3F", "/a%2Fb%3F", id="not-decoded"),
        pytest.param("/a/../healthz", "/a/../healthz", id="not-normalised"),
        pytest.param("http://host/healthz", "/healthz", id="absolute"),
        pytest.param("http://host:80/a?b", "/a", id="absolute-port-query"),
        pytest.param("https://user:pw@[::1]:8443/a?b/c", "/a", id="absolute-user-ipv6"),
        pytest.param("http://host", "/", id="absolute-no-path"),
        pytest.param("http://host?a=b", "/", id="absolute-query-no-path"),
    ],
)
def test_path_is_the_targets_without_the_query(target: str, path: str) -> None:
    request = get(target)
    assert request.target == target
    assert request.path == path


@pytest.mark.parametrize(
    ("request_line", "path"),
    [
        pytest.param(b"OPTIONS * HTTP/1.1", "*", id="asterisk"),
        pytest.param(b"CONNECT [::1]:443 HTTP/1.1", "[::1]:443", id="authority"),
    ],
)
def test_path_of_a_target_without_one_is_the_target(request_line: bytes, path: str) -> None:
    assert parse(request_line + b"\r\nHost: a\r\n\r\n").path == path


@pytest.mark.parametrize(
    ("target", "value"),
    [
        pytest.param("/c?n=3", "3", id="one"),
        pytest.param("/c?m=1&n=3", "3", id="second"),
        pytest.param("/c?n=3&n=4", "3", id="first-of-two"),
        pytest.param("/c?n=", "", id="empty"),
        pytest.param("/c?n", "", id="no-equals-sign"),
        pytest.param("/c?n=a=b", "a=b", id="equals-sign-in-value"),
        pytest.param("/c?n=%31+", "%31+", id="not-decoded"),
        pytest.param("/c?n=2?m=5", "2?m=5", id="question-mark-in-value"),
        pytest.param("http://n=1/c?n=3", "3", id="absolute"),
        pytest.param("/c?N=3", None, id="keys-have-a-case"),
        pytest.param("/c", None, id="no-query"),
    ],
)
def test_query_gives_the_value_of_a_key(target: str, value: str | None) -> None:
    assert get(target).query("n") == value


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        pytest.param([], False, id="not-said"),
        pytest.param([b"Connection: keep-alive"], True, id="said"),
        pytest.param([b"connection: Keep-Alive"], True, id="any-case"),
        pytest.param([b"Connection: foo ,\tkeep-alive , bar"], True, id="in-a-list"),
        pytest.param([b"Connection: foo", b"Connection: keep-alive"], True, id="in-two-lines"),
        pytest.param([b"Connection: keep-alive, close"], False, id="and-close"),
        pytest.param([b"Connection: keep-alive", b"Connection: Close"], False, id="close-after"),
        pytest.param([b"Connection: close"], False, id="close"),
        pytest.param([b"Connection: keep-alive2"], False, id="another-word"),
        pytest.param([b"X: keep-alive"], False, id="another-field"),
    ],
)
def test_client_keeps_the_connection_only_if_it_says_so(fields: list[bytes], wanted: bool) -> None:
    assert get("/", *fields).wants_keep_alive is wanted


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


@pytest.mark.parametrize("at", range(1, 2 * len(ECHO) + 4))
def test_pipelined_requests_split_across_packets(at: int) -> None:
    stream = ECHO + b"\r\n\r\n" + ECHO
    parser = RequestParser()
    found = []
    for piece in (stream[:at], stream[at:]):
        parser.feed(piece)
        while (request := parser.next_request()) is not None:
            found.append(request)
    assert found == [parse(ECHO), parse(ECHO)]


def test_body_of_a_get_is_read() -> None:
    request = parse(b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
    assert request.body == b"abc"


def test_only_a_post_needs_a_length() -> None:
    for method in ("GET", "PUT", "DELETE", "brew"):
        assert parse(f"{method} / HTTP/1.1\r\nHost: a\r\n\r\n".encode()).body == b""
    with pytest.raises(LengthRequired):
        parse(b"POST / HTTP/1.1\r\nHost: a\r\n\r\n")


def test_state_says_which_deadline_applies() -> None:
    parser = RequestParser()
    states = []
    for piece in (b"", b"\r", b"\n\r\n", b"P", ECHO[1:-14], b"{", ECHO[-13:]):
        if piece:
            parser.feed(piece)
        states.append((parser.next_request(), parser.state)[1])
    assert states == [
        ParserState.IDLE,
        ParserState.IDLE,  # half of an empty line
        ParserState.IDLE,  # two of them: no byte of a request
        ParserState.HEAD,
        ParserState.BODY,
        ParserState.BODY,
        ParserState.IDLE,
    ]


def test_pending_request_is_the_one_whose_body_is_missing() -> None:
    parser = RequestParser()
    parser.feed(ECHO[:-9])
    assert parser.pending is None
    assert parser.next_request() is None
    assert parser.pending is not None
    assert parser.pending.path == "/echo"
    assert (parser.missing_body_bytes, parser.buffered) == (9, 5)
    parser.feed(ECHO[-9:])
    whole = parser.next_request()
    assert whole == parse(ECHO)
    assert (parser.missing_body_bytes, parser.buffered) == (0, 0)


@pytest.mark.parametrize(
    ("version", "expect", "expects"),
    [
        pytest.param("1.1", "100-continue", True, id="expects"),
        pytest.param("1.1", "100-Continue", True, id="any-case"),
        pytest.param("1.0", "100-continue", False, id="http-1.0-never-waits"),
    ],
)
def test_client_that_waits_for_continue_is_noticed(
    version: str, expect: str, expects: bool
) -> None:
    parser = RequestParser()
    head = f"POST / HTTP/{version}\r\nHost: a\r\nContent-Length: 2\r\nExpect: {expect}\r\n\r\n"
    parser.feed(head.encode())
    assert parser.expects_continue is False
    assert parser.next_request() is None
    assert parser.expects_continue is expects
    parser.feed(b"{}")
    assert parser.next_request() is not None
    assert parser.expects_continue is False


def test_continue_is_an_interim_response_without_fields() -> None:
    assert CONTINUE == b"HTTP/1.1 100 Continue\r\n\r\n"


# Caps


def head_of(length: int) -> bytes:
    """A head of exactly so many bytes, its empty line included."""
    start = b"GET / HTTP/1.1\r\nHost: a\r\nX: "
    return start + b"x" * (length - len(start) - 4) + b"\r\n\r\n"


@pytest.mark.parametrize("feed_bytes", [16384, 1000, 1], ids=["whole", "pieces", "bytes"])
def test_head_of_16_kib_is_read_and_one_byte_more_is_not(feed_bytes: int) -> None:
    for length, error in ((16384, None), (16385, HeadTooLarge)):
        data = head_of(length)
        parser = RequestParser()
        found: Request | type[HttpError] | None = None
        for start in range(0, length, feed_bytes):
            parser.feed(data[start : start + feed_bytes])
            try:
                found = parser.next_request()
            except HttpError as raised:
                found = type(raised)
        assert found == (error or parse(data))


def test_head_without_end_is_refused_as_soon_as_it_is_over_the_cap() -> None:
    parser = RequestParser(max_head_bytes=64)
    parser.feed(b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 36)
    assert parser.next_request() is None
    parser.feed(b"x")
    with pytest.raises(HeadTooLarge):
        parser.next_request()


def test_line_without_end_is_refused_as_soon_as_it_is_over_the_cap() -> None:
    parser = RequestParser(max_head_bytes=64)
    parser.feed(b"A" * 64)
    assert parser.next_request() is None
    parser.feed(b"A")
    with pytest.raises(HeadTooLarge):
        parser.next_request()


def test_empty_lines_before_a_head_do_not_count_for_its_cap() -> None:
    parser = RequestParser()
    parser.feed(b"\r\n" * 8192 + head_of(16384))
    assert parser.next_request() == parse(head_of(16384))


def test_body_over_the_cap_is_refused_before_it_is_read() -> None:
    parser = RequestParser(max_body_bytes=10)
    parser.feed(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n")
    with pytest.raises(BodyTooLarge):
        parser.next_request()


def test_body_of_1_mib_is_read() -> None:
    body = bytes(range(256)) * 4096
    request = parse(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1048576\r\n\r\n" + body)
    assert request.body == body


@pytest.mark.parametrize("length", ["0" * 5000 + "2", "2", "02"], ids=["zeros", "plain", "octal"])
def test_length_may_be_padded_with_zeros(length: str) -> None:
    request = parse(f"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{{}}".encode())
    assert request.body == b"{}"


# The end of the stream


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(b"", "no byte of a request seen", id="before-a-request"),
        pytest.param(b"\r\n", "no byte of a request seen", id="after-an-empty-line"),
        pytest.param(b"GET / HT", "the head has begun", id="in-a-head"),
        pytest.param(ECHO[:-1], "its body is not whole", id="in-a-body"),
    ],
)
def test_close_without_a_whole_request_leaves_nobody_to_answer(data: bytes, said: str) -> None:
    parser = RequestParser()
    if data:
        parser.feed(data)
        assert parser.next_request() is None
    parser.feed(b"")
    with pytest.raises(ClientGone, match=said) as caught:
        parser.next_request()
    assert caught.value.status == 0


def test_close_after_whole_requests_leaves_them_to_be_answered() -> None:
    parser = RequestParser()
    parser.feed(ECHO + ECHO)
    parser.feed(b"")
    assert parser.next_request() == parse(ECHO)
    assert parser.next_request() == parse(ECHO)
    with pytest.raises(ClientGone):
        parser.next_request()


def test_broken_request_raises_the_same_error_from_then_on() -> None:
    parser = RequestParser()
    parser.feed(b"GET / HTTP/2.0\r\n\r\n" + ECHO)
    with pytest.raises(HttpError) as first:
        parser.next_request()
    parser.feed(ECHO)
    with pytest.raises(HttpError) as second:
        parser.next_request()
    assert first.value is second.value


# The value


def test_requests_are_equal_if_all_their_parts_are() -> None:
    plain = b"GET / HTTP/1.1\r\nHost: a\r\nX: y\r\nContent-Length: 1\r\n\r\nb"
    assert parse(plain) == parse(plain)
    for old, new in (
        (b"GET", b"PUT"),
        (b"/ ", b"/a "),
        (b"1.1", b"1.0"),
        (b"X", b"x"),
        (b"b", b"c"),
    ):
        assert parse(plain.replace(old, new)) != parse(plain)
    assert parse(plain) != plain


def test_request_says_what_it_is() -> None:
    assert repr(parse(ECHO)) == "<Request POST /echo?n=3&delay_ms=0 (14 bytes)>"
