"""The end of a connection whose client may still be sending (CONTRACT, point 5)."""

from __future__ import annotations

import pytest

from support.memory import Client, MakePort, Port
from support.wire import get, post
from tinyllm.serving.connection import LINGER_BYTES, LINGER_SECONDS

TOO_LARGE = b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 4000000000\r\n\r\n"
LATE = 1.0  # a deadline may be noticed that much late


@pytest.fixture
def refused(port: Port) -> Client:
    client = port.connect()
    client.send(TOO_LARGE)
    return client


def test_the_sending_side_ends_with_the_error_and_the_other_stays_open(refused: Client) -> None:
    assert refused.reply.status == 413
    assert refused.ended
    assert not refused.closed


def test_what_is_still_under_way_is_dropped(refused: Client) -> None:
    answer = refused.received
    for _ in range(20):
        refused.send(b"GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n" * 100)
    assert refused.received == answer, "what follows a broken request is no request"
    assert not refused.closed
    assert not refused.was_reset


def test_a_bounded_amount_is_dropped(refused: Client) -> None:
    sent = 0
    while not refused.closed:
        refused.send(bytes(64 * 1024))
        sent += 64 * 1024
        assert sent <= LINGER_BYTES + 64 * 1024
    assert sent > LINGER_BYTES


def test_for_a_bounded_time(port: Port, refused: Client) -> None:
    port.loop.advance(LINGER_SECONDS - 0.1)
    assert not refused.closed
    port.loop.advance(0.1 + LATE)
    assert refused.closed
    assert not refused.was_reset


def test_a_client_that_ends_ends_it_at_once(refused: Client) -> None:
    refused.finish_sending()
    assert refused.closed


@pytest.mark.parametrize(
    "extra",
    [b"\r\n", b"GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n", bytes(1000)],
    ids=["empty line", "request", "noise"],
)
def test_bytes_after_the_last_request_do_not_cost_its_answer(port: Port, extra: bytes) -> None:
    client = port.connect()
    client.send(get("/healthz") + extra)
    assert client.reply.status == 200
    assert client.ended
    assert not client.was_reset
    port.loop.advance(LINGER_SECONDS + LATE)
    assert client.closed


@pytest.mark.parametrize("extra", [b"\r\n", bytes(1000)], ids=["empty line", "noise"])
@pytest.mark.parametrize("rounds", [0, 1, 2], ids=["at once", "in the first round", "later"])
def test_bytes_behind_a_stream_do_not_cost_its_end(port: Port, extra: bytes, rounds: int) -> None:
    client = port.connect()
    client.send_quietly(
        post("/v1/completions", {"model": "m", "prompt": "a", "max_tokens": 500, "stream": True})
    )
    for _ in range(rounds):
        port.loop.round()
    client.send(extra)
    assert client.reply.events()[-1] == "[DONE]"
    assert client.ended
    assert not client.was_reset


def test_a_slow_reader_gets_the_rest_after_the_lingering(port: Port) -> None:
    client = port.connect()
    client.stop_reading()
    client.send(post("/v1/completions", {"model": "m" * 50_000, "prompt": "a"}) + b"\r\n")
    for _ in range(10):
        port.loop.advance(20)
        client.take(1000)
    client.take_all()
    assert int(client.reply.headers["content-length"]) == len(client.reply.body)


def test_an_error_answer_is_told_of_once(make_port: MakePort) -> None:
    port = make_port()
    client = port.connect()
    client.send(TOO_LARGE)
    client.send(bytes(100))
    port.loop.advance(10)
    assert [exchange.status for exchange in port.exchanges] == [413]
    assert port.exchanges[0].bytes_sent == len(client.received)
