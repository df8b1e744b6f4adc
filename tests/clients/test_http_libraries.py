"""Python's HTTP libraries, each with its own idea of headers, pools and streams."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from typing import Any

import aiohttp
import httpx
import pytest
import requests

from clients.expected import GREEDY, LONG, TEXT, TEXTS
from support.accesslog import AccessLog
from support.processes import TlServe

STREAM: dict[str, Any] = {**GREEDY, "stream": True}
LONG_STREAM: dict[str, Any] = {**LONG, "stream": True}


@pytest.fixture(scope="module")
def url(server: TlServe) -> str:
    return f"{server.base_url}/v1/completions"


def text_of(answer: Any) -> str:
    return str(answer["choices"][0]["text"])


def texts_of(lines: list[str]) -> list[str]:
    """The chunks' texts, if the lines are those of a whole stream."""
    assert lines[1::2] == [""] * (len(lines) // 2)
    *events, done = lines[0::2]
    assert done == "data: [DONE]"
    return [text_of(json.loads(event.removeprefix("data: "))) for event in events]


def first_text(line: str | bytes) -> str:
    event = line if isinstance(line, str) else line.decode()
    return text_of(json.loads(event.removeprefix("data: ")))


def test_httpx(url: str, log: AccessLog) -> None:
    with httpx.Client() as client:
        for request_id in ("httpx-1", "httpx-2"):
            answer = client.post(url, json=GREEDY, headers={"X-Request-Id": request_id})
            assert text_of(answer.json()) == TEXT
        assert log.end_of("httpx-1")["client"] == log.end_of("httpx-2")["client"]
        with client.stream("POST", url, json=STREAM) as response:
            assert texts_of(list(response.iter_lines())) == TEXTS
        headers = {"X-Request-Id": "httpx-long"}
        with client.stream("POST", url, json=LONG_STREAM, headers=headers) as response:
            lines = response.iter_lines()  # kept: without its iterator httpx ends the request
            assert first_text(next(lines)) == "b"
            assert log.still_runs("httpx-long")
    assert log.end_of("httpx-long")["ended"] == "client_gone"


def test_requests(url: str, log: AccessLog) -> None:
    with requests.Session() as session:
        for request_id in ("requests-1", "requests-2"):
            answer = session.post(url, json=GREEDY, headers={"X-Request-Id": request_id})
            assert text_of(answer.json()) == TEXT
        assert log.end_of("requests-1")["client"] == log.end_of("requests-2")["client"]
        with session.post(url, json=STREAM, stream=True) as response:
            assert texts_of([line.decode() for line in response.iter_lines()]) == TEXTS
        headers = {"X-Request-Id": "requests-long"}
        with session.post(url, json=LONG_STREAM, headers=headers, stream=True) as response:
            lines = response.iter_lines()
            assert first_text(next(lines)) == "b"
            assert log.still_runs("requests-long")
    assert log.end_of("requests-long")["ended"] == "client_gone"


def test_requests_with_a_generator_for_a_body_is_refused(url: str) -> None:
    answer = requests.post(url, data=iter([b'{"model":"m",', b'"prompt":"a"}']))
    assert answer.status_code == 501
    assert answer.json()["error"]["message"] == "a body with a transfer coding is not read here"


def test_aiohttp(url: str, log: AccessLog) -> None:
    async def ask() -> None:
        async with aiohttp.ClientSession() as session:
            async with session.post(url, json=GREEDY) as response:
                assert text_of(await response.json()) == TEXT
            async with session.post(url, json=STREAM) as response:
                lines = [line.decode().removesuffix("\n") async for line in response.content]
                assert texts_of(lines) == TEXTS
            headers = {"X-Request-Id": "aiohttp-long"}
            async with session.post(url, json=LONG_STREAM, headers=headers) as response:
                assert first_text(await response.content.readline()) == "b"
                assert log.still_runs("aiohttp-long")

    asyncio.run(ask())
    assert log.end_of("aiohttp-long")["ended"] == "client_gone"


def test_urllib(url: str, log: AccessLog) -> None:
    with urllib.request.urlopen(url, json.dumps(GREEDY).encode()) as response:
        assert text_of(json.load(response)) == TEXT
    with urllib.request.urlopen(url, json.dumps(STREAM).encode()) as response:
        assert texts_of(response.read().decode().splitlines()) == TEXTS
    request = urllib.request.Request(
        url, json.dumps(LONG_STREAM).encode(), {"X-Request-Id": "urllib-long"}
    )
    with urllib.request.urlopen(request) as response:
        assert first_text(response.readline()) == "b"
        assert log.still_runs("urllib-long")
    assert log.end_of("urllib-long")["ended"] == "client_gone"
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(url)
    with raised.value as error:
        assert (error.code, error.headers["Allow"]) == (405, "POST")
