"""curl, the client that everyone tries first."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from clients.expected import GREEDY, LONG, TEXT
from support.accesslog import AccessLog
from support.processes import TlServe
from support.tools import require
from support.wire import Reply, parse_reply


@pytest.fixture(scope="module")
def url(server: TlServe) -> str:
    return f"{server.base_url}/v1/completions"


def curl(*arguments: str) -> bytes:
    command = [require("curl"), "--silent", "--show-error", "--max-time", "60", *arguments]
    ran = subprocess.run(command, capture_output=True, check=True, timeout=90)
    assert ran.stderr == b""
    return ran.stdout


def reply(*arguments: str) -> Reply:
    return parse_reply(curl("--include", *arguments))


def test_a_plain_completion(url: str) -> None:
    answer = reply(url, "-d", json.dumps(GREEDY))
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json()["choices"][0]["text"] == TEXT


def test_curl_n_reads_the_stream(url: str) -> None:
    answer = reply("-N", url, "-d", json.dumps({**GREEDY, "stream": True}))
    assert answer.headers["content-type"] == "text/event-stream"
    *events, done = answer.events()
    assert "".join(json.loads(event)["choices"][0]["text"] for event in events) == TEXT
    assert done == "[DONE]"


def test_the_first_event_arrives_while_the_stream_runs(
    url: str, log: AccessLog, tmp_path: Path
) -> None:
    body = tmp_path / "body.json"
    body.write_text(json.dumps({**LONG, "stream": True}))
    arguments = ["-sN", url, "-H", "X-Request-Id: curl-long", "-d", f"@{body}"]
    with subprocess.Popen([require("curl"), *arguments], stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        event = running.stdout.readline().removeprefix(b"data: ")
        assert json.loads(event)["choices"][0]["text"] == "b"
        assert log.still_runs("curl-long")
        running.terminate()
    assert log.end_of("curl-long")["ended"] == "client_gone"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["-X", "POST"], 411, "a POST says its body's length with Content-Length"),
        (["-H", "Transfer-Encoding: chunked", "-d", "{}"], 501, "transfer coding is not read"),
        (["-I"], 405, ""),
        (["-X", "DELETE"], 405, "/v1/completions does not allow DELETE; it allows POST"),
        (["--http1.0", "-d", '{"model":"m"}'], 400, "prompt must be a non-empty string"),
        (["-H", "Host:", "-d", "{}"], 400, "an HTTP/1.1 request has a Host field"),
    ],
    ids=["no body", "chunked", "HEAD", "DELETE", "HTTP/1.0", "no Host"],
)
def test_errors_reach_curl(url: str, arguments: list[str], status: int, message: str) -> None:
    answer = reply(url, *arguments)
    assert answer.status == status
    assert message in answer.body.decode()


def test_a_body_over_the_limit_gets_its_answer_and_no_reset(url: str, tmp_path: Path) -> None:
    """curl sends `Expect: 100-continue` and must learn that its body is not wanted."""
    body = tmp_path / "body"
    body.write_bytes(b"x" * (1024 * 1024 + 1))
    answer = reply(url, "--data-binary", f"@{body}")
    assert answer.status == 413
    assert answer.json()["error"]["message"] == "Content-Length is over 1048576 bytes"


def test_a_body_of_the_limit_is_read_after_100_continue(url: str, tmp_path: Path) -> None:
    request: dict[str, Any] = {**GREEDY, "padding": ""}
    request["padding"] = "x" * (1024 * 1024 - len(json.dumps(request)))
    body = tmp_path / "body"
    body.write_text(json.dumps(request))
    assert body.stat().st_size == 1024 * 1024
    continued, answer = curl(
        "-i", "-H", "Expect: 100-continue", url, "--data-binary", f"@{body}"
    ).split(b"\r\n\r\n", 1)
    assert continued == b"HTTP/1.1 100 Continue"
    assert parse_reply(answer).json()["choices"][0]["text"] == TEXT
