"""Request bodies: how long they may be, who says so, and what happens when they are refused."""

from __future__ import annotations

from tinyllm.conformance.case import INFORMATIVE, RECOMMENDED, REQUIRED, Suite, case
from tinyllm.conformance.cases.errors import error_object
from tinyllm.conformance.cases.requests import expect_ok
from tinyllm.conformance.edge import edge_of, small_body, small_post
from tinyllm.conformance.evidence import check, fail
from tinyllm.conformance.response import Response, read_head, read_response
from tinyllm.conformance.session import Session

MEBIBYTE = 1024 * 1024


def expect_status(session: Session, response: Response, status: int) -> None:
    """Break the case unless the answer has this status and, in the engine, the error shape."""
    check(
        response.status == status, f"status {response.status}, not {status}", response.status_line
    )
    if session.settings.suite is Suite.ENGINE:
        error_object(response)


@case(
    "v0.http.length_required",
    "wire.http.length_required",
    rule="RFC 9110, section 15.5.12; contract, point 2",
    why="Without a length the body's end is unknown; guessing reads too much or too little.",
)
def length_required(session: Session) -> None:
    """A POST without Content-Length is 411."""
    fields = [field for field in session.fields(b"{}") if field[0] != "Content-Length"]
    response = session.send(session.head("POST", edge_of(session).post_path, fields))
    expect_status(session, response, 411)


@case(
    "v0.http.body_too_large",
    "wire.http.body_too_large",
    rule="Wire specification, section 2.2: a body over 1 MiB is 413",
    why="Without a cap, one client makes the server hold any amount of memory.",
)
def body_too_large(session: Session) -> None:
    """A Content-Length of 1 MiB and one byte is 413, before the body is sent."""
    fields = _with_length(session, str(MEBIBYTE + 1))
    response = session.send(session.head("POST", edge_of(session).post_path, fields))
    expect_status(session, response, 413)


@case(
    "v0.http.body_at_limit",
    "wire.http.body_at_limit",
    rule="Wire specification, section 2.2: only a body over 1 MiB is too large",
    why="A limit of less than what is promised refuses honest requests.",
)
def body_at_limit(session: Session) -> None:
    """A body of exactly 1 MiB, most of it white space, is read and answered."""
    body = small_body(session)
    size = len(small_body(session)) + 1 if session.settings.brief else MEBIBYTE
    padded = body + b" " * (size - len(body))
    expect_ok(session.send(session.request("POST", edge_of(session).post_path, padded)))


@case(
    "v0.http.answer_survives",
    "wire.http.answer_survives",
    rule="RFC 9112, section 9.6: close in stages, so that the client can read the last response",
    why="A server that closes with bytes unread makes the kernel send a reset, and the client"
    " sees a broken connection in place of the error that explains it.",
)
def answer_survives(session: Session) -> None:
    """A client that sends all of a body that is too large still receives the 413."""
    fields = _with_length(session, str(2 * MEBIBYTE))
    head = session.head("POST", edge_of(session).post_path, fields)
    sent = b" " * (2 * MEBIBYTE if not session.settings.brief else MEBIBYTE // 16)
    expect_status(session, session.send(head + sent), 413)


@case(
    "v0.http.huge_length",
    "wire.http.huge_length",
    rule="Contract, point 2; RFC 9110, section 8.6: anticipate large numbers",
    why="A length of a hundred digits overflows a counter, or is taken at its word.",
)
def huge_length(session: Session) -> None:
    """A Content-Length of 100 digits is 413."""
    fields = _with_length(session, "9" * 100)
    response = session.send(session.head("POST", edge_of(session).post_path, fields))
    expect_status(session, response, 413)


@case(
    "v0.http.head_too_large",
    "wire.http.head_too_large",
    rule="RFC 6585, section 5; contract, point 2: a head over 16 KiB is 431 (413 from `wire`)",
    why="Without a cap, one client makes the server hold any amount of memory.",
)
def head_too_large(session: Session) -> None:
    """A head of 20 KiB is refused with its status, also when it has no end yet."""
    wanted = edge_of(session).head_too_large
    head = session.head("GET", edge_of(session).get_path, [("Host", "x"), ("X-A", "a" * 20480)])
    expect_status(session, session.send(head, "GET"), wanted)
    expect_status(session, session.send(head[:-4], "GET"), wanted)


@case(
    "v0.http.head_at_limit",
    "wire.http.head_at_limit",
    rule="Wire specification, section 2.1: up to 16 KiB of request line and headers",
    why="Cookies and tokens make heads of many kilobytes; a smaller cap refuses honest clients.",
)
def head_at_limit(session: Session) -> None:
    """A head of 15 KiB in many fields is answered."""
    more = [(f"X-Field-{i}", "a" * 230) for i in range(60)]
    expect_ok(session.send(session.request("GET", edge_of(session).get_path, None, more), "GET"))


@case(
    "v0.http.transfer_coding",
    "wire.http.transfer_coding",
    rule="RFC 9112, section 6.1: 501 for a coding it does not understand; contract, point 2",
    why="A body whose coding is ignored is read as the next request.",
)
def transfer_coding(session: Session) -> None:
    """A chunked request body is refused: 501 from the engine, 400 from `wire`."""
    expect_status(session, session.send(_chunked(session)), edge_of(session).transfer_coding)


@case(
    "v0.http.chunked_request",
    rule="RFC 9112, section 7.1: a recipient MUST be able to parse the chunked coding",
    why="Some clients stream a body whose length they do not know; they need an answer either way.",
    tinyllm=INFORMATIVE,
    openai=RECOMMENDED,
)
def chunked_request(session: Session) -> None:
    """A chunked request body is understood, or refused with 411 or 501."""
    response = session.send(_chunked(session))
    good = response.status in (200, 411, 501)
    check(good, f"status {response.status}, not 200, 411 or 501", response.status_line)


@case(
    "v0.http.expect_continue",
    "wire.http.expect_continue",
    rule="RFC 9110, section 10.1.1: answer 100 (Continue) or a final status",
    why="curl holds a large body back until it hears 100, and loses a second per request if it"
    " does not.",
    openai=RECOMMENDED,
)
def expect_continue(session: Session) -> None:
    """A request with Expect: 100-continue hears 100 before it sends its body, then its answer."""
    body = small_body(session)
    fields = session.fields(body, [("Expect", "100-continue")])
    connection = session.connect()
    connection.send(session.head("POST", edge_of(session).post_path, fields))
    while b"\r\n\r\n" not in connection.exchange.received:
        if not connection.receive():
            fail("closed instead of 100 Continue", connection.exchange)
    first = bytes(connection.exchange.received).split(b"\r\n")[0]
    interim = first.startswith(b"HTTP/1.1 100")
    check(interim, "not 100 Continue", connection.exchange.mark(0, len(first)))
    connection.send(body)
    expect_ok(read_response(connection, "POST"))


@case(
    "v0.http.expect_refused",
    "wire.http.expect_refused",
    rule="RFC 9110, section 10.1.1: a final status instead, if the body will not be read",
    why="100 Continue for a body that will be refused makes the client send it for nothing.",
)
def expect_refused(session: Session) -> None:
    """With Expect and a length over the limit, 413 comes at once, and no 100 before it."""
    fields = [*_with_length(session, str(2 * MEBIBYTE)), ("Expect", "100-continue")]
    connection = session.connect()
    connection.send(session.head("POST", edge_of(session).post_path, fields))
    response = read_head(connection, "POST")
    mark = response.exchange.mark(0, 25)
    check(not response.interim, "100 Continue before the refusal", mark)
    check(response.status == 413, f"status {response.status}, not 413", response.status_line)


@case(
    "v0.http.leftover",
    "wire.http.leftover",
    rule="RFC 9112, section 6.3: the body is exactly Content-Length bytes",
    why="Bytes after the body are another request's; read as part of this one, they change it.",
    openai=REQUIRED,
)
def leftover(session: Session) -> None:
    """Bytes after the announced length do not belong to the body."""
    expect_ok(session.send(small_post(session) + b"}}garbage"))


def _with_length(session: Session, length: str) -> list[tuple[str, str]]:
    """Return the fields of a POST that announces this length."""
    fields = session.fields(b"{}")
    return [(name, length if name == "Content-Length" else value) for name, value in fields]


def _chunked(session: Session) -> bytes:
    """Return a POST whose body is sent in two chunks."""
    body = small_body(session)
    fields = [
        ("Transfer-Encoding", "chunked") if name == "Content-Length" else (name, value)
        for name, value in session.fields(body)
    ]
    chunks = [body[:5], body[5:], b""]
    coded = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    return session.head("POST", edge_of(session).post_path, fields) + coded
