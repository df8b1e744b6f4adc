"""Kept connections that ask in one round of the loop: the first answer at once, others together."""

from __future__ import annotations

import pytest

from support.memory import MemorySocket, Port
from support.wire import get, parse_reply
from tinyllm.serving.transport import ANSWERS_TOGETHER

KEPT = get("/healthz", "Connection: keep-alive")
LAST = get("/healthz")


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is done to sockets: "r" for a request that is read, "s" for an answer that is sent."""
    done: list[str] = []
    recv, send = MemorySocket.recv, MemorySocket.send

    def recv_and_tell(sock: MemorySocket, size: int, flags: int = 0) -> bytes:
        data = recv(sock, size, flags)
        done.extend("r" * bool(data))
        return data

    def send_and_tell(sock: MemorySocket, data: bytes, flags: int = 0) -> int:
        done.append("s")
        return send(sock, data, flags)

    monkeypatch.setattr(MemorySocket, "recv", recv_and_tell)
    monkeypatch.setattr(MemorySocket, "send", send_and_tell)
    return done


@pytest.mark.parametrize("request_bytes", [KEPT, LAST], ids=["kept", "last"])
@pytest.mark.parametrize("rounds", [1, 2])
def test_the_first_answer_of_a_round_leaves_at_once_the_others_together(
    port: Port, steps: list[str], request_bytes: bytes, rounds: int
) -> None:
    clients = [port.connect() for _ in range(ANSWERS_TOGETHER + 4)]
    for _ in range(rounds - 1):
        for client in clients:
            client.send(KEPT)
    steps.clear()
    for client in clients:
        client.send_quietly(request_bytes)
    port.loop.run()
    assert "".join(steps) == "rs" + "r" * ANSWERS_TOGETHER + "s" * ANSWERS_TOGETHER + "rrr" + "sss"
    assert all(client.closed == (request_bytes is LAST) for client in clients)
    assert all(client.received.count(b"HTTP/1.1 200 OK") == rounds for client in clients)


def test_a_client_alone_waits_for_nobody(port: Port, steps: list[str]) -> None:
    client, other = port.connect(), port.connect()
    for _ in range(3):
        client.send(KEPT)
        other.send(KEPT)
    assert "".join(steps) == "rs" * 6


def test_requests_sent_together_are_answered_in_order(port: Port) -> None:
    first, client = port.connect(), port.connect()
    first.send_quietly(KEPT)
    client.send_quietly(KEPT + get("/missing"))
    port.loop.run()
    assert client.received.index(b" 200 OK") < client.received.index(b" 404 Not Found")
    assert client.closed


def test_a_client_that_leaves_before_its_answer_costs_the_others_nothing(
    port: Port, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients = [port.connect() for _ in range(5)]
    gone, last = clients[2], clients[-1]
    recv = MemorySocket.recv

    def recv_and_reset(sock: MemorySocket, size: int, flags: int = 0) -> bytes:
        data = recv(sock, size, flags)
        gone.socket.reset_by_client |= sock is last.socket  # now its own answer is being held
        return data

    monkeypatch.setattr(MemorySocket, "recv", recv_and_reset)
    for client in clients:
        client.send_quietly(KEPT)
    port.loop.run()
    assert gone.closed
    assert gone.received == b""
    for client in set(clients) - {gone}:
        assert parse_reply(client.received).status == 200
        assert not client.closed
