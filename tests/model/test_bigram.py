"""The byte bigram: which row is whose, and which model directories are refused."""

from __future__ import annotations

import math
import os
import struct
from array import array
from pathlib import Path

import pytest

from model.checkpoints import (
    CONFIG_TEXT,
    SUCC_HEADER,
    safetensors_file,
    succ_file,
    succ_weight,
    write_model,
)
from tinyllm.model import Bigram, CheckpointError, errors, load_model, read_bigram_weight


def test_bigram_logits_select_the_weight_row() -> None:
    model = Bigram.from_weight([float(i) for i in range(65536)])
    for prev in range(256):
        assert model.logits(prev) == [256.0 * prev + j for j in range(256)]


def test_logits_are_a_copy() -> None:
    model = Bigram.from_weight(succ_weight())
    model.logits(97)[98] = -1.0
    assert model.logits(97)[98] == 2.0


@pytest.mark.parametrize("prev", [-1, -256, 256, 1000])
def test_logits_need_a_byte(prev: int) -> None:
    with pytest.raises(ValueError, match=f"a byte is 0 to 255, not {prev}"):
        Bigram.from_weight(succ_weight()).logits(prev)


def test_state_is_the_last_byte() -> None:
    model = Bigram.from_weight(succ_weight())
    assert (model.vocab_size, model.context_length) == (256, 1)
    assert model.start(b"xya") == 97
    assert model.advance(97, 98) == 98
    with pytest.raises(ValueError, match="the prompt is empty"):
        model.start(b"")


@pytest.mark.parametrize("count", [0, 1, 65535, 65537])
def test_weight_has_256_times_256_values(count: int) -> None:
    with pytest.raises(CheckpointError, match=f"{count} values, not 65536"):
        Bigram.from_weight([0.0] * count)


def test_weight_values_become_float32() -> None:
    values = [0.1, 1e-45, math.inf, -math.inf, -0.0, math.nan]
    row = Bigram.from_weight(values + [0.0] * (65536 - len(values))).logits(0)
    assert struct.pack("<6f", *row[:6]) == struct.pack("<6f", *values)
    with pytest.raises(CheckpointError, match="does not fit float32"):
        Bigram.from_weight([1e39] + [0.0] * 65535)


def test_loads_hand_written_checkpoint(tmp_path: Path) -> None:
    for model in (Bigram.load(write_model(tmp_path / "m")), load_model(tmp_path / "m")):
        assert model.logits(97)[98] == 2.0
        assert model.logits(255)[0] == 2.0
        for prev in range(256):
            row = model.logits(prev)
            assert row[(prev + 1) % 256] == 2.0
            assert sum(row) == 2.0


def test_weights_keep_their_bits() -> None:
    patterns = array("I", range(0, 65536 * 65537, 65537))
    weight = read_bigram_weight(succ_file()[:128] + patterns.tobytes())
    assert weight.tobytes() == patterns.tobytes()


HEADER = SUCC_HEADER.decode()
BIAS = '{"dtype":"F32","shape":[1],"data_offsets":[262144,262148]}'
F16_FILE = safetensors_file(HEADER.replace("F32", "F16").replace("262144", "131072"), bytes(131072))
LLAMA = '{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 256}'
BAD_WEIGHTS: list[tuple[str, bytes, type[CheckpointError], str]] = [
    ("F16", F16_FILE, errors.UnsupportedDtype, '"F16"'),
    (
        "wrong shape",
        safetensors_file(HEADER.replace("[256,256]", "[128,512]"), bytes(262144)),
        errors.WrongShape,
        r"shape is \[128, 512\] \(bigram.weight must have the shape \[256, 256\]\)",
    ),
    ("short data", succ_file()[:-1], errors.DataPastEnd, "byte 262272, the file has 262271"),
    ("long data", succ_file() + b"\0", errors.TrailingBytes, "byte 262272, the file has 262273"),
    ("huge header", b"\xff" * 8 + succ_file()[8:], errors.HeaderTooLong, "18446744073709551615"),
    (
        "another name",
        safetensors_file(HEADER.replace("bigram.", "unigram."), bytes(262144)),
        errors.MissingTensor,
        "the file holds 'unigram.weight'",
    ),
    ("no tensor", safetensors_file("{}", b""), errors.MissingTensor, "the file holds no tensor"),
    (
        "a second tensor",
        safetensors_file(
            HEADER[:-1]
            + ',"bigram.bias":{"dtype":"F32","shape":[1],"data_offsets":[262144,262148]}}',
            bytes(262148),
        ),
        errors.UnexpectedTensor,
        "tensor 'bigram.bias'",
    ),
]
BAD_CONFIGS = [
    ("llama", LLAMA, "tl_arch is missing"),
    ("unknown tl_arch", CONFIG_TEXT.replace("bigram", "llama"), "tl_arch is 'llama', not one of"),
    (
        "missing tl_tokenizer",
        '{"tl_arch": "bigram", "vocab_size": 256}',
        "tl_tokenizer is missing",
    ),
    (
        "another tokenizer",
        CONFIG_TEXT.replace("bytes", "bpe"),
        "tl_tokenizer is 'bpe', a bigram has 'bytes'",
    ),
    (
        "another vocabulary",
        CONFIG_TEXT.replace("256", "257"),
        "vocab_size is 257, a bigram has 256",
    ),
    (
        "vocabulary with a fraction",
        CONFIG_TEXT.replace("256", "256.0"),
        "vocab_size is 256.0, not an integer",
    ),
    (
        "vocabulary a boolean",
        CONFIG_TEXT.replace("256", "true"),
        "vocab_size is true, not an integer",
    ),
    ("vocabulary null", CONFIG_TEXT.replace("256", "null"), "vocab_size is null, not an integer"),
    ("arch no string", CONFIG_TEXT.replace('"bigram"', "[1]"), "tl_arch is [1], not a string"),
    ("empty file", "", "it cannot be read: Expecting value at line 1 column 1"),
    ("not JSON", "{", "it cannot be read"),
    ("an array", "[]", "it is no JSON object"),
    (
        "field twice",
        CONFIG_TEXT.replace("{", '{"tl_arch": "llama", '),
        'the key "tl_arch" stands twice',
    ),
    ("too large", CONFIG_TEXT + " " * 2**20, "it has 1048641 bytes, at most 1048576 are read"),
    ("too deep", "[" * 100_000, "nested over 128 levels"),
]


@pytest.mark.parametrize(
    ("weights", "rule", "problem"),
    [row[1:] for row in BAD_WEIGHTS],
    ids=[r[0] for r in BAD_WEIGHTS],
)
def test_rejects_bad_checkpoints(
    tmp_path: Path, weights: bytes, rule: type[CheckpointError], problem: str
) -> None:
    with pytest.raises(rule, match=problem) as caught:
        load_model(write_model(tmp_path / "m", weights=weights))
    assert caught.value.file == str(tmp_path / "m" / "model.safetensors")
    with pytest.raises(rule, match=problem):
        read_bigram_weight(weights)


@pytest.mark.parametrize(
    ("config", "problem"), [row[1:] for row in BAD_CONFIGS], ids=[row[0] for row in BAD_CONFIGS]
)
def test_rejects_bad_configs(tmp_path: Path, config: str, problem: str) -> None:
    with pytest.raises(errors.ConfigError) as caught:
        load_model(write_model(tmp_path / "m", config=config))
    assert problem in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path / 'm' / 'config.json'}: ")


def test_bigram_load_refuses_another_architecture(tmp_path: Path) -> None:
    config = CONFIG_TEXT.replace("bigram", "llama")
    with pytest.raises(errors.ConfigError, match="tl_arch is 'llama', a bigram has 'bigram'"):
        Bigram.load(write_model(tmp_path / "m", config=config))


def test_other_fields_of_config_are_ignored(tmp_path: Path) -> None:
    config = CONFIG_TEXT.replace("{", '{"model_type": null, "nested": {"a": [1, 2.5]}, ')
    assert load_model(write_model(tmp_path / "m", config=config)).logits(0)[1] == 2.0


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors"])
def test_missing_file_is_named(tmp_path: Path, missing: str) -> None:
    (write_model(tmp_path / "m") / missing).unlink()
    with pytest.raises(errors.UnreadableFile, match="No such file or directory") as caught:
        load_model(tmp_path / "m")
    assert caught.value.file == str(tmp_path / "m" / missing)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
@pytest.mark.parametrize("kind", ["directory", "fifo"])
def test_only_regular_files_are_read(tmp_path: Path, name: str, kind: str) -> None:
    path = write_model(tmp_path / "m") / name
    path.unlink()
    path.mkdir() if kind == "directory" else os.mkfifo(path)
    with pytest.raises(errors.UnreadableFile, match="it is not a regular file"):
        load_model(tmp_path / "m")
