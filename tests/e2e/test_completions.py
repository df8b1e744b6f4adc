"""The worked examples of the engine spec (section 3) and its table, over real sockets.

One real `tl-serve` process with the succ model answers all but the tests that need another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import models
from support.processes import TlServe, running
from support.wire import (
    Address,
    Reply,
    complete,
    connect,
    exchange,
    get,
    parse_reply,
    post,
    read_all,
)

HELD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"


@pytest.fixture(scope="module")
def address(succ_server: TlServe) -> Address:
    return succ_server.address


@pytest.fixture(scope="module")
def utf8_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    model = models.write_model(tmp_path_factory.mktemp("utf8"), models.utf8)
    with running(model) as server:
        yield server.address


@pytest.fixture(scope="module")
def nul_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    with running(models.write_model(tmp_path_factory.mktemp("nul"), models.nul)) as server:
        yield server.address


def chunks(reply: Reply) -> list[dict[str, object]]:
    *events, done = reply.events()
    assert done == "[DONE]"
    return [json.loads(event) for event in events]


def texts(reply: Reply) -> list[str]:
    return [chunk["choices"][0]["text"] for chunk in chunks(reply)]  # type: ignore[index]


def text(reply: Reply) -> str:
    return str(reply.json()["choices"][0]["text"])


def test_hand_example_completion(address: Address) -> None:
    reply = complete(address, prompt="a", max_tokens=3, temperature=0)
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    answer = reply.json()
    assert re.fullmatch(r"cmpl-[0-9a-f]{32}", answer.pop("id"))
    assert isinstance(answer.pop("created"), int)
    assert answer == {
        "object": "text_completion",
        "model": "m",
        "choices": [{"index": 0, "text": "bcd", "finish_reason": "length"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 3, "total_tokens": 4},
    }


def test_stream_framing_is_exact(address: Address) -> None:
    body = b'{"model":"m","prompt":"a","max_tokens":3,"temperature":0,"stream":true}'
    with connect(address) as connection:
        connection.sendall(post("/v1/completions", body))
        data = read_all(connection)
    reply = parse_reply(data)
    first = chunks(reply)[0]
    frame = (
        f'data: {{"id":"{first["id"]}","object":"text_completion","created":{first["created"]},'
        '"model":"m","choices":[{"index":0,"text":"%s","finish_reason":%s}]}\n\n'
    )
    assert reply.head.decode() == (
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
        "Connection: close\r\nX-Accel-Buffering: no"
    ) or sorted(reply.head.decode().split("\r\n")) == sorted(
        (
            "HTTP/1.1 200 OK",
            "Content-Type: text/event-stream",
            "Cache-Control: no-cache",
            "Connection: close",
            "X-Accel-Buffering: no",
        )
    )
    assert reply.body.decode() == (
        frame % ("b", "null")
        + frame % ("c", "null")
        + frame % ("d", '"length"')
        + "data: [DONE]\n\n"
    )
    assert "content-length" not in reply.headers


def test_utf8_is_held_back_in_the_stream(utf8_address: Address) -> None:
    stream = complete(utf8_address, prompt="x", max_tokens=3, temperature=0, stream=True)
    assert texts(stream) == ["", "é", "\ufffd"]
    plain = complete(utf8_address, prompt="x", max_tokens=3, temperature=0)
    assert text(plain) == "é\ufffd"


def test_held_back_bytes_come_with_the_last_chunk(utf8_address: Address) -> None:
    stream = complete(utf8_address, prompt="x", max_tokens=1, temperature=0, stream=True)
    assert texts(stream) == ["\ufffd"]


def test_max_tokens_counts_generated_tokens_only(address: Address) -> None:
    answer = complete(address, prompt="héllo", max_tokens=4, temperature=0).json()
    assert answer["usage"] == {"prompt_tokens": 6, "completion_tokens": 4, "total_tokens": 10}
    stream = complete(address, prompt="héllo", max_tokens=4, temperature=0, stream=True)
    assert len(chunks(stream)) == 4


@pytest.mark.parametrize("count", [1, 2, 64, 65, 700, 4096])
def test_stream_equals_nonstream_at_temperature_0(
    nul_address: Address, address: Address, count: int
) -> None:
    for target in (nul_address, address):
        plain = complete(target, prompt="a", max_tokens=count, temperature=0)
        stream = complete(target, prompt="a", max_tokens=count, temperature=0, stream=True)
        assert "".join(texts(stream)) == text(plain)
    assert b"\x00" not in complete(nul_address, max_tokens=4, stream=True).body


def test_seed_reproduces_sampling(address: Address) -> None:
    wanted = {"prompt": "a", "max_tokens": 200, "temperature": 1.5}
    first = complete(address, seed=7, **wanted)
    assert text(complete(address, seed=7, **wanted)) == text(first)
    assert "".join(texts(complete(address, seed=7, stream=True, **wanted))) == text(first)
    assert text(complete(address, seed=8, **wanted)) != text(first)


def test_without_a_seed_answers_differ(address: Address) -> None:
    answers = {text(complete(address, max_tokens=64, temperature=2)) for _ in range(4)}
    assert len(answers) == 4


def test_completion_request_validation(address: Address) -> None:
    least = {"model": "m", "prompt": "a"}
    nulls = dict.fromkeys(("max_tokens", "temperature", "seed", "stream"))
    for fields in (least, {**least, **nulls}, {**least, "n": 2, "unknown": {"deep": [1e400]}}):
        body = json.dumps(fields).replace("Infinity", "1e400").encode()
        reply = exchange(address, post("/v1/completions", body))
        assert (reply.status, reply.json()["usage"]["completion_tokens"]) == (200, 16)
    for name, bad in (
        ("model", ""),
        ("model", 7),
        ("prompt", ""),
        ("prompt", ["a"]),
        ("max_tokens", 0),
        ("max_tokens", 4097),
        ("max_tokens", 16.0),
        ("temperature", 2.1),
        ("temperature", "1"),
        ("seed", -1),
        ("seed", 2**64),
        ("stream", "true"),
    ):
        body = json.dumps({**least, name: bad}).encode()
        reply = exchange(address, post("/v1/completions", body))
        error = reply.json()["error"]
        assert (reply.status, error["type"], error["param"]) == (
            400,
            "invalid_request_error",
            name,
        )


def test_errors_use_the_openai_shape(address: Address) -> None:
    shape = {"message", "type", "param", "code"}
    cases = [
        (post("/v1/completions", b'{"model":"m"}'), 400, "prompt"),
        (post("/v1/completions", b"{"), 400, None),
        (get("/missing"), 404, None),
        (get("/v1/completions"), 405, None),
        (post("/healthz", b"{}"), 405, None),
        (b"POST /v1/completions HTTP/1.1\r\nHost: t\r\n\r\n", 411, None),
        (b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 9999999\r\n\r\n", 413, None),
        (get("/healthz", "A: " + "b" * 16384), 431, None),
        (b"POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n", 501, None),
        (b"nonsense\r\n\r\n", 400, None),
    ]
    for request, status, param in cases:
        reply = exchange(address, request)
        error = reply.json()["error"]
        assert (reply.status, error["param"]) == (status, param), request[:60]
        assert set(error) == shape
        assert error["message"]
        assert reply.headers["connection"] == "close"


def test_a_405_names_what_is_allowed(address: Address) -> None:
    assert exchange(address, get("/v1/completions")).headers["allow"] == "POST"
    assert exchange(address, post("/healthz", b"")).headers["allow"] == "GET, HEAD"


def test_healthz_answers_200(succ_server: TlServe) -> None:
    for port in (succ_server.address, succ_server.health_address):
        reply = exchange(port, get("/healthz"))
        assert (reply.status, reply.body) == (200, b'{"ok":true}')
    head = exchange(succ_server.address, b"HEAD /healthz HTTP/1.1\r\nHost: t\r\n\r\n")
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", "11")


def test_the_health_port_knows_nothing_else(succ_server: TlServe) -> None:
    assert exchange(succ_server.health_address, get("/v1/completions")).status == 404
    assert exchange(succ_server.health_address, post("/healthz", b"")).status == 405


def test_content_length_counts_bytes(utf8_address: Address) -> None:
    reply = complete(utf8_address, model="mé😀", prompt="x", max_tokens=8, temperature=0)
    assert int(reply.headers["content-length"]) == len(reply.body)
    assert len(reply.body.decode()) < len(reply.body)
    assert reply.json()["model"] == "mé😀"


def test_echoes_x_request_id(address: Address) -> None:
    for stream in (False, True):
        echoed = complete(address, "X-Request-Id: abc-123", stream=stream)
        assert echoed.headers["x-request-id"] == "abc-123"
        assert "x-request-id" not in complete(address, stream=stream).headers
    assert exchange(address, get("/healthz", "x-request-ID: ~!")).headers["x-request-id"] == "~!"
    assert exchange(address, get("/missing", "X-Request-Id: e")).headers["x-request-id"] == "e"
    assert complete(address, "X-Request-Id: e", prompt="").headers["x-request-id"] == "e"


@pytest.mark.parametrize("bad", ["", "two words", "a" * 129, "caf\u00e9", "tab\there"])
def test_an_unfit_x_request_id_is_not_echoed(address: Address, bad: str) -> None:
    request = post("/v1/completions", {"model": "m", "prompt": "a"})
    line = b"X-Request-Id: " + bad.encode() + b"\r\n"
    reply = exchange(address, request.replace(b"Host: test\r\n", b"Host: test\r\n" + line))
    assert reply.status == 200
    assert "x-request-id" not in reply.headers


def test_serves_a_second_client_while_one_stalls(address: Address) -> None:
    with connect(address) as stalled:
        stalled.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 50\r\n\r\n{")
        assert exchange(address, get("/healthz")).status == 200
        assert text(complete(address, prompt="a", max_tokens=3, temperature=0)) == "bcd"


def test_a_row_without_usable_logits_is_an_error(tmp_path: Path) -> None:
    model = models.write_model(tmp_path, models.broken_after_a)
    with running(model) as server:
        plain = complete(server.address, prompt="a", max_tokens=9, temperature=0)
        assert plain.status == 500
        assert plain.json()["error"]["type"] == "server_error"
        at_once = complete(server.address, prompt="c", max_tokens=9, temperature=0, stream=True)
        assert at_once.status == 500
        later = complete(server.address, prompt="a", max_tokens=9, temperature=0, stream=True)
        *events, last = later.events()
        assert (later.status, len(events)) == (200, 2)  # b and c, before the row of c
        assert json.loads(last)["error"]["type"] == "server_error"
        assert text(complete(server.address, prompt="d", max_tokens=3, temperature=0)) == "efg"
