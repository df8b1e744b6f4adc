"""README.md shows real output: its commands are run here, and what they print is compared.

The default text is part of CPython, so the model and its words belong to one version of it;
on others the shapes are compared and the words are not.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.processes import TlServe, run_command
from support.wire import exchange, post
from tinyllm.training import default_text

README = (Path(__file__).parents[2] / "README.md").read_text()
COUNTED = re.search(r"([\d,]+) bytes, [\d,]+ pairs", README)
VOLATILE = re.compile(r'"id":"cmpl-[0-9a-f]{32}"|"created":\d+')


def shown(start: str) -> tuple[str, str]:
    """Return the command in README.md that begins so, and the output below it."""
    match = re.search(rf"```console\n\$ ({re.escape(start)}[^\n]*)\n(.*?)```", README, re.DOTALL)
    assert match is not None, start
    return match[1], match[2]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The default model, and what training it printed."""
    out = tmp_path_factory.mktemp("readme") / "bigram"
    done = run_command("tinyllm", "train", "bigram", "--out", out)
    assert done.returncode == 0, done.stderr
    return out, done.stdout.decode()


@pytest.fixture(scope="module")
def server(trained: tuple[Path, str]) -> Iterator[TlServe]:
    with TlServe(trained[0], "--no-access-log") as running:
        yield running


@pytest.fixture(scope="module")
def same_text() -> bool:
    """Whether this Python ships the text that README.md was written with."""
    assert COUNTED is not None
    return len(default_text()) == int(COUNTED[1].replace(",", ""))


def curl_body(command: str) -> bytes:
    words = shlex.split(command)
    return words[words.index("-d") + 1].encode()


def stable(text: str) -> str:
    return VOLATILE.sub("", text.strip())


def shape(value: Any) -> Any:
    """A JSON value with its scalars replaced by their types."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    return [shape(item) for item in value] if isinstance(value, list) else type(value)


def test_the_plain_answer_is_real(server: TlServe, same_text: bool) -> None:
    command, output = shown("curl -s localhost")
    answer = exchange(server.address, post("/v1/completions", curl_body(command))).body.decode()
    assert shape(json.loads(answer)) == shape(json.loads(output))
    if same_text:
        assert stable(answer) == stable(output)


def test_the_stream_is_real(server: TlServe, same_text: bool) -> None:
    command, output = shown("curl -sN localhost")
    stream = exchange(server.address, post("/v1/completions", curl_body(command))).body.decode()
    assert stream.count("\n\n") == output.strip().count("\n\n") + 1
    if same_text:
        assert stable(stream) == stable(output)


def test_the_generated_text_is_real(trained: tuple[Path, str], same_text: bool) -> None:
    command, output = shown("tinyllm generate")
    words = shlex.split(command)[1:]
    words[words.index("--model-dir") + 1] = str(trained[0])
    done = run_command("tinyllm", *words)
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    assert len(text) == int(words[words.index("--max-tokens") + 1])
    if same_text:
        assert text.strip() == output.strip()


def test_the_training_report_is_real(trained: tuple[Path, str], same_text: bool) -> None:
    lines = re.findall(r"^(?:training|held-out) .*$", README, re.MULTILINE)
    assert len(lines) == 2
    for line in lines:
        assert line.split()[0] in trained[1]
        if same_text:
            assert line in trained[1]


def test_its_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (Path(__file__).parents[2] / target).exists(), target
