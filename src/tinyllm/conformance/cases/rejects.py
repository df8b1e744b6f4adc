"""Heads that must be refused: one case per rule, so that a report says which one is missing.

Each row is a well-formed request with one thing wrong. What two readers of HTTP understand
differently is how a request is smuggled past the first to the second; so these are errors, not
things to be lenient about.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tinyllm.conformance.case import RECOMMENDED, Case, Profile, register
from tinyllm.conformance.case import REQUIRED as REQUIRED_LEVEL
from tinyllm.conformance.cases.bodies import expect_status
from tinyllm.conformance.edge import edge_of, small_post
from tinyllm.conformance.evidence import NoAnswer, check
from tinyllm.conformance.session import Session

GET_HEAD = b"GET @ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Reject:
    """One broken head: its name, its bytes (@ is the path), the rule, and what it is good for."""

    name: str
    summary: str
    heads: tuple[bytes, ...]
    rule: str
    why: str
    public: bool = False  # whether any HTTP server should refuse it: then also in `openai`
    post: bool = False  # the heads are field lines that replace Content-Length in a POST


def _fields(*lines: bytes) -> tuple[bytes, ...]:
    """Return heads of a GET with one more line each."""
    return tuple(GET_HEAD[:-2] + line + b"\r\n\r\n" for line in lines)


SMUGGLED = "Two readers that end the message at different bytes let one request hide in another."
CONFUSED = "Readers disagree about what it means, and a filter in front sees another request."

ROWS = (
    Reject(
        "bare_lf",
        "A line that ends with LF alone is 400.",
        (GET_HEAD.replace(b"\r\n", b"\n"), GET_HEAD.replace(b"x\r\n", b"x\n", 1)),
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
        (*_fields(b"X-A: a\x00b"), GET_HEAD.replace(b"@", b"@\x00")),
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
        (GET_HEAD.replace(b"\r\nHost", b"\r\n Host"),),
        "RFC 9112, section 2.2",
        SMUGGLED,
    ),
    Reject(
        "version",
        "A version other than HTTP/1.0 and HTTP/1.1 is 400.",
        tuple(
            GET_HEAD.replace(b"HTTP/1.1", version)
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
            GET_HEAD.replace(b" HTTP/1.1", b""),
            GET_HEAD.replace(b"GET @", b"GET  @"),
            GET_HEAD.replace(b"GET @", b"GET\t@"),
            GET_HEAD.replace(b"@ HTTP", b"@ x HTTP"),
            GET_HEAD.replace(b"GET @", b" GET @"),
            GET_HEAD.replace(b"GET", b"G(T"),
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
            GET_HEAD.replace(b"@", b"@\x01"),
            GET_HEAD.replace(b"@", b"@\x7f"),
            GET_HEAD.replace(b"@", b"nopath"),
        ),
        "RFC 9112, section 3.2",
        CONFUSED,
    ),
    Reject(
        "host_missing",
        "An HTTP/1.1 request without Host is 400.",
        (GET_HEAD.replace(b"Host: x\r\n", b""),),
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
        (b"Content-Length: {n}\r\nContent-Length: {more}", b"Content-Length: {n}, {more}"),
        "RFC 9112, section 6.3: an unrecoverable error, 400",
        SMUGGLED,
        public=True,
        post=True,
    ),
    Reject(
        "length_form",
        "A Content-Length that is no row of ASCII digits is 400.",
        tuple(
            b"Content-Length: " + value
            for value in (
                b"+{n}",
                b"{hex}",
                b"{under}",
                b"{arabic}",
                b"-{n}",
                b"{n}.0",
                b"{n} 2",
                b"",
            )
        ),
        "RFC 9110, section 8.6: Content-Length is 1*DIGIT",
        SMUGGLED,
        public=True,
        post=True,
    ),
    Reject(
        "length_and_coding",
        "Content-Length together with Transfer-Encoding is 400.",
        (b"Content-Length: {n}\r\nTransfer-Encoding: chunked",),
        "RFC 9112, section 6.1: ought to be handled as an error; contract, point 1",
        SMUGGLED,
        post=True,
    ),
)


def _bytes_of(session: Session, row: Reject, head: bytes) -> bytes:
    """Return the request to send for one head of a row."""
    prefix, edge = session.settings.address.prefix, edge_of(session)
    if not row.post:
        return head.replace(b"@", (prefix + edge.get_path).encode())
    whole, _, body = small_post(session).partition(b"\r\n\r\n")
    lines = whole.split(b"\r\n")
    changed = [
        _spelled(head, len(body)) if line.startswith(b"Content-Length") else line for line in lines
    ]
    return b"\r\n".join(changed) + b"\r\n\r\n" + body


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
            connection_bytes = _bytes_of(session, row, head)
            if session.settings.profile is Profile.OPENAI:
                _refused_somehow(session, connection_bytes)
            else:
                expect_status(session, session.send(connection_bytes), 400)

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
