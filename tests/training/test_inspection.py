"""`tinyllm inspect`: the tables, worked out by hand, and what it refuses."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tinyllm.__main__ import main
from tinyllm.training.bigram import train_bigram
from tinyllm.training.inspection import (
    byte_text,
    entropy_bits,
    likeliest,
    probabilities,
    ranges_text,
)
from tinyllm.training.staging import Staging

NEVER = -math.inf


def row(**logits: float) -> list[float]:
    """Logits for the bytes named by their characters, -inf for all others."""
    values = [NEVER] * 256
    for name, logit in logits.items():
        values[ord(name)] = logit
    return values


@pytest.fixture
def model_dir(tmp_path: Path) -> Path:
    """After "a" come "b" and "c", 3 to 1; after "b" each byte alike, but "d" twice as often."""
    counts = np.zeros((256, 256), dtype=np.int64)
    counts[ord("a"), [ord("b"), ord("c")]] = 3_000_000, 1_000_000
    counts[ord("b")] = 1
    counts[ord("b"), ord("d")] = 2
    with Staging(tmp_path / "model") as staging:
        staging.publish(train_bigram(counts, smoothing=1e-6))
    return tmp_path / "model"


def inspect(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> list[str]:
    assert main(["inspect", *map(str, arguments)]) == 0
    return capsys.readouterr().out.splitlines()


def test_summary(model_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect(capsys, model_dir) == [
        f"{model_dir}/model.safetensors: 262,272 bytes",
        "  format: tinyllm",
        "  bigram.weight: F32 [256, 256]",
        "",
        "after        entropy  likeliest next bytes",
        " 97 'a'        0.811  'b' 75.0%  'c' 25.0%",
        " 98 'b'        7.998  'd' 0.8%",
        "",
        "254 rows are uniform, 8 bits: 0-96, 99-255",
    ]


@pytest.mark.parametrize("name", ["a", "97", "0x61", "0X61"])
def test_what_follows_a_byte(
    model_dir: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert inspect(capsys, model_dir, "--byte", name, "--top", "3") == [
        "after 'a' (byte 97): entropy 0.811 bits, like a choice among 1.8",
        "",
        "rank  next         probability    together",
        "   1   98 'b'         75.0000%    75.0000%",
        "   2   99 'c'         25.0000%   100.0000%",
        "   3    0 '\\x00'       0.0000%   100.0000%",
    ]


@pytest.mark.parametrize(
    ("name", "byte"),
    [
        ("7", 55),
        ("07", 7),
        ("10", 10),
        (r"\n", 10),
        (r"\t", 9),
        (r"\0", 0),
        (" ", 32),
        ("255", 255),
    ],
)
def test_bytes_can_be_named_in_several_ways(
    model_dir: Path, capsys: pytest.CaptureFixture[str], name: str, byte: int
) -> None:
    assert f"(byte {byte}): " in inspect(capsys, model_dir, "--byte", name)[0]


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--byte", "256"], id="too large"),
        pytest.param(["--byte", "-1"], id="negative"),
        pytest.param(["--byte", "é"], id="two bytes"),
        pytest.param(["--byte", ""], id="nothing"),
        pytest.param(["--byte", "0xg"], id="no number"),
        pytest.param(["--top", "0"], id="no byte"),
        pytest.param(["--top", "257"], id="more than there are"),
    ],
)
def test_wrong_usage_is_exit_2(model_dir: Path, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["inspect", str(model_dir), *arguments])
    assert raised.value.code == 2


def test_a_folder_without_a_model_is_one_line_and_exit_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"tinyllm inspect: {tmp_path}/config.json: ")
    assert captured.err.count("\n") == 1


def test_a_broken_checkpoint_is_one_line_and_exit_1(
    model_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open(model_dir / "model.safetensors", "ab") as file:
        file.write(b"x")
    assert main(["inspect", str(model_dir)]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"tinyllm inspect: {model_dir}/model.safetensors: ")
    assert error.count("\n") == 1


def test_a_reader_that_has_enough_is_no_error_message(model_dir: Path) -> None:
    command = [sys.executable, "-m", "tinyllm", "inspect", str(model_dir)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.close()
        assert run.stderr.read() == b""
        assert run.wait() == 1


def test_a_path_that_is_no_text_can_be_printed(
    model_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = Path(os.fsdecode(os.fsencode(model_dir) + b"-\xff\n$\xc3\xa9$"))
    model_dir.rename(odd)
    lines = inspect(capsys, odd, "--plot", odd / "plot.png")
    assert lines[0] == f"{model_dir}-\\udcff\\n$\xe9$/model.safetensors: 262,272 bytes"
    assert (odd / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_a_terminal_without_the_characters_gets_escapes(model_dir: Path) -> None:
    odd = model_dir.with_name("modèle")
    model_dir.rename(odd)
    command = [sys.executable, "-m", "tinyllm", "inspect", str(odd)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii:strict"}
    run = subprocess.run(command, capture_output=True, env=environment, check=True)
    assert run.stdout.startswith(f"{model_dir.parent}/mod\\xe8le/model.safetensors: ".encode())


@pytest.mark.parametrize(
    ("logits", "expected"),
    [
        pytest.param(row(a=0.0, b=0.0), {"a": 0.5, "b": 0.5}, id="two alike"),
        pytest.param(row(a=1000.0, b=1000.0 + math.log(3)), {"a": 0.25, "b": 0.75}, id="large"),
        pytest.param(row(a=math.inf, b=math.inf, c=5.0), {"a": 0.5, "b": 0.5}, id="+inf shares"),
        pytest.param(row(a=math.nan, b=1.0), {"b": 1.0}, id="NaN is skipped"),
    ],
)
def test_logits_are_read_as_decoding_does(logits: list[float], expected: dict[str, float]) -> None:
    found = probabilities(logits)
    assert {chr(i): p for i, p in enumerate(found) if p > 0} == pytest.approx(expected)


@pytest.mark.parametrize("logits", [[NEVER] * 256, [math.nan] * 256], ids=["-inf", "NaN"])
def test_a_row_without_a_usable_logit_has_no_probabilities(logits: list[float]) -> None:
    found = probabilities(logits)
    assert np.isnan(found).all()
    assert math.isnan(entropy_bits(found))


@pytest.mark.parametrize(
    ("logits", "bits"),
    [
        pytest.param([0.0] * 256, 8.0, id="uniform"),
        pytest.param(row(a=0.0), 0.0, id="certain"),
        pytest.param(row(a=0.0, b=0.0, c=0.0, d=0.0), 2.0, id="one of four"),
    ],
)
def test_entropy_by_hand(logits: list[float], bits: float) -> None:
    assert entropy_bits(probabilities(logits)) == pytest.approx(bits)


def test_of_equals_the_lowest_is_first() -> None:
    assert likeliest(probabilities(row(z=1.0, a=1.0, m=2.0)))[:3] == [ord("m"), ord("a"), ord("z")]


def test_bytes_and_ranges_as_text() -> None:
    shown = [byte_text(byte) for byte in (0, 10, 32, 39, 65, 127, 128, 255)]
    assert shown == [r"'\x00'", r"'\n'", "' '", '"\'"', "'A'", r"'\x7f'", "0x80", "0xff"]
    assert ranges_text([0, 1, 2, 5, 7, 8]) == "0-2, 5, 7-8"
    assert ranges_text([]) == ""
