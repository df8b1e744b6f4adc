"""The official JavaScript client under node: plain, streamed, and its errors."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from clients.conftest import NODE
from clients.expected import GREEDY, LONG, TEXT, TEXTS, USAGE
from support.accesslog import AccessLog
from support.processes import TlServe
from support.tools import require


@pytest.fixture(autouse=True)
def installed(node_modules: Path) -> None:
    """Every test here needs the npm package."""


def command(server: TlServe, request: dict[str, Any], **more: Any) -> list[str | Path]:
    wanted = {"baseURL": f"{server.base_url}/v1", "request": request, **more}
    return [require("node"), NODE / "client.mjs", json.dumps(wanted)]


def answers(server: TlServe, request: dict[str, Any]) -> list[Any]:
    ran = subprocess.run(command(server, request), capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_a_plain_completion(server: TlServe) -> None:
    [completion] = answers(server, GREEDY)
    assert completion["choices"] == [{"index": 0, "text": TEXT, "finish_reason": "length"}]
    assert completion["usage"] == USAGE


def test_a_stream(server: TlServe) -> None:
    chunks = answers(server, {**GREEDY, "stream": True})
    assert [chunk["choices"][0]["text"] for chunk in chunks] == TEXTS
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert reasons == [None, None, "length"]


def test_an_error_names_the_field(server: TlServe) -> None:
    [error] = answers(server, {**GREEDY, "temperature": "hot"})
    assert (error["status"], error["param"]) == (400, "temperature")
    assert error["type"] == "invalid_request_error"
    assert 'temperature must be a number from 0 to 2, but is "hot"' in error["message"]


def test_the_first_chunk_arrives_while_the_stream_runs(server: TlServe, log: AccessLog) -> None:
    headers = {"X-Request-Id": "node-long"}
    arguments = command(server, {**LONG, "stream": True}, headers=headers, pause=True)
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as node:
        assert node.stdout is not None
        assert json.loads(node.stdout.readline())["choices"][0]["text"] == "b"
        assert log.still_runs("node-long")
        node.communicate(timeout=60)
    assert node.returncode == 0
    assert log.end_of("node-long")["ended"] == "client_gone"
