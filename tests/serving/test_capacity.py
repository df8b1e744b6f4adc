"""Beyond --max-connections: 503 with Retry-After, and a clean close."""

from __future__ import annotations

from support.memory import MakePort
from support.wire import get
from tinyllm.serving.connection import LINGER_SECONDS
from tinyllm.serving.edge import REFUSED_AT_ONCE

KEPT = get("/healthz", "Connection: keep-alive")


def test_one_too_many_is_told_to_come_back(make_port: MakePort) -> None:
    port = make_port(max_connections=2)
    first, second, third = port.connect(), port.connect(), port.connect()
    reply = third.reply
    assert reply.status == 503
    assert reply.headers["retry-after"] == "1"
    assert reply.headers["connection"] == "close"
    assert reply.json()["error"] == {
        "message": "too many connections",
        "type": "server_error",
        "param": None,
        "code": None,
    }
    assert third.ended
    for welcome in (first, second):
        welcome.send(get("/healthz"))
        assert welcome.reply.status == 200


def test_the_request_of_one_too_many_does_not_reset_its_answer(make_port: MakePort) -> None:
    port = make_port(max_connections=1)
    port.connect()
    client = port.connect()
    client.send(get("/healthz"))
    assert client.reply.status == 503
    assert not client.closed, "the answer may still be on its way"
    client.finish_sending()
    assert client.closed


def test_a_place_is_free_as_soon_as_a_client_leaves(make_port: MakePort) -> None:
    port = make_port(max_connections=1)
    first = port.connect()
    turned_away = [port.connect() for _ in range(10)]
    first.send(get("/healthz"))
    assert first.closed
    assert not any(client.closed for client in turned_away), "they linger, but take no place"
    next_one = port.connect()
    next_one.send(get("/healthz"))
    assert next_one.reply.status == 200


def test_those_turned_away_are_bounded_too(make_port: MakePort) -> None:
    port = make_port(max_connections=1)
    port.connect()
    told = [port.connect() for _ in range(REFUSED_AT_ONCE)]
    assert all(client.reply.status == 503 for client in told)
    beyond = port.connect()
    port.loop.run()
    assert beyond.closed
    assert beyond.received == b""
    assert len(port.exchanges) == REFUSED_AT_ONCE, "no line says 503 to whom nothing was sent"
    port.loop.advance(LINGER_SECONDS + 1)
    assert all(client.closed for client in told)
    assert port.connect().reply.status == 503


def test_a_kept_connection_keeps_its_place(make_port: MakePort) -> None:
    port = make_port(max_connections=1)
    first = port.connect()
    first.send(KEPT)
    assert port.connect().reply.status == 503
    first.send(KEPT)
    assert first.received.count(b"200 OK") == 2
