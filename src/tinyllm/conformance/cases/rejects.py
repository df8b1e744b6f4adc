"""Heads that must be refused: one case per rule, so that a report says which one is missing.

Each row is a good request with one thing wrong in its head. What two readers of HTTP understand
differently is how a request is smuggled past the first to the second; so these are errors, not
things to be lenient about.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tinyllm.conformance.case import RECOMMENDED, Case, Profile, register
from tinyllm.conformance.case import REQUIRED as REQUIRED_LEVEL
from tinyllm.conformance.cases.bodies import expect_status
from tinyllm.conformance.edge import edge_of, small_body
from tinyllm.conformance.evidence import NoAnswer, check
from tinyllm.conformance.session import Session

# A request that is answered with 200: @ is the path, {n} the body's length.
GOOD = (
    b"POST @ HTTP/1.1\r\n"
    b"Host: x\r\n"
    b"Content-Type: application/json\r\n"
    b"Content-Length: {n}\r\n"
    b"Connection: close\r\n"
    b"\r\n"
)


@dataclass(frozen=True, slots=True)
class Reject:
    """One rule of the head: its name, heads that break it, where it stands, what it is good for."""

    name: str
    summary: str
    heads: tuple[bytes, ...]
    rule: str
    why: str
    public: bool = False  # whether any HTTP server should refuse it: then also in `openai`


def _fields(*lines: bytes) -> tuple[bytes, ...]:
    """Return heads with one more line each."""
    return tuple(GOOD[:-2] + line + b"\r\n\r\n" for line in lines)


def _lengths(*lines: bytes) -> tuple[bytes, ...]:
    """Return heads with other lines in place of Content-Length."""
    return tuple(GOOD.replace(b"Content-Length: {n}", line) for line in lines)


SMUGGLED = "Two readers that end the message at different bytes let one request hide in another."
CONFUSED = "Readers disagree about what it means, and a filter in front sees another request."

ROWS = (
    Reject(
        "bare_lf",
        "A line that ends with LF alone is 400.",
        (GOOD.replace(b"\r\n", b"\n"), GOOD.replace(b"x\r\n", b"x\n", 1)),
        "RFC 9112, section 2.2; contract, point 1: a bare LF as a line end is refused",
        CONFUSED,
    ),
    Reject(
        "bare_cr",
        "A CR inside a line is 400.",
        _fields(b"X-A: a\rb", b"X-A: a\r"),
        "RFC 9112, section 2.2: a bare CR is invalid",
        CONFUSED,
    ),
    Reject(
        "nul",
        "A NUL in a field's value or in the target is 400.",
        (*_fields(b"X-A: a\x00b"), GOOD.replace(b"@", b"@\x00")),
        "RFC 9110, section 5.5: CR, LF and NUL are invalid and dangerous",
        CONFUSED,
        public=True,
    ),
    Reject(
        "control",
        "A control character in a field's value is 400.",
        _fields(b"X-A: a\x01b", b"X-A: \x7f"),
        "RFC 9110, section 5.5: field-value has no control characters",
        CONFUSED,
    ),
    Reject(
        "line_folding",
        "A field that goes on in a line that begins with white space is 400.",
        _fields(b"X-A: a\r\n b", b"X-A: a\r\n\tb"),
        "RFC 9112, section 5.2: obs-fold must be refused",
        CONFUSED,
    ),
    Reject(
        "space_before_colon",
        "White space between a field's name and the colon is 400.",
        _fields(b"X-A : a", b"X-A\t: a"),
        "RFC 9112, section 5.1: a server MUST reject it with 400",
        SMUGGLED,
        public=True,
    ),
    Reject(
        "field_name",
        "A field's name that is no token, or is empty, is 400.",
        _fields(b"X(A): a", b": a", b"X A: a", b"X-\xc3\xa9: a"),
        "RFC 9110, section 5.1: field-name is a token",
        CONFUSED,
    ),
    Reject(
        "no_colon",
        "A header line without a colon is 400.",
        _fields(b"nonsense"),
        "RFC 9112, section 5",
        CONFUSED,
        public=True,
    ),
    Reject(
        "first_field_space",
        "White space between the request line and the first field is 400.",
        (GOOD.replace(b"\r\nHost", b"\r\n Host"),),
        "RFC 9112, section 2.2",
        SMUGGLED,
    ),
    Reject(
        "version",
        "A version other than HTTP/1.0 and HTTP/1.1 is 400.",
        tuple(
            GOOD.replace(b"HTTP/1.1", version)
            for version in (
                b"HTTP/2.0",
                b"HTTP/1.2",
                b"http/1.1",
                b"HTTP/1.10",
                b"HTTP/1",
                b"FTP/1.1",
            )
        ),
        "RFC 9112, section 2.3: HTTP-name is case-sensitive; contract, point 1",
        "The rest of the message is then of unknown form.",
    ),
    Reject(
        "request_line",
        "A request line of another form than METHOD SP target SP version is 400.",
        (
            GOOD.replace(b" HTTP/1.1", b""),
            GOOD.replace(b"POST @", b"POST  @"),
            GOOD.replace(b"POST @", b"POST\t@"),
            GOOD.replace(b"@ HTTP", b"@ x HTTP"),
            GOOD.replace(b"POST @", b" POST @"),
            GOOD.replace(b"POST", b"P(ST"),
            b"nonsense\r\n\r\n",
        ),
        "RFC 9112, section 3: method SP request-target SP HTTP-version",
        "Untrusted input is refused, not guessed; a dropped connection tells the caller nothing.",
        public=True,
    ),
    Reject(
        "target",
        "A target that is no path, or holds a control character, is 400.",
        (
            GOOD.replace(b"@", b"@\x01"),
            GOOD.replace(b"@", b"@\x7f"),
            GOOD.replace(b"@", b"nopath"),
        ),
        "RFC 9112, section 3.2",
        CONFUSED,
    ),
    Reject(
        "host_missing",
        "An HTTP/1.1 request without Host is 400.",
        (GOOD.replace(b"Host: x\r\n", b""),),
        "RFC 9112, section 3.2: a server MUST respond with 400",
        "A virtual host that is guessed is the wrong one.",
    ),
    Reject(
        "host_repeated",
        "Two Host fields are 400.",
        _fields(b"Host: y", b"host: x"),
        "RFC 9112, section 3.2: a server MUST respond with 400",
        CONFUSED,
    ),
    Reject(
        "lengths_differ",
        "Two different Content-Length values are 400.",
        _lengths(b"Content-Length: {n}\r\nContent-Length: {more}", b"Content-Length: {n}, {more}"),
        "RFC 9112, section 6.3: an unrecoverable error, 400",
        SMUGGLED,
        public=True,
    ),
    Reject(
        "length_form",
        "A Content-Length that is no row of ASCII digits is 400.",
        _lengths(
            b"Content-Length: +{n}",
            b"Content-Length: {hex}",
            b"Content-Length: {under}",
            b"Content-Length: {arabic}",
            b"Content-Length: -{n}",
            b"Content-Length: {n}.0",
            b"Content-Length: {n} 2",
            b"Content-Length: ",
        ),
        "RFC 9110, section 8.6: Content-Length is 1*DIGIT",
        SMUGGLED,
        public=True,
    ),
    Reject(
        "length_and_coding",
        "Content-Length together with Transfer-Encoding is 400.",
        _lengths(b"Content-Length: {n}\r\nTransfer-Encoding: chunked"),
        "RFC 9112, section 6.1: ought to be handled as an error; contract, point 1",
        SMUGGLED,
    ),
)


def _bytes_of(session: Session, head: bytes) -> bytes:
    """Return the request to send for one head of a row."""
    body, key = small_body(session), session.settings.api_key
    path = session.settings.address.prefix + edge_of(session).post_path
    if key is not None:
        head = head.replace(b"Host: x", f"Authorization: Bearer {key}\r\nHost: x".encode())
    return _spelled(head.replace(b"@", path.encode()), len(body)) + body


def _spelled(head: bytes, length: int) -> bytes:
    """Return field lines with the body's length in place of {n}, {more} and so on."""
    digits = str(length)
    arabic = "".join(chr(0x660 + int(digit)) for digit in digits)
    for name, value in (
        ("n", digits),
        ("more", str(length + 1)),
        ("under", f"{digits[0]}_{digits[1:]}"),
        ("hex", hex(length)),
        ("arabic", arabic),
    ):
        head = head.replace(f"{{{name}}}".encode(), value.encode())
    return head


def _try(row: Reject) -> Callable[[Session], None]:
    def run(session: Session) -> None:
        for head in session.rows(row.heads):
            raw = _bytes_of(session, head)
            if session.settings.profile is Profile.OPENAI:
                _refused_somehow(session, raw)
            else:
                expect_status(session, session.send(raw), 400)

    return run


def _refused_somehow(session: Session, raw: bytes) -> None:
    """Any 4xx, and a close without an answer, refuse; an answer or a hang does not."""
    try:
        response = session.send(raw)
    except NoAnswer:
        late = session.exchanges[-1].end == "timed out"
        check(not late, "neither refused nor answered", session.exchanges[-1])
        return
    refused = 400 <= response.status < 500 or response.status in (501, 505)
    check(refused, f"status {response.status}, not 4xx", response.status_line)


for _row in ROWS:
    for _suite in ("v0", "wire"):
        _levels = {Profile.TINYLLM: REQUIRED_LEVEL}
        if _row.public:
            _levels[Profile.OPENAI] = RECOMMENDED
        register(
            Case(
                id=f"{_suite}.reject.{_row.name}",
                rule=_row.rule,
                why=_row.why,
                run=_try(_row),
                summary=_row.summary,
                levels=_levels,
            )
        )
