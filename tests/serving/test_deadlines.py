"""Slow clients (CONTRACT, point 8). The loop's clock moves by hand: no test here waits."""

from __future__ import annotations

import pytest

from support.memory import MakePort, Port
from support.wire import get, post
from tinyllm.serving.connection import Connection
from tinyllm.serving.exchange import Ended

HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 57\r\n\r\n"
BODY = b'{"model":"m","prompt":"a","max_tokens":3,"temperature":0}'
KEPT = get("/healthz", "Connection: keep-alive")
LATE = 1.0  # a deadline may be noticed that much late


def test_a_client_that_sends_nothing_is_told_and_closed(port: Port) -> None:
    client = port.connect()
    port.loop.advance(9.9)
    assert client.received == b""
    port.loop.advance(0.1 + LATE)
    assert client.reply.status == 408
    assert client.ended
    assert port.exchanges[0].ended is Ended.TIMED_OUT


@pytest.mark.parametrize("sent", [b"P", b"POST / HTTP/1.1\r\nHost: t", HEAD[:-1], b"\r"])
def test_a_head_has_ten_seconds_however_it_trickles(port: Port, sent: bytes) -> None:
    client = port.connect()
    step = 9.9 / len(sent)
    for byte in sent:
        client.send(bytes([byte]))
        port.loop.advance(step)
    assert client.received == b""
    port.loop.advance(0.1 + LATE)
    assert client.reply.status == 408
    assert "head" in client.reply.json()["error"]["message"]
    assert client.reply.json()["error"]["type"] == "invalid_request_error"


def test_a_body_has_thirty_seconds_after_its_head(port: Port) -> None:
    client = port.connect()
    port.loop.advance(9)
    client.send(HEAD)
    for byte in BODY[:28]:
        port.loop.advance(1)
        client.send(bytes([byte]))
    assert client.received == b""
    port.loop.advance(2 + LATE)
    assert client.reply.status == 408
    assert "body" in client.reply.json()["error"]["message"]
    assert port.exchanges[0].ended is Ended.TIMED_OUT


def test_a_request_in_time_is_answered_however_slowly_it_came(port: Port) -> None:
    client = port.connect()
    port.loop.advance(9)
    client.send(HEAD)
    port.loop.advance(29)
    client.send(BODY)
    assert client.reply.status == 200


def test_an_idle_kept_connection_closes_quietly(port: Port) -> None:
    client = port.connect()
    client.send(KEPT)
    answered = client.received
    port.loop.advance(74.9)
    assert not client.closed
    port.loop.advance(0.1 + LATE)
    assert client.closed
    assert client.received == answered


def test_the_next_head_of_a_kept_connection_has_its_own_ten_seconds(port: Port) -> None:
    client = port.connect()
    client.send(KEPT)
    port.loop.advance(70)
    client.send(KEPT[:10])
    port.loop.advance(9.9)
    assert not client.ended
    port.loop.advance(0.1 + LATE)
    assert client.received.count(b"HTTP/1.1 408 Request Timeout") == 1
    assert client.ended


def test_a_kept_connection_starts_its_idle_time_anew_after_each_answer(port: Port) -> None:
    client = port.connect()
    for _ in range(5):
        client.send(KEPT)
        port.loop.advance(60)
    assert client.received.count(b"200 OK") == 5
    assert not client.closed


def test_a_half_sent_request_after_whole_ones_is_a_408(port: Port) -> None:
    client = port.connect()
    client.send(KEPT * 3 + KEPT[:7])
    port.loop.advance(10 + LATE)
    assert client.received.count(b"200 OK") == 3
    assert client.received.count(b"408") == 1


def test_no_deadline_ends_an_answer_that_runs(make_port: MakePort) -> None:
    port = make_port(head_timeout=1, body_timeout=1, idle_timeout=1)
    client = port.connect()
    client.send_quietly(post("/v1/completions", {"model": "m", "prompt": "a", "max_tokens": 4000}))
    port.loop.round()
    port.loop.pass_time(100)  # in which the loop was kept from its timers
    port.edge.watch()
    assert port.edge.busy == 1
    port.loop.run()
    assert client.reply.status == 200


def test_no_deadline_ends_a_client_whose_requests_wait_for_us(port: Port) -> None:
    client = port.connect()
    client.send_quietly(KEPT * 100)  # answered sixteen at a time
    port.loop.round()
    port.loop.pass_time(100)
    port.edge.watch()
    port.loop.run()
    assert client.received.count(b"200 OK") == 100
    assert b"408" not in client.received


@pytest.mark.parametrize("name", ["head_timeout", "body_timeout", "idle_timeout", "stall_timeout"])
def test_a_time_of_zero_does_not_make_the_loop_busy(make_port: MakePort, name: str) -> None:
    port = make_port(**{name: 0.0})
    port.loop.advance(2)  # it would never end


def test_a_fault_in_one_expiry_leaves_the_others_their_deadlines(
    port: Port, monkeypatch: pytest.MonkeyPatch
) -> None:
    port.connect()
    good = port.connect()
    expire = Connection.expire
    with monkeypatch.context() as patch:
        patch.setattr(Connection, "expire", explode)
        with pytest.raises(RuntimeError):
            port.loop.advance(11)
    assert Connection.expire is expire
    port.loop.advance(1)
    assert good.reply.status == 408


def explode(connection: Connection) -> None:
    raise RuntimeError("a fault of ours")


# A client that does not read


def test_a_client_that_takes_nothing_is_cut_off(port: Port) -> None:
    client = port.connect()
    client.stop_reading()
    client.send(
        post("/v1/completions", {"model": "m", "prompt": "a", "max_tokens": 4096, "stream": True})
    )
    port.loop.advance(59.9)
    assert not client.closed
    port.loop.advance(0.1 + LATE)
    assert client.closed
    assert client.was_reset, "an end of file would mean that the stream is whole"
    (exchange,) = port.exchanges
    assert exchange.ended is Ended.STALLED
    assert exchange.completion_tokens < 4096


def test_a_client_that_takes_a_little_now_and_then_is_not(port: Port) -> None:
    client = port.connect()
    client.stop_reading()
    client.send(
        post("/v1/completions", {"model": "m", "prompt": "a", "max_tokens": 4096, "stream": True})
    )
    for _ in range(20):
        port.loop.advance(50)
        client.take(100)
    client.take_all()
    assert client.reply.events()[-1] == "[DONE]"
    assert port.exchanges[0].ended is Ended.COMPLETED


@pytest.mark.parametrize("count", [1, 40], ids=["the last answer", "many pipelined answers"])
def test_a_client_that_takes_nothing_of_a_first_answer_is_cut_off(port: Port, count: int) -> None:
    """It was there when the connection was accepted, and part of its answer left at once."""
    client = port.connect_quietly()
    client.stop_reading()
    client.socket.send_buffer = 4096
    one = post("/v1/completions", {"model": "m" * 9000, "prompt": "a"}, "Connection: keep-alive")
    last = post("/v1/completions", {"model": "m" * 9000, "prompt": "a"})
    client.send_quietly(one * (count - 1) + last)
    port.loop.run()
    port.loop.advance(59.9)
    assert not client.closed
    port.loop.advance(0.1 + LATE)
    assert client.closed
    assert client.was_reset


@pytest.mark.parametrize("takes", [True, False])
def test_the_last_bytes_have_the_same_patience(port: Port, takes: bool) -> None:
    client = port.connect()
    client.stop_reading()
    client.send(post("/v1/completions", {"model": "m" * 50_000, "prompt": "a"}))
    for _ in range(6):
        port.loop.advance(50)
        if takes:
            client.take(100)
    assert client.closed is not takes
    if takes:
        client.take_all()
        assert client.reply.status == 200
        assert int(client.reply.headers["content-length"]) == len(client.reply.body)
        assert client.closed


def test_answers_before_a_half_request_keep_their_time_to_be_read(port: Port) -> None:
    client = port.connect()
    client.stop_reading()
    client.send(KEPT * 10 + b"GET")
    client.finish_sending()
    port.loop.advance(30)
    client.take_all()
    assert client.received.count(b"200 OK") == 10
