"""The life of a connection: closing, keeping, and clients that end theirs early."""

from __future__ import annotations

from tinyllm.conformance.case import INFORMATIVE, RECOMMENDED, REQUIRED, case
from tinyllm.conformance.cases.requests import expect_ok
from tinyllm.conformance.edge import edge_of, small_post
from tinyllm.conformance.evidence import CaseSkipped, NoAnswer, check
from tinyllm.conformance.response import read_response
from tinyllm.conformance.session import Session


@case(
    "v0.http.close_honoured",
    "wire.http.close_honoured",
    rule="RFC 9112, section 9.6: after Connection: close, the server closes",
    why="The client waits for the close; a server that forgets it leaks both ends.",
    openai=REQUIRED,
)
def close_honoured(session: Session) -> None:
    """A request with Connection: close is answered, and then the connection closes."""
    connection = session.connect()
    connection.send(small_post(session, "close"))
    expect_ok(read_response(connection, "POST"))
    connection.receive_to_end()


@case(
    "v0.http.always_close",
    "wire.http.always_close",
    rule="Engine specification, section 2.7: every response has Connection: close",
    why="A v0 client relies on one request per connection.",
)
def always_close(session: Session) -> None:
    """A client that says nothing about its connection gets Connection: close, in answers and
    errors, and the close itself.
    """
    requests = (
        small_post(session, None),
        session.request("GET", edge_of(session).get_path, connection=None),
        session.request("GET", "/no-such-path", connection=None),
    )
    for raw in session.rows(requests):
        connection = session.connect()
        connection.send(raw)
        response = read_response(connection, "POST")
        mark = response.header_mark("Connection")
        check(response.has_token("Connection", "close"), "no Connection: close", mark)
        connection.receive_to_end()


@case(
    "v0.http.keep_alive_kept",
    "wire.http.keep_alive_kept",
    rule="RFC 9112, section 9.3: without Connection: close, the connection persists",
    why="A client sends its next request on a connection that was promised to stay open; if it"
    " is closed instead, the request fails and may not be safe to repeat.",
    openai=REQUIRED,
)
def keep_alive_kept(session: Session) -> None:
    """If the answer promises to keep the connection, a second and third request on it are
    answered.
    """
    connection = session.connect()
    for number in (1, *session.rows((2, 3))):
        connection.send(small_post(session, "keep-alive"))
        response = read_response(connection, "POST")
        expect_ok(response, f"request {number}")
        if not response.stays_open:
            return  # promised nothing


@case(
    "v0.http.keep_alive_offered",
    "wire.http.keep_alive_offered",
    rule="Contract, point 6: a client that sends Connection: keep-alive gets it",
    why="Official clients ask for it; a connection per request costs them a round trip each.",
    openai=INFORMATIVE,
)
def keep_alive_offered(session: Session) -> None:
    """A client that asks for keep-alive is promised it, and the promise is spelled out."""
    response = session.send(small_post(session, "keep-alive"))
    mark = response.header_mark("Connection")
    check(response.stays_open, "the connection is not kept", mark)
    said = response.has_token("Connection", "keep-alive")
    check(said or response.version == "1.1", "no Connection: keep-alive", mark)


@case(
    "v0.http.pipelining",
    "wire.http.pipelining",
    rule="RFC 9112, section 9.3.2: pipelined requests are answered in their order",
    why="Two requests in one packet are what a fast client, or a proxy, may send.",
    openai=RECOMMENDED,
)
def pipelining(session: Session) -> None:
    """Two requests sent at once on a kept connection get two answers, in order."""
    connection = session.connect()
    second = session.request("GET", "/no-such-path", connection="close")
    connection.send(small_post(session, "keep-alive") + second)
    first = read_response(connection, "POST")
    expect_ok(first)
    if not first.stays_open:
        raise CaseSkipped("the server keeps no connections")
    answer = read_response(connection, "GET")
    check(
        answer.status == 404, f"status {answer.status} for the second, not 404", answer.status_line
    )


@case(
    "v0.http.half_close",
    "wire.http.half_close",
    rule="RFC 9112, section 9.6; contract, point 3: a client that shut down its sending side after"
    " a whole request still gets its answer",
    why="Scripts with nc, and some proxies, end their side as soon as the request is sent.",
    openai=RECOMMENDED,
)
def half_close(session: Session) -> None:
    """A whole request followed by the end of the sending side is answered."""
    connection = session.connect()
    connection.send(small_post(session))
    connection.finish_sending()
    expect_ok(read_response(connection, "POST"))


@case(
    "v0.http.left_early",
    "wire.http.left_early",
    rule="Contract, point 3: nobody left to answer is no error of the server's",
    why="Clients vanish at every byte; a server that does not survive that does not survive.",
    openai=REQUIRED,
)
def left_early(session: Session) -> None:
    """After clients that leave at once, in the head, in the body, or by a reset, it answers."""
    raw = small_post(session)
    for cut in session.rows((len(raw) - 3, 20, 1, 0)):
        for leave in ("close", "abort"):
            connection = session.connect()
            connection.send(raw[:cut])
            connection.abort() if leave == "abort" else connection.close()
    expect_ok(session.send(raw))


@case(
    "v0.http.cut_request",
    "wire.http.cut_request",
    rule="RFC 9112, section 8: an incomplete request is not to be processed",
    why="A body that was cut off in transit must not be taken for the whole.",
    openai=REQUIRED,
)
def cut_request(session: Session) -> None:
    """A body that ends before its announced length is never answered with 200."""
    raw = small_post(session).replace(b"Content-Length: ", b"Content-Length: 9", 1)
    connection = session.connect()
    connection.send(raw)
    connection.finish_sending()
    try:
        response = read_response(connection, "POST")
    except NoAnswer:
        waits = connection.exchange.end == "timed out"
        check(not waits, "it waits for bytes that cannot come any more", connection.exchange)
        return  # closed without an answer: nobody is taken to be left
    check(response.status >= 400, f"status {response.status} for half a body", response.status_line)
