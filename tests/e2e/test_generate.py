"""One text whoever gives it: the stream, the plain answer, and `tinyllm generate`.

The model is the one that `tinyllm serve` would train, on real text, so all of a row's ids are
possible, those beyond ASCII too.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.processes import BIN, STARTED, TlServe, run_command
from support.wire import Address, Reply, complete
from tinyllm.__main__ import main


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = tmp_path_factory.mktemp("trained") / "bigram"
    done = run_command("tinyllm", "train", "bigram", "--out", model)
    assert done.returncode == 0, done.stderr
    return model


@pytest.fixture(scope="module")
def address(trained: Path) -> Iterator[Address]:
    with TlServe(trained, "--no-access-log") as server:
        yield server.address


def plain_text(reply: Reply) -> str:
    return str(reply.json()["choices"][0]["text"])


def streamed_text(reply: Reply) -> str:
    *events, done = reply.events()
    assert done == "[DONE]"
    return "".join(json.loads(event)["choices"][0]["text"] for event in events)


def arguments(model: Path, asked: dict[str, Any]) -> list[str]:
    """The command's arguments for a request's fields."""
    options = [f"--{name.replace('_', '-')}={value}" for name, value in asked.items()]
    return ["generate", f"--model-dir={model}", *options]


def generated(capture: pytest.MonkeyPatch, model: Path, asked: dict[str, Any]) -> bytes:
    """What the command prints, run in this process."""
    out = io.BytesIO()
    with capture.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(out, write_through=True))
        assert main(arguments(model, asked)) == 0
        return out.getvalue()


SEEDED = [
    {"prompt": prompt, "max_tokens": 100 + 31 * seed, "temperature": temperature, "seed": seed}
    for seed in range(50)
    for prompt in [("Once", "h\u00e9", "\U0001f600", "\n", "\x00", "The ")[seed % 6]]
    for temperature in [(0.1, 0.8, 1, 2)[seed % 4]]
]


def test_generate_gives_the_server_s_text_for_50_seeds(
    trained: Path, address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = set()
    for asked in SEEDED:
        plain = plain_text(complete(address, **asked))
        assert streamed_text(complete(address, **asked, stream=True)) == plain
        assert generated(monkeypatch, trained, asked).decode() == plain
        texts.add(plain)
    assert len(texts) == 50


@pytest.mark.parametrize("prompt", ["Once", "q", "\u00e9"])
def test_generate_gives_the_server_s_text_when_greedy(
    trained: Path, address: Address, monkeypatch: pytest.MonkeyPatch, prompt: str
) -> None:
    asked = {"prompt": prompt, "max_tokens": 300, "temperature": 0}
    plain = plain_text(complete(address, **asked))
    assert streamed_text(complete(address, **asked, stream=True)) == plain
    assert generated(monkeypatch, trained, asked).decode() == plain


def test_the_process_prints_the_same_bytes_whatever_its_locale(
    trained: Path, address: Address
) -> None:
    asked = {"prompt": "Once", "max_tokens": 500, "temperature": 2, "seed": 5}
    done = subprocess.run(
        [BIN / "tinyllm", *arguments(trained, asked)],
        capture_output=True,
        env={**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == plain_text(complete(address, **asked))


def test_a_reader_that_has_had_enough_is_no_failure(trained: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    asked = {"prompt": "Once", "max_tokens": 4096, "temperature": 1}
    done = subprocess.run(
        [BIN / "tinyllm", *arguments(trained, asked)], stdout=writer, stderr=subprocess.PIPE
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_full_disk_is_one_line_and_1(trained: Path) -> None:
    asked = {"prompt": "Once", "max_tokens": 4096, "temperature": 1}
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [BIN / "tinyllm", *arguments(trained, asked)], stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 1
    assert done.stderr == b"tinyllm generate: [Errno 28] No space left on device\n"


def serve_default(cache: Path) -> tuple[str, str]:
    """Run `tinyllm serve` without a model until it answers; return its first line and stderr."""
    with subprocess.Popen(
        [BIN / "tinyllm", "serve", "--host", "127.0.0.1", "--port", "0", "--health-port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        match = STARTED.match(line)
        assert match is not None, process.communicate()[1]
        reply = complete((match[1], int(match[2])), prompt="Once", max_tokens=5)
        assert reply.status == 200
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=20)
        assert process.returncode == 0
    return line, err


def test_serve_trains_a_default_model_once(tmp_path: Path, trained: Path) -> None:
    folder = tmp_path / "tinyllm" / "bigram"
    _, first = serve_default(tmp_path)
    assert f"training the default model into {folder}" in first
    weights = folder / "model.safetensors"
    assert weights.read_bytes() == (trained / "model.safetensors").read_bytes()
    written = weights.stat().st_mtime_ns
    _, second = serve_default(tmp_path)
    assert second == ""
    assert weights.stat().st_mtime_ns == written


def test_a_cache_folder_that_cannot_be_written_is_one_line_and_1(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("not a folder")
    done = subprocess.run(
        [BIN / "tinyllm", "serve", "--port", "0", "--health-port", "0"],
        capture_output=True,
        text=True,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    *_, last = done.stderr.splitlines()
    assert done.returncode == 1
    assert last.startswith("tl-serve: cannot write a model: ")
    assert "Traceback" not in done.stderr
