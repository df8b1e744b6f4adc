"""The facts of a request, as log and span will tell them."""

from __future__ import annotations

import time

import pytest

from support.memory import Port
from support.spans import SpanList
from support.wire import get, post
from tinyllm.serving.edge import TOLD_TOGETHER, TOLD_WITHIN
from tinyllm.serving.exchange import Ended, Exchange
from tinyllm.serving.schema import CompletionRequest
from tinyllm.serving.server import Server
from tinyllm.tracing import TraceContext


def only(port: Port) -> Exchange:
    (exchange,) = port.exchanges
    return exchange


@pytest.mark.parametrize("max_tokens", [1, 64, 65, 3000])
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_a_completion(port: Port, max_tokens: int, stream: bool) -> None:
    before = time.time_ns()
    client = port.connect()
    wanted = {"model": "m", "prompt": "h\u00e9", "max_tokens": max_tokens, "stream": stream}
    client.send(post("/v1/completions", wanted, "X-Request-Id: abc"))
    exchange = only(port)
    assert (exchange.method, exchange.path) == ("POST", "/v1/completions")
    assert (exchange.request_id, exchange.echoed) == ("abc", (("X-Request-Id", "abc"),))
    assert (exchange.status, exchange.bytes_sent) == (200, len(client.received))
    assert (exchange.prompt_tokens, exchange.completion_tokens) == (3, max_tokens)
    assert exchange.completion == CompletionRequest("m", "h\u00e9", max_tokens, 1.0, None, stream)
    assert exchange.completion_id is not None
    assert exchange.completion_id.encode() in client.received
    assert before <= exchange.started_unix_nano <= time.time_ns()
    assert exchange.first_token_ns is not None
    assert 0 < exchange.first_token_ns <= exchange.duration_ns
    assert exchange.ended is Ended.COMPLETED
    assert exchange.error_type is None


def test_the_seed_that_was_picked_repeats_the_text(port: Port) -> None:
    wanted = {"model": "m", "prompt": "a", "max_tokens": 40, "temperature": 2}
    first, second = port.connect(), port.connect()
    first.send(post("/v1/completions", wanted))
    seed = only(port).seed
    second.send(post("/v1/completions", {**wanted, "seed": seed}))
    assert first.reply.json()["choices"] == second.reply.json()["choices"]


def test_the_seed_that_was_asked_for_is_the_seed(port: Port) -> None:
    port.connect().send(post("/v1/completions", {"model": "m", "prompt": "a", "seed": 2**64 - 1}))
    assert only(port).seed == 2**64 - 1


@pytest.mark.parametrize(
    ("request_bytes", "status", "path"),
    [
        (post("/v1/completions", {"model": "m"}), 400, "/v1/completions"),
        (get("/v1/completions"), 405, "/v1/completions"),
        (get("/missing"), 404, "/missing"),
        (b"POST /v1/completions HTTP/1.1\r\nHost: t\r\n\r\n", 411, ""),
        (b"nonsense\r\n\r\n", 400, ""),
    ],
    ids=["bad field", "method", "path", "no length", "broken"],
)
def test_a_refused_request(port: Port, request_bytes: bytes, status: int, path: str) -> None:
    client = port.connect()
    client.send(request_bytes)
    exchange = only(port)
    assert (exchange.status, exchange.path) == (status, path)
    assert exchange.bytes_sent == len(client.received)
    assert (exchange.prompt_tokens, exchange.completion_tokens) == (0, 0)
    assert exchange.first_token_ns is None
    assert exchange.completion is None
    assert exchange.ended is Ended.COMPLETED, "it got the answer that it deserves"


def test_each_request_of_a_connection_has_its_own(port: Port) -> None:
    client = port.connect()
    client.send(get("/healthz", "Connection: keep-alive", "X-Request-Id: 1") * 2)
    client.send(get("/missing", "X-Request-Id: 2"))
    assert [exchange.request_id for exchange in port.exchanges] == ["1", "1", "2"]
    assert [exchange.status for exchange in port.exchanges] == [200, 200, 404]
    assert sum(exchange.bytes_sent for exchange in port.exchanges) == len(client.received)


def test_an_abandoned_request_is_told_as_far_as_it_came(port: Port) -> None:
    client = port.connect()
    client.send(b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n\r\n{")
    client.finish_sending()
    exchange = only(port)
    assert (exchange.status, exchange.bytes_sent) == (0, 0)
    assert exchange.ended is Ended.CLIENT_GONE


def test_a_refused_request_still_belongs_to_its_trace(server: Server, port: Port) -> None:
    exporter = server.exporter = SpanList()  # type: ignore[assignment]
    port.edge._finished = server.finished
    parent = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    port.connect().send(get("/v1/completions", parent))
    port.connect().send(post("/v1/completions", {"model": "m"}, parent, "tracestate: a=1"))
    port.connect().send(post("/v1/completions", {"model": "m"}))
    port.connect().send(get("/healthz", parent))
    port.tell()
    context = TraceContext("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", 1)
    assert [(span.method, span.status, span.parent) for span in exporter.spans] == [
        ("GET", 405, context),
        ("POST", 400, context._replace(trace_state="a=1")),
        ("POST", 400, None),
    ]


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("connection", ["keep-alive", "close"])
def test_an_answer_has_left_when_it_is_told_of(
    port: Port, monkeypatch: pytest.MonkeyPatch, connection: str, stream: bool
) -> None:
    client = port.connect()
    left: list[bytes] = []
    monkeypatch.setattr(port.edge, "_finished", lambda exchange: left.append(client.received))
    wanted = {"model": "m", "prompt": "a", "max_tokens": 3, "stream": stream}
    client.send(post("/v1/completions", wanted, f"Connection: {connection}"))
    port.tell()
    assert left == [client.received]
    assert len(client.received) > 100


def told_counts(port: Port, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many exchanges each telling is of, as they come."""
    counts: list[int] = []
    monkeypatch.setattr(port.edge, "_finished", lambda exchanges: counts.append(len(exchanges)))
    return counts


def test_requests_are_told_of_sixteen_together(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    counts, client = told_counts(port, monkeypatch), port.connect()
    for _ in range(TOLD_TOGETHER - 1):
        client.send(get("/healthz", "Connection: keep-alive"))
    assert counts == []
    client.send(get("/healthz", "Connection: keep-alive"))
    assert counts == [TOLD_TOGETHER]


def test_a_request_alone_is_told_of_in_time(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    counts, client = told_counts(port, monkeypatch), port.connect()
    for told in ([1], [1, 1]):
        client.send(get("/healthz", "Connection: keep-alive"))
        assert counts == told[1:]
        port.loop.advance(TOLD_WITHIN)
        assert counts == told


def test_a_busy_round_is_told_of_whole(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    counts, clients = told_counts(port, monkeypatch), [port.connect() for _ in range(40)]
    for client in clients:
        client.send_quietly(get("/healthz"))
    port.loop.run()
    assert counts == [40]
    port.loop.advance(10 * TOLD_WITHIN)
    assert counts == [40], "nothing is told twice"
