"""The `wire` server with clients that stall, vanish, ask too much or want to stay; its signals."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from support.wire import Reply, connect, exchange, get, parse_reply, post, read_all
from support.wireserver import WIRE, WireServer
from tinyllm.wire import CONTINUE

HEALTH = get("/health")
KEPT = get("/health", "Connection: keep-alive")


def receive_until(connection: socket.socket, end: bytes) -> bytes:
    received = b""
    while not received.endswith(end):
        piece = connection.recv(65536)
        assert piece, f"closed after {received!r}"
        received += piece
    return received


# Clients that are slow or gone


@pytest.mark.parametrize(
    "half",
    [
        pytest.param(b"", id="says-nothing"),
        pytest.param(HEALTH[:-1], id="half-a-head"),
        pytest.param(post("/echo", {"text": "x"})[:-1], id="half-a-body"),
        pytest.param(get("/count?n=1000&delay_ms=5000"), id="does-not-read"),
    ],
)
def test_stalled_client_disturbs_nobody(wire: WireServer, half: bytes) -> None:
    with connect(wire.address) as stalled:
        stalled.sendall(half)
        assert exchange(wire.address, HEALTH).json() == {"ok": True}


def test_client_that_resets_in_mid_stream_disturbs_nobody(wire: WireServer) -> None:
    with connect(wire.address) as vanishing:
        vanishing.sendall(get("/count?n=1000&delay_ms=1"))
        receive_until(vanishing, b"\n\n")
        # Linger for no time: the close is a reset.
        vanishing.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    assert exchange(wire.address, HEALTH).json() == {"ok": True}


def test_client_that_closed_its_sending_side_gets_its_answer(wire: WireServer) -> None:
    for request in (HEALTH, post("/echo", {"text": "x"}), get("/count?n=2&delay_ms=1")):
        with connect(wire.address) as connection:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            assert parse_reply(read_all(connection)).status == 200


@pytest.mark.parametrize("sent", [b"", b"\r\n", HEALTH[:9], post("/echo", b"{}")[:-1]])
def test_client_that_leaves_in_mid_request_gets_nothing(wire: WireServer, sent: bytes) -> None:
    with connect(wire.address) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        assert read_all(connection) == b""


# What cannot be served


def test_broken_requests_get_the_statuses_of_this_server(wire: WireServer) -> None:
    fields = {
        b"Transfer-Encoding: chunked": 400,
        b"Content-Length: 1048577": 413,
        b"Content-Length: 2\r\nExpect: a-pony": 400,
        b"X: " + b"x" * 16384: 413,
    }
    for field, status in fields.items():
        reply = exchange(wire.address, b"POST /echo HTTP/1.1\r\nHost: a\r\n" + field + b"\r\n\r\n")
        assert reply.status == status
        assert reply.headers["connection"] == "close"
        assert reply.json()["error"]


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        pytest.param(post("/echo", b"x" * 3_000_000), 413, id="body"),
        pytest.param(b"GET / HTTP/1.1\r\nX: " + b"x" * 3_000_000, 413, id="head"),
        pytest.param(b"\0\r\n\r\n" + b"x" * 3_000_000, 400, id="line"),
    ],
)
def test_answer_reaches_a_client_that_is_still_sending(
    wire: WireServer, request_: bytes, status: int
) -> None:
    with connect(wire.address) as connection:
        connection.sendall(request_)  # the server reads on after its answer, so all of it is taken
        assert parse_reply(read_all(connection)).status == status


def test_body_is_asked_for_only_if_it_will_be_read(wire: WireServer) -> None:
    head = b"Host: a\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n"
    with connect(wire.address) as connection:
        connection.sendall(b"POST /echo HTTP/1.1\r\n" + head % 12)
        assert receive_until(connection, b"\r\n\r\n") == CONTINUE
        connection.sendall(b'{"text":"x"}')
        assert parse_reply(read_all(connection)).json() == {"text": "x", "bytes": 1}
    for request_line, length, status in (
        (b"POST /missing HTTP/1.1\r\n", 12, 404),
        (b"POST /health HTTP/1.1\r\n", 12, 405),
        (b"POST /echo HTTP/1.1\r\n", 1048577, 413),
    ):
        with connect(wire.address) as connection:
            connection.sendall(request_line + head % length)
            assert parse_reply(read_all(connection)).status == status


def test_late_clients_are_told_and_closed() -> None:
    with WireServer("--head-timeout", "0.1", "--body-timeout", "0.1") as server:
        for half in (b"", HEALTH[:-1], post("/echo", b"{}")[:-1]):
            with connect(server.address) as connection:
                connection.sendall(half)
                reply = parse_reply(read_all(connection))
                assert reply.status == 408
                assert reply.headers["connection"] == "close"


# Connections that stay


def test_client_that_asks_to_stay_may_send_its_next_request(wire: WireServer) -> None:
    with connect(wire.address) as connection:
        for _ in range(3):
            connection.sendall(KEPT)
            reply = parse_reply(receive_until(connection, b'{"ok":true}'))
            assert reply.headers["connection"] == "keep-alive"
        # An error of ours does not end it either; a request that does not ask to stay does.
        connection.sendall(post("/echo", b"?", "Connection: keep-alive"))
        assert parse_reply(receive_until(connection, b"}")).status == 400
        connection.sendall(HEALTH)
        assert parse_reply(read_all(connection)).headers["connection"] == "close"


def test_pipelined_requests_are_answered_in_turn(wire: WireServer) -> None:
    echo = post("/echo", {"text": "é"}, "Connection: keep-alive")
    with connect(wire.address) as connection:
        connection.sendall(echo + b"\r\n" + echo + HEALTH + HEALTH)
        answers = read_all(connection)
    assert answers.count(b'\r\nConnection: keep-alive\r\n\r\n{"text":"\xc3\xa9","bytes":2}') == 2
    assert answers.endswith(b'\r\nConnection: close\r\n\r\n{"ok":true}')
    assert answers.count(b"HTTP/1.1 200 OK") == 3  # what follows a close is not read


def test_streams_and_broken_requests_end_a_kept_connection(wire: WireServer) -> None:
    for request in (get("/count?n=0", "Connection: keep-alive"), b"x\r\n\r\n"):
        with connect(wire.address) as connection:
            connection.sendall(KEPT)
            receive_until(connection, b'{"ok":true}')
            connection.sendall(request)
            assert parse_reply(read_all(connection)).headers["connection"] == "close"


def test_kept_connection_that_says_nothing_is_closed_without_a_word() -> None:
    with WireServer("--idle-timeout", "0.1") as server, connect(server.address) as connection:
        connection.sendall(KEPT)
        assert read_all(connection).endswith(b'{"ok":true}')


def test_nobody_stays_if_the_server_says_never() -> None:
    with WireServer("--keep-alive", "never") as server:
        assert exchange(server.address, KEPT).headers["connection"] == "close"


def test_clients_beyond_the_bound_are_told_so() -> None:
    with (
        WireServer("--max-connections", "2") as server,
        connect(server.address) as first,
        connect(server.address) as second,
    ):
        for connection in (first, second):
            connection.sendall(KEPT)
            receive_until(connection, b'{"ok":true}')
        reply = exchange(server.address, HEALTH)
        assert reply.status == 503
        assert reply.json() == {"error": "too many connections"}
        first.shutdown(socket.SHUT_WR)
        assert read_all(first) == b""
        assert after(server, reply).status == 200


def after(server: WireServer, reply: Reply) -> Reply:
    """Ask until a place is free: the thread of a closed connection may still be ending."""
    while reply.status == 503:
        reply = exchange(server.address, HEALTH)
    return reply


# Start and end


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_the_server_with_exit_code_0(number: signal.Signals) -> None:
    with WireServer() as server, connect(server.address) as silent, connect(server.address) as kept:
        kept.sendall(KEPT)  # accepted after the silent one
        receive_until(kept, b'{"ok":true}')
        server.signal(number)
        assert server.wait() == (0, "", "")
        assert read_all(kept) == read_all(silent) == b""


def test_answer_under_way_is_finished_before_the_end() -> None:
    with WireServer() as server, connect(server.address) as connection:
        connection.sendall(get("/count?n=3&delay_ms=200"))
        received = receive_until(connection, b'data: {"i":0}\n\n')
        server.signal(signal.SIGTERM)
        received += read_all(connection)
        assert received.endswith(b'data: {"i":2}\n\ndata: [DONE]\n\n')
        assert server.wait() == (0, "", "")


@pytest.mark.parametrize("grace", ["0", "600"], ids=["no-grace", "second-signal"])
def test_answer_that_takes_too_long_does_not_hold_the_end(grace: str) -> None:
    with WireServer("--grace", grace) as server, connect(server.address) as connection:
        connection.sendall(get("/count?n=1000&delay_ms=5000"))
        receive_until(connection, b'data: {"i":0}\n\n')
        server.signal(signal.SIGTERM)
        if grace != "0":
            refuse_connections(server)  # the first signal has been taken
            server.signal(signal.SIGINT)
        assert server.wait() == (0, "", "")
        assert b"[DONE]" not in read_all(connection)


def refuse_connections(server: WireServer) -> None:
    """Return when the server has stopped to listen."""
    while True:
        try:
            connect(server.address).close()
        except OSError:
            return


@pytest.mark.parametrize(
    "arguments",
    [
        ["--port", "x"],
        ["--port", "65536"],
        ["--port", "-1"],
        ["--max-connections", "0"],
        ["--grace", "soon"],
        ["--head-timeout", "nan"],
        ["--keep-alive", "always"],
        ["here"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_code_2(arguments: list[str]) -> None:
    done = subprocess.run([WIRE, *arguments], capture_output=True, text=True, timeout=20)
    assert done.returncode == 2
    assert "usage: wire" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ([WIRE], "wire"),
        ([WIRE.parent / "tinyllm", "wire"], "tinyllm wire"),
        ([sys.executable, "-m", "tinyllm.wire"], "wire"),
    ],
    ids=["wire", "tinyllm-wire", "module"],
)
def test_port_in_use_is_one_line_and_exit_code_1(command: list[str | Path], name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [*command, "--port", port], capture_output=True, text=True, timeout=20
        )
    assert done.returncode == 1
    assert done.stderr == f"{name}: cannot listen on 127.0.0.1:{port}: Address already in use\n"
    assert done.stdout == ""
