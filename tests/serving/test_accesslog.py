"""A line per request, for people and for programs; a client cannot forge one."""

from __future__ import annotations

import json
import os
import re

import pytest

from support.memory import MakePort, Port
from support.wire import get, post
from tinyllm.serving.accesslog import (
    SHOWN_CHARACTERS,
    AccessLog,
    Clock,
    json_line,
    text_line,
)
from tinyllm.serving.exchange import Ended, Exchange

STARTED = 1_796_040_000_123_456_789  # Unix nanoseconds


def an_exchange(**facts: object) -> Exchange:
    exchange = Exchange(("192.0.2.1", 50000))
    exchange.started_unix_nano = STARTED
    exchange.method, exchange.path = "POST", "/v1/completions"
    exchange.request_id = "abc-123"
    exchange.status = 200
    exchange.bytes_sent = 345
    exchange.prompt_tokens, exchange.completion_tokens = 6, 4
    exchange.first_token_ns = 1_234_500
    exchange.duration_ns = 4_567_800
    for name, value in facts.items():
        setattr(exchange, name, value)
    return exchange


def test_text_line() -> None:
    assert text_line(an_exchange()) == (
        '2026-11-30T12:00:00.123Z abc-123 192.0.2.1:50000 "POST /v1/completions" 200 345B '
        "prompt=6 completion=4 ttft=1234us duration=4567us completed\n"
    )


def test_json_line() -> None:
    assert json.loads(json_line(an_exchange(ended=Ended.CLIENT_GONE))) == {
        "time": "2026-11-30T12:00:00.123Z",
        "request_id": "abc-123",
        "client": "192.0.2.1:50000",
        "method": "POST",
        "path": "/v1/completions",
        "status": 200,
        "bytes": 345,
        "prompt_tokens": 6,
        "completion_tokens": 4,
        "time_to_first_token": 0.0012345,
        "duration": 0.0045678,
        "ended": "client_gone",
    }


def test_what_is_not_known_is_a_dash_or_null() -> None:
    nothing = an_exchange(method="", path="", first_token_ns=None, request_id=None)
    assert '"- -"' in text_line(nothing)
    assert "ttft=- " in text_line(nothing)
    assert json.loads(json_line(nothing))["time_to_first_token"] is None


def test_a_request_without_an_id_gets_one_for_the_log_and_keeps_it() -> None:
    exchange = an_exchange(request_id=None)
    first = text_line(exchange).split(" ")[1]
    assert re.fullmatch(r"[0-9a-f]{16}", first)
    assert text_line(exchange).split(" ")[1] == first
    assert json.loads(json_line(exchange))["request_id"] == first


@pytest.mark.parametrize(
    ("facts", "shown"),
    [
        ({"request_id": "mine", "completion_id": "cmpl-9d"}, "mine"),
        ({"request_id": None, "completion_id": "cmpl-9d"}, "cmpl-9d"),
        ({"request_id": None, "completion_id": "cmpl-9d", "log_id": "of-an-error"}, "of-an-error"),
    ],
)
def test_a_completion_goes_by_its_own_id_if_the_caller_gave_none(
    facts: dict[str, str | None], shown: str
) -> None:
    assert text_line(an_exchange(**facts)).split(" ")[1] == shown


def test_the_clock_follows_the_milliseconds() -> None:
    clock = Clock()
    assert clock.text(STARTED + 10**6) == "2026-11-30T12:00:00.124Z"
    assert clock.text(STARTED + 10**6 - 1) == "2026-11-30T12:00:00.124Z"
    assert clock.text(STARTED) == "2026-11-30T12:00:00.123Z"
    assert clock.text(STARTED + 10**9) == "2026-11-30T12:00:01.123Z"
    assert clock.text(STARTED) == "2026-11-30T12:00:00.123Z"
    assert clock.text(STARTED + 3600 * 10**9 - 123 * 10**6) == "2026-11-30T13:00:00.000Z"


@pytest.mark.parametrize(
    ("peer", "shown"),
    [
        (("2001:db8::1", 50000, 0, 0), "[2001:db8::1]:50000"),
        ("", "-"),  # of a Unix socket
        (None, "-"),
    ],
)
def test_the_client_is_shown_as_its_address_and_port(peer: object, shown: str) -> None:
    exchange = Exchange(peer)
    exchange.request_id = "abc-123"
    assert text_line(exchange).split(" ")[2] == shown
    assert json.loads(json_line(exchange))["client"] == shown


# What clients send cannot look like a line, or a field, of ours

FORGED = '2026-11-30T12:00:00.123Z x 192.0.2.9:1 "GET /admin" 200'


@pytest.mark.parametrize("line", [text_line, json_line], ids=["text", "json"])
@pytest.mark.parametrize(
    "path",
    [
        f"/a\n{FORGED}",
        f"/a\r{FORGED}",
        f'/a" {FORGED}',
        "/a\u2028b\u0085c\x1b[2Jd\x7fe",
        "/a\\",
    ],
    ids=["LF", "CR", "quote", "control", "backslash"],
)
def test_a_path_stays_inside_its_quotes(line: type, path: str) -> None:
    text = line(an_exchange(path=path))
    assert text.count("\n") == 1
    assert text.isascii()
    assert text.isprintable() is False
    assert text[:-1].isprintable()
    if line is text_line:
        quoted = re.search(r'"(?:[^"\\]|\\.)*"', text)
        assert quoted is not None
        assert json.loads(quoted[0]) == f"POST {path}"
        assert text[quoted.end() :].startswith(" 200 345B ")
    else:
        assert json.loads(text)["path"] == path


def test_a_long_path_or_method_is_cut(port: Port) -> None:
    exchange = an_exchange(path="/" + "a" * 16_000, method="M" * 16_000)
    for line in (text_line, json_line):
        assert len(line(exchange)) < 3 * SHOWN_CHARACTERS + 300


def logged(port: Port, request: bytes) -> str:
    client = port.connect()
    client.send(request)
    client.finish_sending()
    return text_line(port.exchanges[-1])


@pytest.mark.parametrize(
    "header",
    [
        b'X-Request-Id: a" 200',
        b"X-Request-Id: a b",
        b"X-Request-Id: a\tb",
        b"X-Request-Id: " + b"a" * 129,
        b"X-Request-Id: caf\xc3\xa9",
        b"X-Request-Id:",
    ],
)
def test_an_unfit_request_id_never_reaches_the_log(port: Port, header: bytes) -> None:
    line = logged(port, b"GET /healthz HTTP/1.1\r\nHost: t\r\n" + header + b"\r\n\r\n")
    assert re.match(r'\S+Z [0-9a-f]{16} 192\.0\.2\.1:50000 "GET /healthz" 200 ', line)


def test_a_request_id_that_tries_to_be_a_header_is_a_400(port: Port) -> None:
    line = logged(port, b"GET /healthz HTTP/1.1\r\nHost: t\r\nX-Request-Id: a\rb\r\n\r\n")
    assert '"- -" 400 ' in line


@pytest.mark.parametrize(
    ("request_bytes", "pattern"),
    [
        (get("/healthz"), r'"GET /healthz" 200 101B prompt=0 completion=0 ttft=- .* completed'),
        (get("/missing?a=b"), r'"GET /missing" 404 \d+B .* completed'),
        (get("http://h/healthz"), r'"GET /healthz" 200 '),
        (b"nonsense\r\n\r\n", r'"- -" 400 .* completed'),
        (
            post("/v1/completions", {"model": "m", "prompt": "h\u00e9", "max_tokens": 5}),
            r'"POST /v1/completions" 200 \d+B prompt=3 completion=5 ttft=\d+us .* completed',
        ),
        (
            post("/v1/completions", {"model": "m", "prompt": "a", "max_tokens": 5, "stream": True}),
            r'"POST /v1/completions" 200 \d+B prompt=1 completion=5 ttft=\d+us .* completed',
        ),
        (
            post("/v1/completions", {"model": "m"}),
            r'"POST /v1/completions" 400 \d+B prompt=0 completion=0 ttft=- ',
        ),
    ],
    ids=["health", "unknown path", "absolute form", "broken", "plain", "stream", "bad field"],
)
def test_a_line_says_how_a_request_went(port: Port, request_bytes: bytes, pattern: str) -> None:
    assert re.search(pattern, logged(port, request_bytes))


@pytest.mark.parametrize(
    ("peer", "shown"),
    [
        (("192.0.2.1", 5), "192.0.2.1:5"),
        (("2001:db8::1", 5, 0, 0), "[2001:db8::1]:5"),
        ("", "-"),
        (None, "-"),
    ],
    ids=["IPv4", "IPv6", "unix", "gone"],
)
def test_the_client_is_its_address(port: Port, peer: object, shown: str) -> None:
    client = port.connect(peer)
    client.send(get("/healthz"))
    assert f" {shown} " in text_line(port.exchanges[0])


def test_a_deadline_is_in_the_line(make_port: MakePort) -> None:
    port = make_port()
    client = port.connect()
    client.send(b"GET /healthz HTT")
    port.loop.advance(11)
    assert re.search(r'"- -" 408 .* duration=\S+ timed_out\n', text_line(port.exchanges[0]))


def test_the_log_is_written_to_its_descriptor() -> None:
    reader, writer = os.pipe()
    log = AccessLog(writer, json_line)
    log.write(*log.lines([an_exchange(), an_exchange(path="/é")]))
    log.close(20)
    os.close(writer)
    with os.fdopen(reader) as stream:
        found = [json.loads(line) for line in stream]
    assert [entry["path"] for entry in found] == ["/v1/completions", "/é"]
