"""What is refused, one row per rule: the error's class, its status, and what it says."""

from __future__ import annotations

import re

import pytest

from tinyllm.wire import (
    BadContentLength,
    BadFieldLine,
    BadFieldName,
    BadFieldValue,
    BadHost,
    BadLineEnd,
    BadMethod,
    BadRequest,
    BadRequestLine,
    BadTarget,
    BadVersion,
    BodyTooLarge,
    ClientGone,
    ConflictingFraming,
    ExpectationFailed,
    HeadTooLarge,
    HttpError,
    LengthRequired,
    RequestParser,
    RequestTimeout,
    TooManyEmptyLines,
    TransferCodingUnsupported,
)

H = b"GET / HTTP/1.1\r\nHost: a\r\n"
P = b"POST / HTTP/1.1\r\nHost: a\r\n"


def refusal(pieces: list[bytes]) -> HttpError:
    parser = RequestParser()
    with pytest.raises(HttpError) as caught:  # noqa: PT012  (any feed may be the one)
        for piece in pieces:
            parser.feed(piece)
            parser.next_request()
    return caught.value


def row(name: str, data: bytes, error: type[HttpError], said: str) -> object:
    return pytest.param(data, error, said, id=name)


REFUSED = [
    # RFC 9112, section 2.2: line ends
    row(
        "lf-after-request-line", b"GET / HTTP/1.1\nHost: a\r\n\r\n", BadLineEnd, "line 1 .* bare LF"
    ),
    row("lf-after-field", H + b"X: y\nZ: w\r\n\r\n", BadLineEnd, "line 3 .* bare LF"),
    row("lf-at-the-end", H + b"\n", BadLineEnd, "line 3 .* bare LF"),
    row("lf-first", b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", BadLineEnd, "line 1 .* bare LF"),
    row("cr-in-value", H + b"X: y\rZ: w\r\n\r\n", BadLineEnd, "line 3 .* bare CR"),
    row("cr-before-crlf", H + b"X: y\r\r\n\r\n", BadLineEnd, "line 3 .* bare CR"),
    row("cr-in-target", b"GET /\rx HTTP/1.1\r\nHost: a\r\n\r\n", BadLineEnd, "line 1 .* bare CR"),
    row("cr-first", b"\rGET / HTTP/1.1\r\n\r\n", BadLineEnd, "line 1 .* bare CR"),
    row("empty-lines", b"\r\n" * 8193, TooManyEmptyLines, "empty lines"),
    # RFC 9112, section 3: request-line = method SP request-target SP HTTP-version
    row("two-parts", b"GET /\r\n\r\n", BadRequestLine, "single spaces"),
    row("four-parts", b"GET / x HTTP/1.1\r\n\r\n", BadRequestLine, "single spaces"),
    row("two-spaces", b"GET  / HTTP/1.1\r\n\r\n", BadRequestLine, "single spaces"),
    row("leading-space", b" GET / HTTP/1.1\r\n\r\n", BadRequestLine, "single spaces"),
    row("trailing-space", b"GET / HTTP/1.1 \r\n\r\n", BadRequestLine, "single spaces"),
    row("tabs", b"GET\t/\tHTTP/1.1\r\n\r\n", BadRequestLine, "single spaces"),
    row("method-brackets", b"G[T / HTTP/1.1\r\n\r\n", BadMethod, r"'G\[T' is not a token"),
    row("method-not-ascii", b"GET\xc3\x9f / HTTP/1.1\r\n\r\n", BadMethod, "not a token"),
    row("method-nul", b"GE\0T / HTTP/1.1\r\n\r\n", BadMethod, "not a token"),
    row("method-long", b"(" * 99 + b" / HTTP/1.1\r\n\r\n", BadMethod, r"\({37}\.\.\.' is not"),
    # RFC 9112, section 3.2: the four forms of a target
    row("target-del", b"GET /\x7f HTTP/1.1\r\n\r\n", BadTarget, "visible ASCII"),
    row("target-nul", b"GET /\0 HTTP/1.1\r\n\r\n", BadTarget, "visible ASCII"),
    row("target-not-ascii", b"GET /\xc3\xa9 HTTP/1.1\r\n\r\n", BadTarget, "visible ASCII"),
    row("target-no-slash", b"GET healthz HTTP/1.1\r\nHost: a\r\n\r\n", BadTarget, "not a path"),
    row("target-query-only", b"GET ?a HTTP/1.1\r\nHost: a\r\n\r\n", BadTarget, "not a path"),
    row("target-star-get", b"GET * HTTP/1.1\r\nHost: a\r\n\r\n", BadTarget, "not a path"),
    row("target-star-more", b"OPTIONS *a HTTP/1.1\r\nHost: a\r\n\r\n", BadTarget, "not a path"),
    row("target-authority", b"GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n", BadTarget, "not a path"),
    row("target-no-host", b"GET http:///a HTTP/1.1\r\nHost: a\r\n\r\n", BadTarget, "not a path"),
    row("target-bad-host", b"GET http://a_[/ HTTP/1.1\r\nHost: a\r\n\r\n", BadTarget, "not a path"),
    row("target-bad-port", b"GET http://a:b/ HTTP/1.1\r\nHost: a\r\n\r\n", BadTarget, "not a path"),
    row(
        "target-bad-ipv6", b"GET http://[:1]/ HTTP/1.1\r\nHost: a\r\n\r\n", BadTarget, "not a path"
    ),
    row("connect-path", b"CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n", BadTarget, "not a path"),
    row("connect-no-port", b"CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n", BadTarget, "not a path"),
    row("connect-empty-port", b"CONNECT a: HTTP/1.1\r\nHost: a\r\n\r\n", BadTarget, "not a path"),
    # RFC 9112, section 2.3: HTTP-version, of which 1.0 and 1.1 are served
    row("version-2", b"GET / HTTP/2.0\r\n\r\n", BadVersion, "'HTTP/2.0' is neither"),
    row("version-1.2", b"GET / HTTP/1.2\r\n\r\n", BadVersion, "'HTTP/1.2' is neither"),
    row("version-lower", b"GET / http/1.1\r\n\r\n", BadVersion, "'http/1.1' is neither"),
    row("version-11", b"GET / HTTP/11\r\n\r\n", BadVersion, "'HTTP/11' is neither"),
    row("version-01.1", b"GET / HTTP/01.1\r\n\r\n", BadVersion, "is neither"),
    row("version-digit", b"GET / HTTP/1.\xd9\xa1\r\n\r\n", BadVersion, "is neither"),
    # RFC 9112, section 5: field-line = field-name ":" OWS field-value OWS
    row("no-colon", H + b"Xy\r\n\r\n", BadFieldLine, "line 3 .* no colon"),
    row("fold", H + b"X: y\r\n z\r\n\r\n", BadFieldLine, "line 4 .* white space"),
    row("fold-tab", H + b"X: y\r\n\tz: 1\r\n\r\n", BadFieldLine, "line 4 .* white space"),
    row(
        "space-first", b"GET / HTTP/1.1\r\n Host: a\r\n\r\n", BadFieldLine, "line 2 .* white space"
    ),
    row("space-line", H + b" \r\n\r\n", BadFieldLine, "line 3 .* white space"),
    row("space-colon", H + b"X : y\r\n\r\n", BadFieldName, "line 3 .* before its colon"),
    row("tab-colon", H + b"X\t: y\r\n\r\n", BadFieldName, "line 3 .* before its colon"),
    row("name-empty", H + b": y\r\n\r\n", BadFieldName, "'' is not a token"),
    row("name-space", H + b"X Y: z\r\n\r\n", BadFieldName, "'X Y' is not a token"),
    row("name-not-ascii", H + b"X\xe9: z\r\n\r\n", BadFieldName, "is not a token"),
    row("name-nul", H + b"X\0: z\r\n\r\n", BadFieldName, "is not a token"),
    row("value-nul", H + b"X: a\0b\r\n\r\n", BadFieldValue, "line 3 .* 0x00"),
    row("value-bell", H + b"X: y\r\nZ: \x07\r\n\r\n", BadFieldValue, "line 4 .* 0x07"),
    row("value-del", H + b"X: \x7f\r\n\r\n", BadFieldValue, "line 3 .* 0x7f"),
    row("value-vt-end", H + b"X: y\x0b\r\n\r\n", BadFieldValue, "line 3 .* 0x0b"),
    # RFC 9112, section 3.2: Host
    row("host-missing", b"GET / HTTP/1.1\r\n\r\n", BadHost, "has a Host field"),
    row("host-twice", H + b"hOST: a\r\n\r\n", BadHost, "more than one Host"),
    row(
        "host-twice-1.0", b"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", BadHost, "more than one"
    ),
    row("host-space", b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", BadHost, "not a host"),
    row("host-url", b"GET / HTTP/1.1\r\nHost: http://a\r\n\r\n", BadHost, "not a host"),
    row("host-user", b"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", BadHost, "not a host"),
    row("host-list", b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", BadHost, "not a host"),
    row("host-port", b"GET / HTTP/1.1\r\nHost: a:8a\r\n\r\n", BadHost, "not a host"),
    row("host-port-sign", b"GET / HTTP/1.1\r\nHost: a:+80\r\n\r\n", BadHost, "not a host"),
    row("host-percent", b"GET / HTTP/1.1\r\nHost: a%2\r\n\r\n", BadHost, "not a host"),
    row("host-not-ascii", b"GET / HTTP/1.1\r\nHost: \xe9\r\n\r\n", BadHost, "not a host"),
    row("host-bare-ipv6", b"GET / HTTP/1.1\r\nHost: ::1\r\n\r\n", BadHost, "not a host"),
    row("host-open-ipv6", b"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", BadHost, "not a host"),
    row("host-ipv6-name", b"GET / HTTP/1.1\r\nHost: [a.b]\r\n\r\n", BadHost, "not a host"),
    row("host-ipv6-zone", b"GET / HTTP/1.1\r\nHost: [fe80::1%25e0]\r\n\r\n", BadHost, "not a host"),
    row("host-1.0-invalid", b"GET / HTTP/1.0\r\nHost: a b\r\n\r\n", BadHost, "not a host"),
    # RFC 9112, section 6: where the body ends
    row("length-plus", P + b"Content-Length: +5\r\n\r\n", BadContentLength, "decimal"),
    row("length-minus", P + b"Content-Length: -5\r\n\r\n", BadContentLength, "decimal"),
    row("length-underscore", P + b"Content-Length: 1_0\r\n\r\n", BadContentLength, "decimal"),
    row("length-hex", P + b"Content-Length: 0x10\r\n\r\n", BadContentLength, "decimal"),
    row("length-empty", P + b"Content-Length:\r\n\r\n", BadContentLength, "decimal"),
    row("length-inner-space", P + b"Content-Length: 1 0\r\n\r\n", BadContentLength, "decimal"),
    row("length-arabic", P + b"Content-Length: \xd9\xa1\r\n\r\n", BadContentLength, "decimal"),
    row("length-superscript", P + b"Content-Length: \xb2\r\n\r\n", BadContentLength, "decimal"),
    row("length-nbsp", P + b"Content-Length: \xa04\r\n\r\n", BadContentLength, "decimal"),
    row("length-list", P + b"Content-Length: 2, 2\r\n\r\n", BadContentLength, "decimal"),
    row(
        "length-twice",
        P + b"Content-Length: 2\r\ncontent-length: 2\r\n\r\n",
        BadContentLength,
        "more",
    ),
    row(
        "length-differs",
        P + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n",
        BadContentLength,
        "",
    ),
    row("length-missing", P + b"\r\n", LengthRequired, "Content-Length"),
    row("length-1-mib-1", P + b"Content-Length: 1048577\r\n\r\n", BodyTooLarge, "1048576"),
    row(
        "length-2-to-64",
        P + b"Content-Length: 18446744073709551616\r\n\r\n",
        BodyTooLarge,
        "over 1048576 bytes",
    ),
    row(
        "length-5000",
        P + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
        BodyTooLarge,
        "over 1048576 bytes",
    ),
    row("chunked", P + b"Transfer-Encoding: chunked\r\n\r\n", TransferCodingUnsupported, "coding"),
    row(
        "identity",
        H + b"Transfer-Encoding: identity\r\n\r\n",
        TransferCodingUnsupported,
        "transfer coding",
    ),
    row(
        "coding-empty",
        H + b"Transfer-Encoding:\r\n\r\n",
        TransferCodingUnsupported,
        "transfer coding",
    ),
    row(
        "coding-and-length",
        P + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        ConflictingFraming,
        "exclude",
    ),
    # RFC 9110, section 10.1.1: Expect
    row(
        "expect", P + b"Content-Length: 2\r\nExpect: 200-ok\r\n\r\n", ExpectationFailed, "100-cont"
    ),
    row("expect-list", H + b"Expect: 100-continue, x\r\n\r\n", ExpectationFailed, "100-continue"),
    row("expect-two", H + b"Expect: 100-continue\r\nexpect: x\r\n\r\n", ExpectationFailed, "only"),
    row("expect-empty", H + b"Expect:\r\n\r\n", ExpectationFailed, "100-continue"),
    row("head-too-large", H + b"X: " + b"y" * 16384, HeadTooLarge, "16384 bytes"),
]


@pytest.mark.parametrize(("data", "error", "said"), REFUSED)
def test_each_broken_rule_has_its_own_error(data: bytes, error: type[HttpError], said: str) -> None:
    whole = refusal([data])
    assert type(whole) is error
    assert re.search(said, whole.message)
    one_by_one = refusal([data[at : at + 1] for at in range(len(data))])
    assert (type(one_by_one), str(one_by_one)) == (error, str(whole))


@pytest.mark.parametrize(
    ("data", "error"),
    [
        pytest.param(b"GET / HTTP/9.9\r\nHost: a b\r\n\r\n", BadVersion, id="line-before-host"),
        pytest.param(b"G@T ! HTTP/9.9\r\n\r\n", BadMethod, id="method-before-target"),
        pytest.param(b"GET ! HTTP/9.9\r\n\r\n", BadVersion, id="version-before-form"),
        pytest.param(b"GET ! HTTP/1.1\r\nX\r\n\r\n", BadTarget, id="target-before-field"),
        pytest.param(b"GET ! HTTP/1.1\r\nX: \n\r\n\r\n", BadLineEnd, id="line-ends-first"),
        pytest.param(H + b"X : 1\r\nY\r\n\r\n", BadFieldName, id="third-before-fourth-line"),
        pytest.param(
            H + b"X\r\nTransfer-Encoding: x\r\n\r\n", BadFieldLine, id="field-before-coding"
        ),
        pytest.param(P + b"X: \0\r\n\r\n", BadFieldValue, id="field-before-length"),
        pytest.param(b"POST / HTTP/1.1\r\n\r\n", BadHost, id="host-before-length"),
        pytest.param(
            P + b"Content-Length: x\r\nExpect: y\r\n\r\n", BadContentLength, id="length-expect"
        ),
        pytest.param(
            P + b"Content-Length: 9999999\r\nExpect: y\r\n\r\n", BodyTooLarge, id="413-417"
        ),
    ],
)
def test_of_several_broken_rules_the_first_is_named(data: bytes, error: type[HttpError]) -> None:
    assert type(refusal([data])) is error
    assert type(refusal([data[at : at + 1] for at in range(len(data))])) is error


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ClientGone, 0),
        (BadRequest, 400),
        (RequestTimeout, 408),
        (LengthRequired, 411),
        (BodyTooLarge, 413),
        (ExpectationFailed, 417),
        (HeadTooLarge, 431),
        (TransferCodingUnsupported, 501),
    ],
)
def test_errors_carry_the_status_to_answer(error: type[HttpError], status: int) -> None:
    assert error("why").status == status
    assert str(error("why")) == error("why").message == "why"
