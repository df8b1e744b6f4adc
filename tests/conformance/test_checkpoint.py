"""The runner's second reading of a model against the engine's own: they must agree to the byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tinyllm.conformance.checkpoint import Checkpoint, CheckpointUnreadable, text_pieces
from tinyllm.conformance.selftest.model import write_checkpoint
from tinyllm.decoding.sampling import TokenSampler
from tinyllm.decoding.utf8 import Utf8Stream
from tinyllm.model.loader import load_model

UTF8 = json.loads((Path(__file__).parents[1] / "data" / "utf8.json").read_text())["cases"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    write_checkpoint(path)
    return path


@pytest.mark.parametrize("temperature", [0.0, 1e-9, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("prompt", ["a", "é", "5", "\x00"])
def test_both_readings_generate_the_same_bytes(
    directory: Path, prompt: str, temperature: float
) -> None:
    ours, model = Checkpoint.load(directory), load_model(directory)
    for seed in (0, 42, 2**64 - 1):
        sampler = TokenSampler(model, list(prompt.encode()), temperature, seed)
        assert ours.generate(prompt, 300, temperature, seed) == bytes(sampler.take(300))


@pytest.mark.parametrize("case", UTF8, ids=lambda case: str(case["name"]))
def test_both_readings_cut_text_at_the_same_bytes(case: dict[str, object]) -> None:
    data = bytes.fromhex(str(case["bytes_hex"]))
    stream = Utf8Stream()
    expected = [stream.push(byte) for byte in data]
    if expected:
        expected[-1] += stream.finish()
    assert text_pieces(data) == expected


def test_ties_are_found_where_they_are(directory: Path) -> None:
    tied = Checkpoint.load(directory).tied_bytes()
    assert {ord("5"), ord("m")} <= set(tied)
    assert ord("a") not in tied


@pytest.mark.parametrize(
    "data",
    [b"", b"\x05\x00\x00\x00\x00\x00\x00\x00hello", b"\x02\x00\x00\x00\x00\x00\x00\x00{}"],
    ids=["empty", "no JSON", "no weight"],
)
def test_a_directory_that_holds_no_bigram_is_told(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(data)
    with pytest.raises(CheckpointUnreadable, match=str(tmp_path)):
        Checkpoint.load(tmp_path)
