"""A gateway in Go, as the server sees it: net/http's bytes, header names in canonical case."""

from __future__ import annotations

import json
from typing import Any

import pytest

from clients.expected import GREEDY, LONG, TEXT, TEXTS
from support.accesslog import AccessLog
from support.processes import TlServe
from support.wire import connect, parse_reply, read_all, read_reply


def go_request(server: TlServe, body: dict[str, Any], *more: str) -> bytes:
    """What http.Post with a bytes.Reader sends; further headers stand where Go sorts them."""
    data = json.dumps(body, separators=(",", ":"))
    host, port = server.address
    lines = [
        "POST /v1/completions HTTP/1.1",
        f"Host: {host}:{port}",
        "User-Agent: Go-http-client/1.1",
        f"Content-Length: {len(data)}",
        "Content-Type: application/json",
        *more,
        "Accept-Encoding: gzip",
    ]
    return "\r\n".join([*lines, "", data]).encode()


def test_canonical_header_names(server: TlServe) -> None:
    headers = ("Traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",)
    with connect(server.address) as connection:
        connection.sendall(go_request(server, GREEDY, *headers, "X-Request-Id: go-1"))
        reply = parse_reply(read_all(connection))
    assert (reply.status, reply.headers["x-request-id"]) == (200, "go-1")
    assert reply.json()["choices"][0]["text"] == TEXT
    assert reply.headers["connection"] == "close", "net/http did not ask for more"


@pytest.mark.parametrize("cut", [1, 60, 150])
def test_head_and_body_in_segments_of_their_own(server: TlServe, cut: int) -> None:
    """net/http flushes its 4 KiB buffer when it likes: any byte may be the last of a segment."""
    request = go_request(server, {**GREEDY, "stream": True})
    with connect(server.address) as connection:
        for start in range(0, len(request), cut):
            connection.sendall(request[start : start + cut])
        reply = parse_reply(read_all(connection))
    *events, done = reply.events()
    assert [json.loads(event)["choices"][0]["text"] for event in events] == TEXTS
    assert done == "[DONE]"


def test_a_gateway_that_keeps_its_connection(server: TlServe) -> None:
    """A reverse proxy asks with `Connection: keep-alive` and reads by Content-Length."""
    with connect(server.address) as connection:
        for _ in range(3):
            connection.sendall(go_request(server, GREEDY, "Connection: keep-alive"))
            reply = read_reply(connection)
            assert reply.headers["connection"] == "keep-alive"
            assert reply.json()["choices"][0]["text"] == TEXT


def test_a_cancelled_context_ends_the_stream(server: TlServe, log: AccessLog) -> None:
    """net/http closes the connection when a request's context is cancelled."""
    request = go_request(server, {**LONG, "stream": True}, "X-Request-Id: go-long")
    with connect(server.address) as connection:
        connection.sendall(request)
        assert connection.recv(1024).startswith(b"HTTP/1.1 200 OK\r\n")
        assert log.still_runs("go-long")
    line = log.end_of("go-long")
    assert line["ended"] == "client_gone"
    assert 1 <= line["completion_tokens"] < 4096
