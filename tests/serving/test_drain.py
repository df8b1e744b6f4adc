"""What a shutdown means to each kind of connection."""

from __future__ import annotations

import errno

import pytest

from support.memory import Port
from support.wire import get, post
from tinyllm.serving.connection import LINGER_SECONDS
from tinyllm.serving.transport import ACCEPTS_PER_TURN

KEPT = get("/healthz", "Connection: keep-alive")
GREEDY = {"model": "m", "prompt": "a", "temperature": 0}
LONG = post("/v1/completions", {**GREEDY, "max_tokens": 2000}, "Connection: keep-alive")
STREAM = post("/v1/completions", {**GREEDY, "max_tokens": 2000, "stream": True})


def test_an_idle_kept_connection_is_closed(port: Port) -> None:
    client = port.connect()
    client.send(KEPT)
    port.edge.stop_accepting()
    assert client.closed
    assert not client.was_reset


@pytest.mark.parametrize("sent", [KEPT[:9], LONG[:-1]], ids=["head", "body"])
def test_a_request_under_way_is_answered_and_then_closed(port: Port, sent: bytes) -> None:
    whole = KEPT if sent == KEPT[:9] else LONG
    client = port.connect()
    client.send(sent)
    port.edge.stop_accepting()
    assert not client.ended
    client.send(whole[len(sent) :])
    assert client.reply.status == 200
    assert client.reply.headers["connection"] == "close"
    assert client.closed


@pytest.mark.parametrize("request_bytes", [LONG, STREAM], ids=["plain", "stream"])
def test_an_answer_under_way_ends_and_closes(port: Port, request_bytes: bytes) -> None:
    client = port.connect()
    client.send_quietly(request_bytes)
    port.loop.round()
    port.loop.round()
    assert port.edge.busy == 1
    port.edge.stop_accepting()
    port.loop.run()
    assert client.reply.status == 200
    assert client.reply.headers["connection"] == "close"
    assert client.closed


def test_requests_that_wait_behind_each_other_are_all_answered(port: Port) -> None:
    client = port.connect()
    client.send_quietly(KEPT * 40)  # the first turn answers sixteen, to be kept alive
    port.loop.round()
    port.edge.stop_accepting()
    port.loop.run()
    first, _, rest = client.received.partition(b"Connection: close\r\n\r\n")
    assert first.count(b"HTTP/1.1 200 OK\r\n") == 17, "the next one says that it is the last"
    assert rest == b'{"ok":true}'
    assert client.ended


def test_a_connection_between_two_turns_is_not_kept(port: Port) -> None:
    client = port.connect()
    client.send_quietly(KEPT * 16)  # the turn is over, and so are its requests
    port.loop.round()
    port.edge.stop_accepting()
    port.loop.run()
    assert client.received.count(b"HTTP/1.1 200 OK\r\n") == 16
    assert client.closed


def test_a_new_connection_must_hurry_with_its_request(port: Port) -> None:
    slow, quick = port.connect(), port.connect()
    port.edge.stop_accepting()
    quick.send(KEPT)
    assert quick.reply.status == 200, "it was on its way"
    port.loop.advance(LINGER_SECONDS - 0.1)
    assert not slow.ended
    port.loop.advance(1)
    assert slow.ended


@pytest.mark.parametrize("count", [0, 1, ACCEPTS_PER_TURN, 3 * ACCEPTS_PER_TURN])
def test_those_who_wait_to_be_accepted_are_still_served(port: Port, count: int) -> None:
    clients = [port.connect_quietly() for _ in range(count)]
    for client in clients:
        client.send_quietly(KEPT)
    port.edge.stop_accepting()
    port.loop.run()
    assert all(client.reply.status == 200 for client in clients)
    assert all(client.closed for client in clients)
    assert port.listener.closed
    assert port.loop.watched == 0


def test_stopping_while_accepting_pauses_leaves_nothing_due(port: Port) -> None:
    port.listener.accept_error = OSError(errno.EMFILE, "out of descriptors")
    port.loop.run()
    port.edge.stop_accepting()
    port.loop.advance(1)
    assert port.loop.watched == 0
