"""The `wire` server over raw TCP: the tests of its specification, under their names."""

from __future__ import annotations

import json
import socket
import subprocess

import pytest

from support.wire import connect, exchange, get, parse_reply, post, read_all
from support.wireserver import WireServer

HEALTH = b"GET /health HTTP/1.1\r\nHost: test\r\n\r\n"


def test_health_response_bytes(wire: WireServer) -> None:
    with connect(wire.address) as connection:
        connection.sendall(HEALTH)
        assert read_all(connection) == (
            b"HTTP/1.1 200 OK\r\n"
            b"Content-Type: application/json\r\n"
            b"Content-Length: 11\r\n"
            b"Connection: close\r\n"
            b"\r\n"
            b'{"ok":true}'
        )


def test_echo_worked_example(wire: WireServer) -> None:
    with connect(wire.address) as connection:
        connection.sendall(
            b"POST /echo HTTP/1.1\r\n"
            b"Host: 127.0.0.1:8080\r\n"
            b"Content-Type: application/json\r\n"
            b"Content-Length: 14\r\n"
            b"\r\n"
            b'{"text":"h\xc3\xa9"}'
        )
        assert read_all(connection) == (
            b"HTTP/1.1 200 OK\r\n"
            b"Content-Type: application/json\r\n"
            b"Content-Length: 24\r\n"
            b"Connection: close\r\n"
            b"\r\n"
            b'{"text":"h\xc3\xa9","bytes":3}'
        )


@pytest.mark.parametrize(
    "text",
    [
        "",
        'he said "hi"',
        "back\\slash",
        "line\nbreak\r\n",
        "tab\t",
        "hé 漢字 😀",
        "\0\x01\x7f\x85\u2028",
    ],
)
def test_echo_round_trips_json_text(wire: WireServer, text: str) -> None:
    for body in (json.dumps({"text": text}), json.dumps({"text": text}, ensure_ascii=False)):
        reply = exchange(wire.address, post("/echo", body.encode()))
        assert reply.status == 200
        assert reply.json() == {"text": text, "bytes": len(text.encode())}
        assert reply.headers["content-length"] == str(len(reply.body))


def test_json_unicode_escapes_and_surrogate_pairs(wire: WireServer) -> None:
    reply = exchange(wire.address, post("/echo", rb'{"text":"\u00e9\ud83d\ude00"}'))
    assert reply.body == '{"text":"é😀","bytes":6}'.encode()


@pytest.mark.parametrize("name", ["content-length", "CONTENT-LENGTH", "cOnTeNt-LeNgTh"])
def test_header_names_are_case_insensitive(wire: WireServer, name: str) -> None:
    request = f'POST /echo HTTP/1.1\r\nhOST: a\r\n{name}: 12\r\n\r\n{{"text":"x"}}'
    assert exchange(wire.address, request.encode()).json() == {"text": "x", "bytes": 1}


def test_body_split_across_packets(wire: WireServer) -> None:
    request = post("/echo", {"text": "split"})
    head_end = request.index(b"\r\n\r\n") + 4
    for cuts in ((10, head_end + 3), (head_end - 2, head_end), (head_end, len(request) - 1)):
        with connect(wire.address) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for start, end in zip((0, *cuts), (*cuts, len(request)), strict=True):
                connection.sendall(request[start:end])
            assert parse_reply(read_all(connection)).json() == {"text": "split", "bytes": 5}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"text":"x"', id="cut"),
        pytest.param(b"", id="empty"),
        pytest.param(b"not json", id="words"),
        pytest.param(b'{"text":"\xff"}', id="not-utf8"),
        pytest.param(rb'{"text":"\ud83d"}', id="lone-surrogate"),
        pytest.param(b'{"text":"a\nb"}', id="raw-newline"),
        pytest.param(b"[" * 10_000, id="deep"),
        pytest.param(b'["text"]', id="no-object"),
        pytest.param(b'{"text":1}', id="no-string"),
        pytest.param(b'{"Text":"x"}', id="no-text"),
    ],
)
def test_bad_json_is_a_400_with_a_json_error(wire: WireServer, body: bytes) -> None:
    reply = exchange(wire.address, post("/echo", body))
    assert reply.status == 400
    assert reply.headers["content-type"] == "application/json"
    assert list(reply.json()) == ["error"]
    assert reply.json()["error"].startswith("the body is not")


def test_post_without_content_length_is_411(wire: WireServer) -> None:
    reply = exchange(wire.address, b"POST /echo HTTP/1.1\r\nHost: a\r\n\r\n")
    assert reply.status == 411
    assert "Content-Length" in reply.json()["error"]


@pytest.mark.parametrize(
    "line", [b"GET", b"GET /health", b"GET /health HTTP/9.9", b"G\0T /health HTTP/1.1", b"x y z w"]
)
def test_malformed_request_line_is_400(wire: WireServer, line: bytes) -> None:
    reply = exchange(wire.address, line + b"\r\nHost: a\r\n\r\n")
    assert reply.status == 400
    assert reply.head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert reply.json()["error"]


@pytest.mark.parametrize(
    ("request_line", "allowed"),
    [
        ("POST /health", "GET"),
        ("HEAD /health", "GET"),
        ("GET /echo", "POST"),
        ("HEAD /echo", "POST"),
        ("POST /count", "GET"),
        ("HEAD /count?n=1", "GET"),
        ("brew /health", "GET"),
        ("OPTIONS http://test/echo", "POST"),
    ],
)
def test_unknown_path_and_wrong_method(wire: WireServer, request_line: str, allowed: str) -> None:
    fields = b" HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n"
    reply = exchange(wire.address, request_line.encode() + fields)
    assert reply.status == 405
    assert reply.headers["allow"] == allowed
    assert bool(reply.body) is not request_line.startswith("HEAD")
    method = request_line.split()[0]
    for path in (
        "/",
        "/healthz",
        "/health/",
        "/Health",
        "/echo%20",
        "*" if method == "OPTIONS" else "/x",
    ):
        reply = exchange(wire.address, f"{method} {path}".encode() + fields)
        assert reply.status == 404
        assert "allow" not in reply.headers


def test_absolute_target_is_routed_by_its_path(wire: WireServer) -> None:
    assert exchange(wire.address, get("http://example.com/health")).json() == {"ok": True}


def test_sse_stream_framing(wire: WireServer) -> None:
    with connect(wire.address) as connection:
        connection.sendall(get("/count?n=2"))
        assert read_all(connection) == (
            b"HTTP/1.1 200 OK\r\n"
            b"Content-Type: text/event-stream\r\n"
            b"Cache-Control: no-cache\r\n"
            b"Connection: close\r\n"
            b"\r\n"
            b'data: {"i":0}\n\ndata: {"i":1}\n\ndata: [DONE]\n\n'
        )


@pytest.mark.parametrize(
    ("query", "events"),
    [("", 3), ("?n=0", 0), ("?n=1000", 1000), ("?n=0003&delay_ms=0", 3), ("?delay_ms=1&x=y", 3)],
)
def test_count_sends_as_many_events_as_asked(wire: WireServer, query: str, events: int) -> None:
    reply = exchange(wire.address, get(f"/count{query}"))
    assert reply.events() == [*(f'{{"i":{i}}}' for i in range(events)), "[DONE]"]


@pytest.mark.parametrize(
    "query",
    [
        *(
            "n=1001",
            "n=-1",
            "n=+1",
            "n=",
            "n",
            "n=1.0",
            "n=0x1",
            "n=%31",
            "n=1_0",
            f"n={'9' * 5000}",
        ),
        *("delay_ms=5001", "delay_ms=x", "n=2?delay_ms=5", "n=1&delay_ms="),
    ],
)
def test_count_refuses_what_is_no_number_in_its_range(wire: WireServer, query: str) -> None:
    reply = exchange(wire.address, get(f"/count?{query}"))
    assert reply.status == 400
    assert "is a number from 0 to" in reply.json()["error"]


def test_sse_events_leave_as_they_happen(wire: WireServer) -> None:
    with connect(wire.address) as connection:
        connection.sendall(get("/count?n=2&delay_ms=5000"))
        received = b""
        while b'data: {"i":0}\n\n' not in received:
            received += connection.recv(65536)
        assert b'{"i":1}' not in received  # it is seconds away


def test_curl_n_reads_the_stream(wire: WireServer) -> None:
    url = f"http://127.0.0.1:{wire.address[1]}/count?n=3&delay_ms=10"
    curl = subprocess.run(["curl", "-sS", "-N", url], capture_output=True, timeout=20, check=True)
    assert curl.stdout == b'data: {"i":0}\n\ndata: {"i":1}\n\ndata: {"i":2}\n\ndata: [DONE]\n\n'


def test_curl_posts_a_body_for_which_it_expects_to_be_asked(wire: WireServer) -> None:
    body = json.dumps({"text": "x" * 1_040_000})
    command = ["curl", "-sS", "-i", "-H", "Expect: 100-continue", "--data-binary", "@-"]
    url = f"http://127.0.0.1:{wire.address[1]}/echo"
    curl = subprocess.run(
        [*command, url], input=body.encode(), capture_output=True, timeout=20, check=True
    )
    interim, _, rest = curl.stdout.partition(b"\r\n\r\n")
    assert interim == b"HTTP/1.1 100 Continue"
    assert parse_reply(rest).json()["bytes"] == 1_040_000
