"""Requests and answers on one connection: when it stays, when it ends, what is sent between.

Bytes on the wire are written out; the client's end is in memory (support/memory.py).
"""

from __future__ import annotations

import pytest

from support.memory import SEND_BUFFER, MakePort, Port
from support.wire import parse_reply, post
from tinyllm.serving.connection import PIPELINE_BYTES, REQUESTS_PER_TURN
from tinyllm.serving.exchange import Ended
from tinyllm.serving.transport import HIGH_WATER, READ_BYTES

HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n"
KEPT_HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: t\r\nConnection: keep-alive\r\n\r\n"
ALIVE = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n"
    b'Connection: close\r\n\r\n{"ok":true}'
)
KEPT_ALIVE = ALIVE.replace(b"close", b"keep-alive")

GREEDY = {"model": "m", "prompt": "a", "temperature": 0}
LONG = 1000  # tokens: over what is answered at once, so the answer runs in the engine
LONG_PLAIN = post("/v1/completions", {**GREEDY, "max_tokens": LONG}, "Connection: keep-alive")
STREAM = post("/v1/completions", {**GREEDY, "max_tokens": 3, "stream": True})


def replies(data: bytes) -> list[bytes]:
    """The bodies of answers with Content-Length that follow each other."""
    bodies = []
    while data:
        reply = parse_reply(data)
        length = int(reply.headers["content-length"])
        bodies.append(reply.body[:length])
        data = reply.body[length:]
    return bodies


def test_every_answer_closes_its_connection(port: Port) -> None:
    client = port.connect()
    client.send(HEALTHZ)
    assert client.received == ALIVE
    assert client.closed


def test_keep_alive_is_for_clients_that_ask(port: Port) -> None:
    client = port.connect()
    for count in range(1, 4):
        client.send(KEPT_HEALTHZ)
        assert client.received == KEPT_ALIVE * count
        assert not client.ended
    client.send(HEALTHZ)
    assert client.received == KEPT_ALIVE * 3 + ALIVE
    assert client.closed


def test_keep_alive_can_be_turned_off(make_port: MakePort) -> None:
    client = make_port(keep_alive=False).connect()
    client.send(KEPT_HEALTHZ)
    assert client.received == ALIVE
    assert client.closed


def test_an_error_keeps_a_connection_that_asked(port: Port) -> None:
    client = port.connect()
    client.send(post("/v1/completions", {"model": "m"}, "Connection: keep-alive"))
    assert client.reply.status == 400
    assert client.reply.headers["connection"] == "keep-alive"
    client.send(KEPT_HEALTHZ)
    assert client.received.endswith(KEPT_ALIVE)


def test_a_stream_closes_even_a_connection_that_asked(port: Port) -> None:
    client = port.connect()
    client.send(STREAM.replace(b"Host: test", b"Host: test\r\nConnection: keep-alive"))
    assert client.reply.headers["connection"] == "close"
    assert client.reply.events()[-1] == "[DONE]"
    assert client.closed


@pytest.mark.parametrize("count", [2, REQUESTS_PER_TURN, REQUESTS_PER_TURN + 1, 100])
@pytest.mark.parametrize("cut", [None, 1, 7, 64])
def test_pipelined_requests_are_answered_in_order(port: Port, count: int, cut: int | None) -> None:
    client = port.connect()
    requests = b"".join(
        post("/v1/completions", {**GREEDY, "max_tokens": 1 + number % 3}, "Connection: keep-alive")
        for number in range(count)
    )
    for start in range(0, len(requests), cut or len(requests)):
        client.send(requests[start : start + (cut or len(requests))])
    bodies = replies(client.received)
    assert len(bodies) == count
    for number, body in enumerate(bodies):
        assert b'"text":"%s"' % b"bcd"[: 1 + number % 3] in body
    assert not client.ended


def test_pipelined_bytes_wait_for_an_answer_that_runs_in_the_engine(port: Port) -> None:
    client = port.connect()
    client.send(LONG_PLAIN + LONG_PLAIN + KEPT_HEALTHZ)
    first, second, third = replies(client.received)
    assert first.count(b'"completion_tokens":1000') == 1
    assert second.count(b'"completion_tokens":1000') == 1
    assert third == b'{"ok":true}'
    assert not client.ended


def test_bytes_that_come_while_an_answer_runs_are_the_next_request(port: Port) -> None:
    client = port.connect()
    client.send_quietly(LONG_PLAIN)
    port.loop.round()
    assert port.edge.busy == 1
    client.send_quietly(KEPT_HEALTHZ[:20])
    assert client.received == b""
    port.loop.run()
    assert len(replies(client.received)) == 1
    client.send(KEPT_HEALTHZ[20:])
    assert client.received.endswith(KEPT_ALIVE)


def test_other_connections_have_their_turn_between_pipelined_requests(port: Port) -> None:
    flood, other = port.connect(), port.connect()
    flood.send_quietly(KEPT_HEALTHZ * (REQUESTS_PER_TURN * 3))
    other.send_quietly(HEALTHZ)
    port.loop.round()
    assert flood.received == KEPT_ALIVE * REQUESTS_PER_TURN
    port.loop.round()  # at whose beginning the answers of the last one leave
    assert flood.received == KEPT_ALIVE * REQUESTS_PER_TURN * 2
    assert other.received == ALIVE
    port.loop.run()
    assert flood.received == KEPT_ALIVE * (REQUESTS_PER_TURN * 3)


def test_a_flood_of_requests_is_read_only_as_fast_as_it_is_answered(port: Port) -> None:
    client = port.connect()
    client.send_quietly(KEPT_HEALTHZ * 5_000)
    for _ in range(20):
        port.loop.round()
    answered = len(client.received) // len(KEPT_ALIVE)
    held = (5_000 - answered) * len(KEPT_HEALTHZ) - len(client.socket.arrived)
    assert 0 <= held <= PIPELINE_BYTES + 2 * READ_BYTES
    port.loop.run()
    assert client.received == KEPT_ALIVE * 5_000


def test_a_flood_whose_answers_are_not_read_is_not_read(port: Port) -> None:
    client = port.connect()
    client.stop_reading()
    client.send(KEPT_HEALTHZ * 10_000)
    answered = (SEND_BUFFER + 2 * HIGH_WATER) // len(KEPT_ALIVE)
    held = 10_000 * len(KEPT_HEALTHZ) - len(client.socket.arrived)
    assert held <= answered * len(KEPT_HEALTHZ) + PIPELINE_BYTES + 2 * READ_BYTES
    client.take_all()
    assert client.received == KEPT_ALIVE * 10_000


def test_a_flood_behind_a_running_answer_is_not_read(port: Port) -> None:
    client = port.connect()
    client.send_quietly(LONG_PLAIN)
    port.loop.round()
    client.send_quietly(KEPT_HEALTHZ * 5_000)
    port.loop.round()
    assert len(client.socket.arrived) >= 5_000 * len(KEPT_HEALTHZ) - PIPELINE_BYTES - READ_BYTES
    port.loop.run()
    assert len(replies(client.received)) == 5_001


# Expect (CONTRACT, point 4)

EXPECTING = (
    b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 58\r\n"
    b"Expect: 100-continue\r\n\r\n"
)
BODY = b'{"model":"m","prompt":"a","max_tokens":3,"temperature":0} '
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def test_a_waiting_client_is_told_to_go_on(port: Port) -> None:
    client = port.connect()
    client.send(EXPECTING)
    assert client.received == CONTINUE
    client.send(BODY[:10])
    assert client.received == CONTINUE, "once is enough"
    client.send(BODY[10:])
    assert b'"text":"bcd"' in client.received
    assert client.received.count(b"HTTP/1.1") == 2


def test_a_client_that_did_not_wait_is_not_told(port: Port) -> None:
    client = port.connect()
    client.send(EXPECTING + BODY)
    assert client.reply.status == 200


def test_each_request_of_a_kept_connection_is_told_anew(port: Port) -> None:
    client = port.connect()
    kept = EXPECTING.replace(b"Host: t", b"Host: t\r\nConnection: keep-alive")
    for count in (1, 2):
        client.send(kept)
        assert client.received.count(CONTINUE) == count
        client.send(BODY)
        assert client.received.count(b"200 OK") == count


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"Content-Length: 1048577", 413),
        (b"Content-Length: 5\r\nContent-Length: 6", 400),
        (b"Transfer-Encoding: chunked", 501),
        (b"Accept: */*", 411),
    ],
    ids=["too large", "two lengths", "chunked", "no length"],
)
def test_a_waiting_client_gets_the_final_error_at_once(
    port: Port, line: bytes, status: int
) -> None:
    client = port.connect()
    client.send(EXPECTING.replace(b"Content-Length: 58", line))
    assert client.reply.status == status
    assert client.ended


def test_an_old_client_is_not_told(port: Port) -> None:
    client = port.connect()
    client.send(EXPECTING.replace(b"HTTP/1.1", b"HTTP/1.0"))
    assert client.received == b""
    client.send(BODY)
    assert client.reply.status == 200


# End of file (CONTRACT, point 3)


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [(HEALTHZ, 200), (LONG_PLAIN, 200), (STREAM, 200), (b"GET / HTTP/1.1\r\nHost: t\r\n\r\n", 404)],
    ids=["whole", "plain in the engine", "stream", "error"],
)
def test_a_half_closed_client_still_gets_its_answer(
    port: Port, request_bytes: bytes, status: int
) -> None:
    client = port.connect()
    client.send_quietly(request_bytes)
    client.finish_sending()
    assert client.reply.status == status
    if request_bytes is STREAM:
        assert client.reply.events()[-1] == "[DONE]"
    assert client.closed
    assert not client.was_reset


def test_an_end_of_file_in_mid_answer_does_not_end_it(port: Port) -> None:
    client = port.connect()
    client.send_quietly(post("/v1/completions", {**GREEDY, "max_tokens": 2000, "stream": True}))
    port.loop.round()
    port.loop.round()
    assert port.edge.busy == 1
    client.finish_sending()
    assert client.reply.events()[-1] == "[DONE]"
    assert client.closed


@pytest.mark.parametrize("count", [1, REQUESTS_PER_TURN, REQUESTS_PER_TURN + 1, 200])
def test_a_half_closed_client_gets_all_its_answers(port: Port, count: int) -> None:
    client = port.connect()
    client.send_quietly(KEPT_HEALTHZ * count)
    client.finish_sending()
    assert client.received == KEPT_ALIVE * count
    assert client.closed


def test_a_half_closed_client_gets_answers_that_run_in_the_engine(port: Port) -> None:
    client = port.connect()
    client.send_quietly(LONG_PLAIN * 3)
    client.finish_sending()
    assert len(replies(client.received)) == 3
    assert client.closed


@pytest.mark.parametrize(
    "sent",
    [b"", HEALTHZ[:5], HEALTHZ[:-1], EXPECTING + BODY[:-1]],
    ids=["nothing", "half a line", "half a head", "half a body"],
)
def test_nobody_is_answered_after_half_a_request(port: Port, sent: bytes) -> None:
    client = port.connect()
    client.send(sent)
    client.finish_sending()
    assert client.received in (b"", CONTINUE)
    assert client.closed
    assert [exchange.ended for exchange in port.exchanges] == [Ended.CLIENT_GONE] * bool(sent)


def test_a_half_closed_client_that_reads_slowly_gets_everything(port: Port) -> None:
    client = port.connect()
    client.stop_reading()
    client.send_quietly(KEPT_HEALTHZ * 2000)
    client.finish_sending()
    assert not client.closed
    client.take_all()
    assert client.received == KEPT_ALIVE * 2000
    assert client.closed


@pytest.mark.parametrize(
    "sent", [b"", HEALTHZ[:5], LONG_PLAIN, STREAM], ids=["new", "head", "plain", "stream"]
)
def test_a_reset_is_the_end_in_every_phase(port: Port, sent: bytes) -> None:
    client = port.connect()
    client.send_quietly(sent)
    port.loop.round()
    client.reset()
    assert client.closed
    assert client.received == b""
    assert port.edge.busy == 0
    assert port.loop.watched == 1, "the listening socket alone"
