"""The `wire` server's routes: what each answers, to the byte."""

from __future__ import annotations

from tinyllm.conformance.case import case
from tinyllm.conformance.evidence import check
from tinyllm.conformance.response import Response
from tinyllm.conformance.session import Session

TABLE = "Wire specification, section 4, routes"
BAD_COUNTS = ("n=1001", "n=-1", "n=x", "n=", "n=1.0", "n=+1", "n=0x1", "n=1_0")
BAD_DELAYS = ("delay_ms=5001", "delay_ms=-1", "delay_ms=x", "n=1&delay_ms=")
HEALTH = (
    b"HTTP/1.1 200 OK\r\n"
    b"Content-Type: application/json\r\n"
    b"Content-Length: 11\r\n"
    b"Connection: close\r\n"
    b"\r\n"
    b'{"ok":true}'
)


def expect_json_error(response: Response, status: int) -> None:
    """Break the case unless the answer is this status with {"error": "<message>"}."""
    check(
        response.status == status, f"status {response.status}, not {status}", response.status_line
    )
    mark = response.header_mark("Content-Type")
    check(response.media_type == "application/json", f"type {response.media_type!r}", mark)
    match response.json():
        case {"error": str(message), **more} if message and not more:
            return
    check(False, 'not {"error": "<message>"}', response.body_mark())


@case(
    "wire.health.bytes",
    rule="Wire specification, section 3 and test_health_response_bytes",
    why="Every client relies on the status line and on Content-Length.",
)
def health_bytes(session: Session) -> None:
    """GET /health is exactly the worked example's bytes."""
    connection = session.connect()
    connection.send(b"GET /health HTTP/1.1\r\nHost: test\r\n\r\n")
    connection.receive_to_end()
    got = bytes(connection.exchange.received)
    differs = (i for i, (a, b) in enumerate(zip(got, HEALTH, strict=False)) if a != b)
    at = next(differs, min(len(got), len(HEALTH)))
    check(got == HEALTH, f"not {HEALTH!r}", connection.exchange.mark(at))


@case("wire.not_found", rule=TABLE, why="A client probes for what a server offers by 404.")
def not_found(session: Session) -> None:
    """Any other path is 404."""
    for path in session.rows(("/", "/healthz", "/health/", "/Health", "/echo2")):
        response = session.get(path)
        check(response.status == 404, f"{path}: status {response.status}", response.status_line)


@case("wire.method", rule=TABLE, why="Allow tells a wrong method from a wrong path.")
def method(session: Session) -> None:
    """A known path with the wrong method is 405 with its one right method in Allow."""
    wrong = (
        ("GET", "/echo", "POST"),
        ("PUT", "/echo", "POST"),
        ("POST", "/health", "GET"),
        ("DELETE", "/health", "GET"),
        ("POST", "/count", "GET"),
    )
    for name, path, allowed in session.rows(wrong):
        body = b"{}" if name in ("POST", "PUT") else None
        response = session.send(session.request(name, path, body), name)
        said = f"{name} {path}: status {response.status}, not 405"
        check(response.status == 405, said, response.status_line)
        got, mark = response.header("Allow"), response.header_mark("Allow")
        check(got == allowed, f"{name} {path}: Allow {got!r}, not {allowed!r}", mark)


@case(
    "wire.count.arguments",
    rule=TABLE,
    why="A number that is guessed, or wraps around, is worse than an error.",
)
def count_arguments(session: Session) -> None:
    """n outside 0 to 1000, delay_ms outside 0 to 5000, and what is no number are 400."""
    for query in session.rows(BAD_COUNTS):
        expect_json_error(session.get(f"/count?{query}"), 400)
    for query in session.rows(BAD_DELAYS):
        expect_json_error(session.get(f"/count?{query}"), 400)


@case(
    "wire.errors.shape",
    rule=TABLE,
    why="A client shows the message; it must find it in one place.",
)
def errors_shape(session: Session) -> None:
    """400, 404, 405 and 411 have the JSON body {"error": "<message>"}."""
    expect_json_error(session.send(session.request("POST", "/echo", b"{"), "POST"), 400)
    expect_json_error(session.get("/no-such-path"), 404)
    expect_json_error(session.get("/echo"), 405)
    expect_json_error(session.send(b"POST /echo HTTP/1.1\r\nHost: x\r\n\r\n"), 411)
