"""Streams to clients that read slowly, or go (CONTRACT, point 17)."""

from __future__ import annotations

import json

import pytest

from support.memory import SEND_BUFFER, Client, Port
from support.wire import post
from tinyllm.engine.engine import SLICE_TOKENS
from tinyllm.serving.exchange import Ended
from tinyllm.serving.responses import SLICE_BYTES
from tinyllm.serving.transport import HIGH_WATER

EVENT_BYTES = 180  # of one token of these streams, a little more than the 172 that it is


def stream(max_tokens: int = 4096) -> bytes:
    wanted = {"model": "m", "prompt": "a", "max_tokens": max_tokens, "stream": True, "seed": 1}
    return post("/v1/completions", wanted)


def texts(client: Client) -> list[str]:
    *events, done = client.reply.events()
    assert done == "[DONE]"
    return [json.loads(event)["choices"][0]["text"] for event in events]


def open_stalled(port: Port) -> Client:
    """A stream whose client has stopped reading, run until nothing more happens."""
    client = port.connect()
    client.stop_reading()
    client.send(stream())
    return client


def test_a_client_that_does_not_read_costs_one_buffer_and_one_slice(port: Port) -> None:
    client = open_stalled(port)
    client.reset()
    (exchange,) = port.exchanges
    held = SEND_BUFFER + HIGH_WATER + (1 + SLICE_TOKENS) * EVENT_BYTES
    assert SEND_BUFFER + HIGH_WATER < exchange.bytes_sent < held
    assert exchange.completion_tokens < 4096 / 2


@pytest.mark.parametrize("length", [1, 1000, 100_000, 1_000_000])
def test_a_long_model_name_makes_slices_shorter_not_larger(port: Port, length: int) -> None:
    client = port.connect()
    client.stop_reading()
    wanted = {"model": "m" * length, "prompt": "a", "max_tokens": 4096, "stream": True}
    client.send(post("/v1/completions", wanted))
    client.reset()
    (exchange,) = port.exchanges
    assert exchange.bytes_sent < SEND_BUFFER + HIGH_WATER + SLICE_BYTES + 2 * (length + 200)


def test_generation_goes_on_when_the_client_does(port: Port) -> None:
    client = open_stalled(port)
    other = port.connect()
    other.send(stream())
    client.take_all()
    assert texts(client) == texts(other), "a stream is the same however it was read"
    assert client.closed


@pytest.mark.parametrize("size", [1000, SEND_BUFFER - 1, SEND_BUFFER])
def test_a_slow_reader_gets_every_event_once(port: Port, size: int) -> None:
    client = open_stalled(port)
    while not client.closed:
        client.take(size)
    client.take_all()
    *events, done = client.reply.events()
    assert (len(events), done) == (4096, "[DONE]")
    assert port.exchanges[0].ended is Ended.COMPLETED


def test_a_stalled_client_takes_no_turns_from_others(port: Port) -> None:
    stalled = [open_stalled(port) for _ in range(50)]
    sent = [len(client.received) for client in stalled]
    quick = port.connect()
    quick.send(stream(500))
    assert quick.reply.events()[-1] == "[DONE]"
    assert [len(client.received) for client in stalled] == sent
    assert port.edge.busy == 50


def test_the_first_event_leaves_before_the_second_token_is_computed(port: Port) -> None:
    client = port.connect_quietly()
    client.send_quietly(stream())
    port.loop.round()
    assert client.received == b"", "read and understood, nothing computed yet"
    port.loop.round()
    assert len(client.reply.events()) == 1


@pytest.mark.parametrize("rounds", [1, 2, 3, 4])
def test_generation_stops_within_one_slice_of_the_client_going(port: Port, rounds: int) -> None:
    client = port.connect()
    client.send_quietly(stream())
    for _ in range(rounds):
        port.loop.round()
    events = len(client.reply.events()) if client.received else 0
    client.reset()
    (exchange,) = port.exchanges
    assert exchange.ended is Ended.CLIENT_GONE
    assert exchange.completion_tokens <= events + SLICE_TOKENS
    assert port.edge.busy == 0
    assert not port.loop.round(), "nothing is left to do"


def test_a_client_that_goes_while_its_stream_is_paused_is_forgotten(port: Port) -> None:
    client = open_stalled(port)
    client.reset()
    assert client.closed
    assert port.edge.busy == 0
    assert port.loop.watched == 1, "the listening socket alone"


def test_a_client_that_closes_is_found_by_the_next_write(port: Port) -> None:
    client = port.connect()
    client.send_quietly(stream())
    port.loop.round()
    port.loop.round()
    client.socket.arrived_end = True  # it has closed: end of file first,
    port.loop.round()
    client.socket.reset_by_client = True  # and a reset for what is sent after it
    port.loop.run()
    (exchange,) = port.exchanges
    assert exchange.ended is Ended.CLIENT_GONE
    assert exchange.completion_tokens < 4096


def test_pausing_and_going_on_many_times_loses_no_task(port: Port) -> None:
    clients = [open_stalled(port) for _ in range(10)]
    for turn in range(3000):
        clients[turn % 10].take(997 + turn)
    for client in clients:
        client.take_all()
        assert len(client.reply.events()) == 4097
        assert client.closed
