"""The two load generators on a real server: what they count is what was sent."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks.harness import anchors

from support.processes import TlServe
from support.wire import complete

STREAM = {"model": "m", "prompt": "a", "max_tokens": 20, "stream": True}
PLAIN = {"model": "m", "prompt": "a", "max_tokens": 3, "temperature": 0}

Command = list[str]


@pytest.fixture(scope="module", params=["loadgen.rs", "loadgen.py"])
def generator(request: pytest.FixtureRequest) -> Command:
    if request.param == "loadgen.py":
        return [sys.executable, str(anchors.SOURCES / "loadgen.py")]
    try:
        return [str(anchors.rust_program("loadgen"))]
    except anchors.Missing as reason:
        pytest.skip(str(reason))


def run(generator: Command, *arguments: str) -> list[dict[str, Any]]:
    done = subprocess.run([*generator, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("keep", [[], ["keep"]], ids=["closed", "kept"])
def test_plain_requests_are_counted(
    generator: Command, succ_server: TlServe, keep: list[str]
) -> None:
    port = str(succ_server.address[1])
    (line,) = run(generator, "turns", port, "2", "0.2", json.dumps(PLAIN), *keep)
    assert line["errors"] == 0
    assert line["events"] == 0
    assert line["requests"] > 0
    assert line["requests_s"] == pytest.approx(line["requests"] / line["seconds"], rel=0.01)
    assert 0 < line["first_byte_p50_us"] <= line["total_p50_us"] <= line["total_p99_us"]


def test_a_stream_has_an_event_per_token_and_done(generator: Command, succ_server: TlServe) -> None:
    port = str(succ_server.address[1])
    (line,) = run(generator, "turns", port, "2", "0.2", json.dumps(STREAM))
    assert line["errors"] == 0
    assert line["events"] == 21 * line["requests"]


def test_refused_requests_are_errors(generator: Command, succ_server: TlServe) -> None:
    port = str(succ_server.address[1])
    (line,) = run(generator, "turns", port, "1", "0.1", '{"model": "m"}')
    assert line["errors"] > 0
    assert line["requests"] == 0


def test_each_stream_of_a_burst_has_its_own_seed_and_text(
    generator: Command, succ_server: TlServe
) -> None:
    body = json.dumps({**STREAM, "temperature": 2, "seed": 0}).replace(": 0}", ": {stream}}")
    lines = run(generator, "burst", str(succ_server.address[1]), "5", body)
    plain = [
        complete(succ_server.address, max_tokens=20, temperature=2, seed=seed).json()
        for seed in range(5)
    ]
    assert [line["stream"] for line in lines] == [0, 1, 2, 3, 4]
    assert [line["text"] for line in lines] == [answer["choices"][0]["text"] for answer in plain]
    assert {(line["status"], line["events"], line["done"]) for line in lines} == {(200, 21, True)}
    assert all(0 < line["first_us"] <= line["total_us"] for line in lines)


def test_a_probe_times_health_and_completions_by_turns(
    generator: Command, succ_server: TlServe
) -> None:
    (line,) = run(generator, "probe", str(succ_server.address[1]), "0.1", "10", json.dumps(PLAIN))
    assert line["errors"] == 0
    assert len(line["healthz_us"]) == len(line["plain_us"]) == 5


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([], id="nothing"),
        pytest.param(["turns", "80"], id="too few"),
        pytest.param(["turns", "80", "0", "1", "{}"], id="no connection"),
        pytest.param(["turns", "80", "1", "601", "{}"], id="too long"),
        pytest.param(["turns", "x", "1", "1", "{}"], id="no port"),
        pytest.param(["burst", "80", "10001", "{}"], id="too many"),
    ],
)
def test_bad_arguments_end_with_a_reason(generator: Command, arguments: list[str]) -> None:
    done = subprocess.run([*generator, *arguments], capture_output=True, text=True, timeout=20)
    assert done.returncode in (1, 2)
    assert done.stderr
    assert "Traceback" not in done.stderr


def test_sources_of_the_anchors_are_all_named() -> None:
    """What is built from our own sources is there to be built."""
    for name in ("loadgen.rs", "tracer.rs", "fastapi_peer.py", "floor.py", "sink.py"):
        assert (Path(anchors.SOURCES) / name).is_file()
