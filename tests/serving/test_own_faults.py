"""An exception in our own code: 500 with the request's id, a traceback in the log, and no more."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence

import pytest

from support.memory import Port
from support.spans import SpanList
from support.wire import get, post
from tinyllm.engine import Generation, SamplingParams
from tinyllm.model import Bigram
from tinyllm.serving.accesslog import AccessLog
from tinyllm.serving.exchange import Ended, Exchange
from tinyllm.serving.responses import Pending, Response
from tinyllm.serving.server import Server
from tinyllm.wire import Request, RequestParser

ID = "X-Request-Id: find-me-7"
PLAIN = post("/v1/completions", {"model": "m", "prompt": "a", "max_tokens": 3}, ID)
LONG = post("/v1/completions", {"model": "m", "prompt": "a", "max_tokens": 300}, ID)
STREAM = post(
    "/v1/completions", {"model": "m", "prompt": "a", "max_tokens": 300, "stream": True}, ID
)


class Faulty:
    """A model whose logits fail after some tokens, as a bug of ours would."""

    vocab_size = 256
    context_length: int | None = None  # the plain form: every token asks for its logits

    def __init__(self, model: Bigram, tokens: int, faults: int = 1_000_000) -> None:
        self._model = model
        self._left = tokens
        self._faults = faults

    def start(self, prompt_ids: Sequence[int]) -> int:
        return self._model.start(prompt_ids)

    def advance(self, state: int, token_id: int) -> int:
        return token_id

    def logits(self, state: int) -> list[float]:
        self._left -= 1
        if self._left < 0 and self._faults:
            self._faults -= 1
            raise ZeroDivisionError("the fault")
        return self._model.logits(state)


def faulty_port(model: Bigram, tokens: int = 0) -> Port:
    return Port(Server(Faulty(model, tokens)).dispatch)


def the_record(caplog: pytest.LogCaptureFixture) -> logging.LogRecord:
    (record,) = caplog.records
    return record


@pytest.mark.parametrize("request_bytes", [PLAIN, LONG, STREAM], ids=["plain", "long", "stream"])
def test_a_fault_before_the_first_byte_is_a_500(
    model: Bigram, caplog: pytest.LogCaptureFixture, request_bytes: bytes
) -> None:
    port = faulty_port(model)
    client = port.connect()
    client.send(request_bytes)
    reply = client.reply
    assert reply.status == 500
    assert reply.headers["x-request-id"] == "find-me-7"
    assert reply.json()["error"] == {
        "message": "internal error; the log has it under request find-me-7",
        "type": "server_error",
        "param": None,
        "code": None,
    }
    assert client.closed
    record = the_record(caplog)
    assert record.getMessage() == "request find-me-7 failed"
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ZeroDivisionError)
    (exchange,) = port.exchanges
    assert (exchange.status, exchange.ended) == (500, Ended.FAILED)
    assert exchange.error_type == "ZeroDivisionError"
    assert exchange.bytes_sent == len(client.received)


def test_a_fault_without_a_caller_s_id_is_found_by_the_log_s(
    model: Bigram, caplog: pytest.LogCaptureFixture
) -> None:
    port = faulty_port(model)
    client = port.connect()
    client.send(PLAIN.replace(ID.encode(), b"A: b"))
    log_id = port.exchanges[0].log_id
    assert log_id is not None
    assert client.reply.json()["error"]["message"].endswith(f"under request {log_id}")
    assert the_record(caplog).getMessage() == f"request {log_id} failed"


def test_a_fault_in_mid_stream_is_an_error_event_and_the_end(
    model: Bigram, caplog: pytest.LogCaptureFixture
) -> None:
    client = faulty_port(model, tokens=5).connect()
    client.send(STREAM)
    *events, last = client.reply.events()
    assert client.reply.status == 200
    assert len(events) == 1, "the first token; the slice that failed gave none"
    assert json.loads(last)["error"]["type"] == "server_error"
    assert client.closed
    assert the_record(caplog).exc_info is not None


def test_a_fault_is_no_other_client_s_problem(
    model: Bigram, caplog: pytest.LogCaptureFixture
) -> None:
    port = Port(Server(Faulty(model, tokens=50, faults=1)).dispatch)
    clients = [port.connect() for _ in range(3)]
    for client in clients:
        client.send_quietly(STREAM)
    port.loop.run()  # whichever stream meets the fault, the others go on
    ends = sorted("[DONE]" in client.reply.events() for client in clients)
    assert ends == [False, True, True]
    assert len(caplog.records) == 1


def test_a_fault_in_dispatch_keeps_a_connection_that_asked(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    faults = iter([True, False])

    def dispatch(request: Request, exchange: Exchange) -> Response | Pending:
        if next(faults):
            raise KeyError("the fault")
        return server.dispatch(request, exchange)

    client = Port(dispatch).connect()
    client.send(get("/healthz", "Connection: keep-alive"))
    assert client.reply.status == 500
    assert client.reply.headers["connection"] == "keep-alive"
    client.send(get("/healthz"))
    assert client.received.count(b"HTTP/1.1 200 OK") == 1


def test_a_fault_in_the_parser_is_a_500(
    port: Port, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(parser: RequestParser) -> None:
        raise IndexError("the fault")

    monkeypatch.setattr(RequestParser, "next_request", fault)
    client = port.connect()
    client.send(PLAIN)
    assert client.reply.status == 500
    assert client.ended
    assert the_record(caplog).exc_info is not None
    assert port.exchanges[0].ended is Ended.FAILED


@pytest.mark.parametrize("request_bytes", [PLAIN, LONG, STREAM], ids=["plain", "long", "stream"])
def test_a_fault_in_the_telling_costs_no_answer(
    server: Server, caplog: pytest.LogCaptureFixture, request_bytes: bytes
) -> None:
    port = Port(server.dispatch)

    def fault(exchanges: Sequence[Exchange]) -> None:
        raise OSError("the fault")

    port.edge._finished = fault
    client = port.connect()
    client.send(request_bytes)
    assert client.reply.status == 200
    assert client.closed
    assert port.edge.busy == 0
    port.tell()
    assert the_record(caplog).exc_info is not None


def test_a_fault_in_telling_of_one_answer_costs_the_others_nothing(
    model: Bigram, caplog: pytest.LogCaptureFixture
) -> None:
    asked = []

    def line(exchange: Exchange) -> str:
        asked.append(exchange.request_id)
        if exchange.request_id == "fault":
            raise OSError("the fault")
        return f"{exchange.request_id}\n"

    reader, writer = os.pipe()
    exporter = SpanList()
    server = Server(model, access_log=AccessLog(writer, line), exporter=exporter)  # type: ignore[arg-type]
    port = Port(server.dispatch)
    port.edge._finished = server.finished
    body = {"model": "m", "prompt": "a", "max_tokens": 3}
    for name in ("a", "fault", "b"):
        port.connect_quietly().send_quietly(post("/v1/completions", body, f"X-Request-Id: {name}"))
    port.tell()
    assert asked == ["a", "fault", "a", "fault", "b"]  # together, then one by one
    server.close(20)
    os.close(writer)
    with os.fdopen(reader) as stream:
        assert stream.read() == "a\nb\n"
    assert [span.request_id for span in exporter.spans] == ["a", "b"]
    assert the_record(caplog).exc_info is not None


def test_a_fault_while_an_answer_is_put_into_bytes_is_an_error_event(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        keeps_connection = False
        slice_tokens = 10

        def __init__(self, generation: Generation) -> None:
            self.generation = generation

        def feed(self, ids: list[int], finished: bool, connection: str) -> bytes:
            raise UnicodeError("the fault")

        def fail(self, error: Exception) -> bytes:
            return b"failed"

    def dispatch(request: Request, exchange: Exchange) -> Broken:
        return Broken(Generation(server.model, b"a", SamplingParams(10)))

    client = Port(dispatch).connect()
    client.send(get("/"))
    assert client.received == b"failed"
    assert client.closed
    assert the_record(caplog).exc_info is not None
