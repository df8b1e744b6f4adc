"""The documents in docs/formats say what the code does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from model.checkpoints import CONFIG_TEXT, SUCC_HEADER, write_model
from tinyllm.model import ModelConfig, errors, load_model, read_config, write_config
from tinyllm.model.bigram import CONFIG

FORMATS = Path(__file__).parent.parent.parent / "docs" / "formats"
SCHEMA: dict[str, Any] = json.loads((FORMATS / "config.schema.json").read_text())
SAFETENSORS = (FORMATS / "safetensors.md").read_text()


def test_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    ("config", "valid"),
    [
        ({}, False),
        ([], False),
        ({"tl_arch": "bigram", "tl_tokenizer": "bytes", "vocab_size": 256}, True),
        ({"tl_arch": "bigram", "tl_tokenizer": "bytes", "vocab_size": 256, "x": [None]}, True),
        ({"tl_arch": "llama", "tl_tokenizer": "bytes", "vocab_size": 256}, False),
        ({"tl_arch": None, "tl_tokenizer": "bytes", "vocab_size": 256}, False),
        ({"tl_arch": "bigram", "tl_tokenizer": "bpe", "vocab_size": 256}, False),
        ({"tl_arch": "bigram", "vocab_size": 256}, False),
        ({"tl_arch": "bigram", "tl_tokenizer": "bytes"}, False),
        ({"tl_arch": "bigram", "tl_tokenizer": "bytes", "vocab_size": 255}, False),
        ({"tl_arch": "bigram", "tl_tokenizer": "bytes", "vocab_size": True}, False),
        ({"tl_arch": "bigram", "tl_tokenizer": "bytes", "vocab_size": "256"}, False),
    ],
)
def test_schema_and_reader_agree(tmp_path: Path, config: Any, valid: bool) -> None:
    assert jsonschema.Draft202012Validator(SCHEMA).is_valid(config) == valid
    write_model(tmp_path / "m", config=json.dumps(config))
    if valid:
        load_model(tmp_path / "m")
    else:
        with pytest.raises(errors.ConfigError):
            load_model(tmp_path / "m")


def test_what_is_written_is_read_and_fits_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    write_config(path, CONFIG)
    assert read_config(path) == CONFIG
    assert path.read_text() == CONFIG_TEXT.replace(" ", "") + "\n"
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(path.read_text()))
    write_config(path, ModelConfig("llama", "bpe", 32000))
    assert read_config(path) == ModelConfig("llama", "bpe", 32000)


def test_every_rule_of_the_format_is_documented() -> None:
    documented = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", SAFETENSORS, re.MULTILINE))
    rules = {each.__name__: each.rule for each in errors.SafetensorsError.__subclasses__()}
    assert {
        name: rule.replace("\\", "") for name, rule in documented.items() if name in rules
    } == rules


def test_documented_header_is_the_one_of_the_worked_example() -> None:
    lines = [line.strip() for line in SAFETENSORS.splitlines() if line.startswith("    ")]
    header = "".join(line for line in lines if line.startswith(('{"__m', '"bigram')))
    assert header.encode() == SUCC_HEADER
    assert len(SUCC_HEADER) == 113
