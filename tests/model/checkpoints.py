"""Checkpoints written by hand for the tests of this folder, byte by byte."""

from __future__ import annotations

import base64
import struct
from pathlib import Path
from typing import Any

from tinyllm.wire.jsontext import dump_json

DATA = Path(__file__).parent.parent / "data"

# The specification's worked example: the header's text has 113 bytes, so 7 spaces follow.
SUCC_HEADER = (
    b'{"__metadata__":{"format":"tinyllm"},'
    b'"bigram.weight":{"dtype":"F32","shape":[256,256],"data_offsets":[0,262144]}}'
)
CONFIG_TEXT = '{"tl_arch": "bigram", "tl_tokenizer": "bytes", "vocab_size": 256}'


def succ_weight() -> list[float]:
    """W[i][(i + 1) mod 256] = 2, everything else 0: the next byte value is the likeliest."""
    return [2.0 if j == (i + 1) % 256 else 0.0 for i in range(256) for j in range(256)]


def succ_file() -> bytes:
    """The succ model as the specification works it out: the data begins at byte 128."""
    return (
        (120).to_bytes(8, "little")
        + SUCC_HEADER
        + b" " * 7
        + struct.pack("<65536f", *succ_weight())
    )


def safetensors_file(header: str | dict[str, Any], data: bytes, length: int | None = None) -> bytes:
    """A file with this header, padded to a multiple of 8 when it is given as an object."""
    text = (header if isinstance(header, str) else dump_json(header)).encode()
    if not isinstance(header, str):
        text += b" " * (-len(text) % 8)
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def corpus_file(case: dict[str, Any]) -> bytes:
    """The file of a corpus case, built from its recipe (the corpus's own `how`)."""
    if "header_base64" in case:
        header: bytes = base64.b64decode(case["header_base64"])
    elif "header_repeat" in case:
        text, times = case["header_repeat"]
        header = text.encode() * times
    else:
        header = case["header"].encode()
    header += b" " * case.get("pad", 0)
    length: int = case.get("length_field", len(header))
    whole = length.to_bytes(8, "little") + header + bytes(case["data_len"])
    return whole[: case.get("truncate_to", len(whole))]


def write_model(directory: Path, config: str = CONFIG_TEXT, weights: bytes | None = None) -> Path:
    """A model directory of the succ model, with one of its files replaced if given."""
    directory.mkdir(exist_ok=True)
    (directory / "config.json").write_text(config)
    (directory / "model.safetensors").write_bytes(succ_file() if weights is None else weights)
    return directory
