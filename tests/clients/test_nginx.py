"""Behind nginx with its default buffering: what the client gets, and when.

nginx holds a proxied answer until its buffer is full or the answer ends, unless the answer says
`X-Accel-Buffering: no`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from clients.expected import GREEDY, LONG, TEXT, TEXTS
from support.accesslog import AccessLog
from support.gate import Gate
from support.nginx import nginx_before
from support.processes import TlServe
from support.wire import Address

STREAM: dict[str, Any] = {**GREEDY, "stream": True}


@pytest.fixture(scope="module")
def proxy(server: TlServe) -> Iterator[Address]:
    with nginx_before(server.address) as address:
        yield address


def url(address: Address) -> str:
    return f"http://{address[0]}:{address[1]}/v1/completions"


def text_of(line: str) -> str:
    return str(json.loads(line.removeprefix("data: "))["choices"][0]["text"])


def test_answers_and_errors_pass(proxy: Address) -> None:
    headers = {"X-Request-Id": "nginx-1"}
    answer = httpx.post(url(proxy), json=GREEDY, headers=headers)
    assert (answer.status_code, answer.headers["x-request-id"]) == (200, "nginx-1")
    assert answer.json()["choices"][0]["text"] == TEXT
    refused = httpx.post(url(proxy), json={**GREEDY, "seed": -1})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "seed")


def test_a_stream_passes_whole(proxy: Address) -> None:
    answer = httpx.post(url(proxy), json=STREAM)
    assert answer.headers["content-type"] == "text/event-stream"
    *events, done = answer.text.removesuffix("\n\n").split("\n\n")
    assert ([text_of(event) for event in events], done) == (TEXTS, "data: [DONE]")


def test_nginx_passes_the_first_event_before_there_is_a_second(server: TlServe) -> None:
    with (
        Gate(server.address) as gate,
        nginx_before(gate.address) as address,
        httpx.stream("POST", url(address), json=STREAM, timeout=10) as response,
    ):
        lines = response.iter_lines()
        assert text_of(next(lines)) == "b"  # the gate is still shut
        gate.open()
        assert [line for line in lines if line][-1] == "data: [DONE]"


def test_the_first_event_arrives_while_the_stream_runs(proxy: Address, log: AccessLog) -> None:
    headers = {"X-Request-Id": "nginx-long"}
    request = {**LONG, "stream": True}
    with httpx.stream("POST", url(proxy), json=request, headers=headers) as response:
        lines = response.iter_lines()  # kept: without its iterator httpx ends the request
        assert text_of(next(lines)) == "b"
        assert log.still_runs("nginx-long")
    line = log.end_of("nginx-long")
    assert line["ended"] == "client_gone", "nginx lets go of the server when its client goes"
    assert line["completion_tokens"] < LONG["max_tokens"]
