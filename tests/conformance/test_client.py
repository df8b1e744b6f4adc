"""The client ends with every server: one that hangs, babbles, breaks off or is not there."""

from __future__ import annotations

import itertools
import socket
import struct
import time

import pytest

from conformance.servers import connected, says_nothing, scripted, sends
from tinyllm.conformance import client
from tinyllm.conformance.client import Address, Connection
from tinyllm.conformance.evidence import CheckFailed, Exchange, NoAnswer


def test_what_was_sent_and_received_is_kept_with_the_time_of_each_read() -> None:
    with scripted(sends(b"hello")) as address:
        connection = connected(address)
        connection.receive_to_end()
        connection.close()
    exchange = connection.exchange
    assert bytes(exchange.sent) == b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    assert bytes(exchange.received) == b"hello"
    assert exchange.end == "closed by the server"
    assert exchange.writes[0][0] == 27
    assert exchange.reads[-1][0] == 5
    assert exchange.writes[0][1] <= exchange.reads[0][1]


def test_a_byte_arrived_when_the_read_that_brought_it_ended() -> None:
    exchange = Exchange("x", reads=[(3, 1.0), (5, 2.0)], received=bytearray(b"abcde"))
    assert [exchange.arrival(offset) for offset in range(5)] == [1.0, 1.0, 1.0, 2.0, 2.0]


def test_a_server_that_says_nothing_is_left_at_the_deadline() -> None:
    with scripted(says_nothing) as address:
        connection = connected(address, seconds=0.05)
        with pytest.raises(NoAnswer, match="no answer within"):
            connection.receive()
        connection.close()
    assert connection.exchange.end == "timed out"


def test_bytes_that_drip_do_not_put_the_deadline_off() -> None:
    def drip(peer: socket.socket) -> None:
        peer.settimeout(0.005)
        for _ in itertools.count():
            peer.sendall(b".")
            try:
                if peer.recv(65536) == b"":
                    return
            except TimeoutError:
                continue

    with scripted(drip) as address:
        connection = connected(address, seconds=0.1)
        with pytest.raises(NoAnswer, match=r"the answer was not whole within .* bytes came"):
            connection.receive_to_end()
        connection.close()


def test_a_server_that_babbles_is_left_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_RECEIVED_BYTES", 100_000)

    def babble(peer: socket.socket) -> None:
        while True:
            peer.sendall(b"x" * 10_000)

    with scripted(babble) as address:
        connection = connected(address)
        with pytest.raises(CheckFailed, match="more than 100000 bytes came back"):
            connection.receive_to_end()
        connection.close()
    assert len(connection.exchange.received) <= 100_000 + client.READ_BYTES


def test_a_reset_is_told_from_a_close() -> None:
    def reset(peer: socket.socket) -> None:
        peer.recv(65536)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with scripted(reset) as address:
        connection = connected(address)
        with pytest.raises(NoAnswer, match="the connection broke"):
            connection.receive_to_end()
        connection.close()


def test_a_server_that_stopped_reading_may_still_have_answered() -> None:
    def answers_early(peer: socket.socket) -> None:
        peer.sendall(b"HTTP/1.1 413 Content Too Large\r\n\r\n")
        peer.shutdown(socket.SHUT_WR)
        while peer.recv(65536):
            pass

    with scripted(answers_early) as address:
        connection = connected(address)
        connection.send(b"x" * 4_000_000)
        connection.receive_to_end()
        connection.close()
    assert bytes(connection.exchange.received).startswith(b"HTTP/1.1 413")


def test_nobody_listening_is_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(NoAnswer, match=f"cannot connect to 127.0.0.1:{port}"):
        Connection(Address("127.0.0.1", port), time.monotonic() + 5)


def test_an_ipv6_address_is_written_in_brackets() -> None:
    assert Address("::1", 8000).authority == "[::1]:8000"
