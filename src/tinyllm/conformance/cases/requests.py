"""Requests that look different and are the same: field names, white space, targets, pieces."""

from __future__ import annotations

import time

from tinyllm.conformance.case import INFORMATIVE, RECOMMENDED, REQUIRED, case
from tinyllm.conformance.edge import edge_of, small_body, small_post
from tinyllm.conformance.evidence import check
from tinyllm.conformance.response import Response, read_response
from tinyllm.conformance.session import Session

PAUSE = 0.01  # seconds between two pieces, so that they are read apart


def expect_ok(response: Response, said: str = "") -> None:
    """Break the case unless the answer is 200."""
    prefix = f"{said}: " if said else ""
    check(
        response.status == 200, f"{prefix}status {response.status}, not 200", response.status_line
    )


@case(
    "v0.http.header_case",
    "wire.http.header_case",
    rule="RFC 9110, section 5.1: field names are case-insensitive",
    why="Go's client, curl, proxies and HTTP/2 gateways each spell names differently; compared"
    " exactly, a lower-case content-length is missed and the body never read.",
    openai=REQUIRED,
)
def header_case(session: Session) -> None:
    """All names in lower case, in upper case and in mixed case are understood."""
    body, path = small_body(session), edge_of(session).post_path
    for spell in session.rows((str.lower, str.upper, str.swapcase)):
        fields = [(spell(name), value) for name, value in session.fields(body)]
        expect_ok(session.send(session.head("POST", path, fields) + body), fields[2][0])


@case(
    "v0.http.header_space",
    "wire.http.header_space",
    rule="RFC 9112, section 5: optional white space around the value is not part of it",
    why="Fields are written with one space, none, or tabs, by one client or another.",
    openai=REQUIRED,
)
def header_space(session: Session) -> None:
    """No space before a value, and spaces and tabs around it, are understood."""
    body, path = small_body(session), edge_of(session).post_path
    for before, after in session.rows((("", ""), ("  \t", "\t "), ("\t", "  "))):
        lines = "".join(f"{n}:{before}{v}{after}\r\n" for n, v in session.fields(body))
        start = session.head("POST", path, [])[:-2]
        expect_ok(session.send(start + lines.encode() + b"\r\n" + body))


@case(
    "v0.http.split",
    "wire.http.split",
    rule="Wire specification, section 2.1: TCP is a byte stream; pitfall: one read() for the body",
    why="A request larger than a packet arrives in pieces; read once, its JSON is cut short.",
    openai=REQUIRED,
)
def split(session: Session) -> None:
    """A request cut inside its head, between head and body, and inside a character is whole."""
    raw = small_post(session)
    body = raw.index(b"\r\n\r\n") + 4
    for cut in session.rows((9, body - 1, body, raw.index(b"\xc3") + 1)):
        connection = session.connect()
        connection.send(raw[:cut])
        time.sleep(PAUSE)
        connection.send(raw[cut:])
        expect_ok(read_response(connection, "POST"), f"cut at byte {cut}")


@case(
    "v0.http.byte_by_byte",
    "wire.http.byte_by_byte",
    rule="Wire specification, section 2.1: TCP is a byte stream",
    why="Where a packet ends says nothing about the message.",
    openai=REQUIRED,
)
def byte_by_byte(session: Session) -> None:
    """A request that arrives byte by byte is answered like any other."""
    connection = session.connect()
    for number, byte in enumerate(small_post(session)):
        connection.send(bytes([byte]))
        if number % 16 == 0:
            time.sleep(PAUSE / 10)
    expect_ok(read_response(connection, "POST"))


@case(
    "v0.http.absolute_form",
    "wire.http.absolute_form",
    rule="RFC 9112, section 3.2.2: a server MUST accept the absolute-form",
    why="Clients behind a proxy send the whole URL as the target.",
    openai=RECOMMENDED,
)
def absolute_form(session: Session) -> None:
    """POST http://host/path is routed by its path."""
    target = f"http://{session.settings.address.authority}{session.settings.address.prefix}"
    path = f"POST {session.settings.address.prefix}".encode()
    expect_ok(session.send(small_post(session).replace(path, f"POST {target}".encode(), 1)))


@case(
    "v0.http.empty_lines",
    "wire.http.empty_lines",
    rule="RFC 9112, section 2.2: at least one empty line before the request line is ignored",
    why="Old clients send an extra CRLF after a body; it is in front of the next request.",
    openai=INFORMATIVE,
)
def empty_lines(session: Session) -> None:
    """An empty line before the request line is skipped."""
    expect_ok(session.send(b"\r\n" + small_post(session)))


@case(
    "v0.http.http10",
    "wire.http.http10",
    rule="RFC 9112, section 2.3; wire specification, section 2.1: HTTP/1.0 is accepted",
    why="Health probes and benchmark tools still speak HTTP/1.0.",
    openai=RECOMMENDED,
)
def http10(session: Session) -> None:
    """An HTTP/1.0 request without Host is answered, and the connection closed."""
    body, path = small_body(session), edge_of(session).post_path
    fields = [field for field in session.fields(body, connection=None) if field[0] != "Host"]
    connection = session.connect()
    connection.send(session.head("POST", path, fields, "HTTP/1.0") + body)
    response = read_response(connection, "POST")
    expect_ok(response)
    mark = response.header_mark("Transfer-Encoding")
    check(response.header("Transfer-Encoding") is None, "chunks for an HTTP/1.0 client", mark)
    connection.receive_to_end()


@case(
    "v0.http.request_id",
    rule="Engine specification, section 2.7: an X-Request-Id of 1 to 128 visible ASCII characters"
    " is echoed back",
    why="One id finds the request in the client's log and in the server's.",
)
def request_id(session: Session) -> None:
    """A good id comes back in plain answers, streams, errors and health answers."""
    body = session.completion_body(max_tokens=1)
    streamed = session.completion_body(max_tokens=1, stream=True)
    for value in session.rows(("a", "req-1_~!{}", "x" * 128)):
        requests = (
            session.request("POST", "/v1/completions", streamed, [("x-request-id", value)]),
            session.request("POST", "/v1/completions", body, [("X-Request-Id", value)]),
            session.request("POST", "/v1/completions", b"{", [("X-Request-Id", value)]),
            session.request("GET", "/healthz", None, [("X-Request-Id", value)]),
        )
        for raw in session.rows(requests):
            response = session.send(raw)
            echoed, mark = response.header("X-Request-Id"), response.head
            check(echoed == value, f"X-Request-Id {value!r} came back as {echoed!r}", mark)


@case(
    "v0.http.no_request_id",
    rule="Engine specification, section 2.7 and test echoes_x_request_id: absent otherwise",
    why="A value with a control or non-ASCII byte in a log or a header is an injection.",
)
def no_request_id(session: Session) -> None:
    """Without an id, or with a bad one (empty, 129 characters, a space, non-ASCII), none comes."""
    body = session.completion_body(max_tokens=1)
    for value in session.rows((None, "", "x" * 129, "a b", "caf\xe9", "\xc3\xa9")):
        fields = [] if value is None else [("X-Request-Id", value)]
        response = session.send(session.request("POST", "/v1/completions", body, fields))
        expect_ok(response, f"X-Request-Id {value!r}")
        mark = response.header_mark("X-Request-Id")
        echoed = response.header("X-Request-Id")
        check(echoed is None, f"X-Request-Id {value!r} came back as {echoed!r}", mark)
