"""A connection that is over is freed at once: the collector is for what we did not think of."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from support.memory import Port
from support.wire import get, post
from tinyllm.serving.connection import Connection

GREEDY = {"model": "m", "prompt": "a", "temperature": 0}
KEPT = get("/healthz", "Connection: keep-alive")


@pytest.fixture
def garbage() -> Iterator[list[object]]:
    """What only the collector finds, of what is made from here on."""
    gc.disable()
    gc.freeze()
    gc.set_debug(gc.DEBUG_SAVEALL)
    yield gc.garbage
    gc.set_debug(0)
    gc.garbage.clear()
    gc.unfreeze()
    gc.enable()


def end_in_order(port: Port, request: bytes) -> None:
    client = port.connect()
    client.send(request)
    client.finish_sending()
    assert client.closed


def end_with_a_reset(port: Port, request: bytes) -> None:
    client = port.connect()
    client.send_quietly(request)
    port.loop.round()
    port.loop.round()
    client.reset()
    assert client.closed


@pytest.mark.parametrize("end", [end_in_order, end_with_a_reset], ids=["in order", "reset"])
@pytest.mark.parametrize(
    "request_bytes",
    [
        b"",
        b"GET",
        b"junk\r\n\r\n",
        get("/missing"),
        KEPT * 40,
        post("/v1/completions", {**GREEDY, "max_tokens": 3}),
        post("/v1/completions", {**GREEDY, "max_tokens": 3000}),
        post("/v1/completions", {**GREEDY, "max_tokens": 3000, "stream": True}),
        post("/v1/completions", {"model": "m"}),
        b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 2000000\r\n\r\n",
    ],
    ids=[
        *("nothing", "half", "broken", "not found", "kept"),
        *("short", "long", "stream", "bad field", "too large"),
    ],
)
def test_nothing_is_left_to_the_collector(
    port: Port, garbage: list[object], request_bytes: bytes, end: object
) -> None:
    end(port, request_bytes)  # type: ignore[operator]
    port.exchanges.clear()
    gc.collect()
    assert not [found for found in garbage if isinstance(found, Connection)]
