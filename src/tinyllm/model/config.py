"""config.json: which architecture and which tokenizer a model directory holds.

Three fields decide, and each must have the one value that is implemented; other fields are
ignored, since tools add their own. docs/formats/config.schema.json says the same as a schema.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from tinyllm.model.errors import ConfigError, shown
from tinyllm.model.source import FileSource, Source
from tinyllm.wire.jsontext import Json, JsonError, dump_json, parse_json

CONFIG_FILE = "config.json"
MAX_CONFIG_BYTES = 1024 * 1024  # three fields and a tool's own; a larger file is none of ours


class ModelConfig(NamedTuple):
    """The fields of config.json that decide how a model is read."""

    tl_arch: str
    tl_tokenizer: str
    vocab_size: int


def read_config(path: str | os.PathLike[str]) -> ModelConfig:
    """Read config.json at `path`; raise ConfigError (or another CheckpointError)."""
    with FileSource(path) as source:
        config = parse_config(source)
        source.check_unchanged()
    return config


def parse_config(source: Source) -> ModelConfig:
    """Return the configuration in a source's bytes; raise ConfigError."""
    if source.length > MAX_CONFIG_BYTES:
        problem = f"it has {source.length} bytes, at most {MAX_CONFIG_BYTES} are read"
        raise ConfigError(problem, file=source.name)
    try:
        fields = parse_json(bytes(source.read(0, source.length)), reject_duplicates=True)
    except JsonError as error:
        raise ConfigError(f"it cannot be read: {error}", file=source.name) from error
    if not isinstance(fields, dict):
        raise ConfigError("it is no JSON object", file=source.name)
    return ModelConfig(
        tl_arch=_text(fields, "tl_arch", source.name),
        tl_tokenizer=_text(fields, "tl_tokenizer", source.name),
        vocab_size=_count(fields, "vocab_size", source.name),
    )


def _text(fields: dict[str, Json], key: str, file: str) -> str:
    """Return a field that must be a string."""
    value = _field(fields, key, file)
    if not isinstance(value, str):
        raise ConfigError(f"{key} is {shown(dump_json(value))}, not a string", file=file)
    return value


def _count(fields: dict[str, Json], key: str, file: str) -> int:
    """Return a field that must be an integer; true and 256.0 are none."""
    value = _field(fields, key, file)
    if type(value) is not int:
        raise ConfigError(f"{key} is {shown(dump_json(value))}, not an integer", file=file)
    return value


def _field(fields: dict[str, Json], key: str, file: str) -> Json:
    """Return a field that must be there."""
    if key not in fields:
        raise ConfigError(f"{key} is missing", file=file)
    return fields[key]


def write_config(path: str | os.PathLike[str], config: ModelConfig) -> None:
    """Write config.json; OSError when that fails."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(dump_json(config._asdict()) + "\n")
