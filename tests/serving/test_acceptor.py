"""The listening socket when the kernel has nothing to give (support/memory.py is the kernel)."""

from __future__ import annotations

import errno
import os

import pytest

from support.memory import Port
from support.wire import get
from tinyllm.serving.connection import Connection
from tinyllm.serving.transport import ACCEPT_PAUSE, ACCEPTS_PER_TURN


@pytest.mark.parametrize(
    "number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENETDOWN, errno.EPROTO]
)
def test_accepting_pauses_when_the_kernel_gives_no_connection(
    port: Port, caplog: pytest.LogCaptureFixture, number: int
) -> None:
    open_client = port.connect()
    port.listener.accept_error = OSError(number, os.strerror(number))
    waiting = port.connect()  # `run` inside fails if the loop is busy with nothing
    port.loop.advance(ACCEPT_PAUSE * 5.5)
    assert 5 <= len(caplog.records) <= 7, "one line each time, not one each round of the loop"
    assert os.strerror(number) in caplog.records[0].getMessage()
    open_client.send(get("/healthz"))
    assert open_client.reply.status == 200, "those that are open are served meanwhile"
    port.listener.accept_error = None
    port.loop.advance(ACCEPT_PAUSE)
    waiting.send(get("/healthz"))
    assert waiting.reply.status == 200


def test_what_was_accepted_before_the_failure_is_served(
    port: Port, caplog: pytest.LogCaptureFixture
) -> None:
    client = port.connect_quietly()
    client.send_quietly(get("/healthz"))
    accept = port.listener.accept

    def accept_then_fail() -> tuple[object, object]:
        port.listener.accept_error = OSError(errno.EMFILE, "out of descriptors")
        port.listener.accept = accept  # type: ignore[method-assign]
        return accept_one

    accept_one = port.listener.backlog.popleft()
    port.listener.backlog.append(accept_one)
    port.listener.accept = accept_then_fail  # type: ignore[method-assign, assignment]
    port.loop.round()
    assert client.reply.status == 200


def test_a_client_that_is_gone_before_it_is_accepted_costs_nothing(port: Port) -> None:
    client = port.connect_quietly()
    client.socket.reset_by_client = True
    other = port.connect()
    other.send(get("/healthz"))
    assert other.reply.status == 200
    assert client.closed


def test_a_crowd_is_accepted_in_turns(port: Port) -> None:
    clients = [port.connect_quietly() for _ in range(3 * ACCEPTS_PER_TURN)]
    for client in clients:
        client.send_quietly(get("/healthz"))
    port.loop.round()
    assert sum(bool(client.received) for client in clients) == ACCEPTS_PER_TURN
    port.loop.run()
    assert all(client.reply.status == 200 for client in clients)


def test_a_fault_in_one_new_connection_is_not_the_next_one_s(
    port: Port, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Connection.connection_made
    faults = iter([True])

    def faulty(connection: Connection, transport: object) -> None:
        if next(faults, False):
            raise MemoryError("the fault")
        made(connection, transport)  # type: ignore[arg-type]

    monkeypatch.setattr(Connection, "connection_made", faulty)
    clients = [port.connect_quietly() for _ in range(3)]
    for client in clients:
        client.send_quietly(get("/healthz"))
    port.loop.run()
    assert clients[0].closed
    assert [client.reply.status for client in clients[1:]] == [200, 200]
    assert len(caplog.records) == 1


def test_a_fault_in_sending_one_first_answer_is_not_the_next_one_s(
    port: Port, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients = [port.connect_quietly() for _ in range(3)]
    for client in clients:
        client.send_quietly(get("/healthz"))

    def faulty(data: bytes, flags: int = 0) -> int:
        raise MemoryError("the fault")

    monkeypatch.setattr(clients[0].socket, "send", faulty)
    port.loop.run()
    assert clients[0].closed
    assert [client.reply.status for client in clients[1:]] == [200, 200]
    assert len(caplog.records) == 1
