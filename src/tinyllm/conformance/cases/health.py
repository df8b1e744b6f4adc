"""GET /healthz: what a load balancer and Kubernetes wait on."""

from __future__ import annotations

from tinyllm.conformance.case import REQUIRED, Need, case
from tinyllm.conformance.client import Address
from tinyllm.conformance.evidence import CaseSkipped, check
from tinyllm.conformance.response import Response
from tinyllm.conformance.session import Session

PATH = "/healthz"
WHY = "A probe that gets another answer takes a healthy server out of service."


def ask_health(session: Session, method: str = "GET") -> Response:
    """Ask the API port for its health."""
    return session.send(session.request(method, PATH), method)


def health_address(session: Session) -> Address:
    """Return the health URL's address, or skip the case."""
    if session.settings.health is None:
        raise CaseSkipped(f"needs {Need.HEALTH.value}")
    return session.settings.health


@case(
    "v0.healthz.api_port",
    rule="Engine specification, section 2.7: GET /healthz answers 200",
    why=WHY,
)
def api_port(session: Session) -> None:
    """GET /healthz on the API port is 200."""
    response = ask_health(session)
    check(response.status == 200, f"status {response.status}, not 200", response.status_line)


@case(
    "v0.healthz.health_port",
    rule="Engine specification, section 2.7: 200 on both the API port and the health port",
    why=WHY,
    openai=REQUIRED,
    need=Need.HEALTH,
)
def health_port(session: Session) -> None:
    """The health URL answers 200."""
    address = health_address(session)
    raw = f"GET {address.prefix} HTTP/1.1\r\nHost: {address.authority}\r\nConnection: close\r\n\r\n"
    response = session.send(raw.encode(), "GET", address)
    check(response.status == 200, f"status {response.status}, not 200", response.status_line)


@case(
    "v0.healthz.query",
    rule="Engine specification, section 4: path() is the target without its query",
    why="Probes add a query to get past caches.",
)
def query(session: Session) -> None:
    """A query after the path does not change the route."""
    response = session.send(session.request("GET", f"{PATH}?probe=1&t=2"), "GET")
    check(response.status == 200, f"status {response.status}, not 200", response.status_line)


@case(
    "v0.healthz.head",
    rule="RFC 9110, section 9.3.2: HEAD is GET without the body; contract, point 7",
    why="A body after a HEAD answer is taken for the next answer on the connection.",
)
def head(session: Session) -> None:
    """HEAD /healthz has GET's status and fields, and no body."""
    plain = ask_health(session)
    connection = session.connect()
    connection.send(session.request("HEAD", PATH))
    connection.receive_to_end()
    got = bytes(connection.exchange.received)
    wanted = bytes(plain.exchange.received[: plain.head.end])
    at = min(len(wanted), len(got) - 1) if got.startswith(wanted) else 0
    check(got == wanted, "not GET's head alone", connection.exchange.mark(at))


@case(
    "v0.healthz.method",
    rule="RFC 9110, section 15.5.6: 405 with Allow; contract, point 7",
    why="The answer tells a caller what the path is for.",
)
def method(session: Session) -> None:
    """POST and DELETE on /healthz are 405, with Allow naming GET."""
    for name in session.rows(("POST", "DELETE")):
        body = b"{}" if name == "POST" else None
        response = session.send(session.request(name, PATH, body), name)
        check(
            response.status == 405,
            f"{name}: status {response.status}, not 405",
            response.status_line,
        )
        mark = response.header_mark("Allow")
        check(response.has_token("Allow", "get"), f"{name}: Allow does not name GET", mark)
