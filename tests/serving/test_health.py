"""GET /healthz, on the API port and on the health port, before there are ports."""

from __future__ import annotations

import pytest

from support.memory import Port
from support.wire import get, post
from tinyllm.serving.health import SHUTTING_DOWN
from tinyllm.serving.routes import dispatch_health
from tinyllm.serving.server import Server

HEALTHY = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n"
    b'Connection: close\r\n\r\n{"ok":true}'
)


def health_port(unavailable: str = "") -> Port:
    return Port(lambda request, exchange: dispatch_health(request, unavailable, exchange))


def asked(port: Port, request: bytes) -> bytes:
    client = port.connect()
    client.send(request)
    assert client.closed
    return client.received


def test_both_ports_say_the_same(port: Port) -> None:
    assert asked(port, get("/healthz")) == HEALTHY
    assert asked(health_port(), get("/healthz")) == HEALTHY


def test_head_has_the_head_alone(port: Port) -> None:
    request = get("/healthz").replace(b"GET", b"HEAD")
    for one in (port, health_port()):
        assert asked(one, request) == HEALTHY.removesuffix(b'{"ok":true}')


@pytest.mark.parametrize("reason", [SHUTTING_DOWN, "no worker is up"])
def test_whoever_is_unavailable_says_why_and_when_to_ask_again(
    server: Server, port: Port, reason: str
) -> None:
    server.unavailable = reason
    for one in (port, health_port(reason)):
        client = one.connect()
        client.send(get("/healthz", "X-Request-Id: a"))
        assert client.reply.status == 503
        assert client.reply.headers["retry-after"] == "1"
        assert client.reply.headers["x-request-id"] == "a"
        assert client.reply.json()["error"]["message"] == reason


def test_completions_are_answered_to_the_last(server: Server, port: Port) -> None:
    server.unavailable = SHUTTING_DOWN
    client = port.connect()
    client.send(post("/v1/completions", {"model": "m", "prompt": "a", "max_tokens": 3}))
    assert client.reply.status == 200


@pytest.mark.parametrize("path", ["/", "/v1/completions", "/openapi.json", "/healthz/", "/Healthz"])
def test_the_health_port_knows_one_path(path: str) -> None:
    assert asked(health_port(), get(path)).startswith(b"HTTP/1.1 404 Not Found\r\n")


def test_a_probe_that_posts_is_told_what_is_allowed() -> None:
    answer = asked(health_port(), post("/healthz", b""))
    assert answer.startswith(b"HTTP/1.1 405 Method Not Allowed\r\n")
    assert b"\r\nAllow: GET, HEAD\r\n" in answer
