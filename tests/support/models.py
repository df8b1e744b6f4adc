"""Small checkpoints with known behaviour, written by hand (engine spec, section 3)."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

CONFIG = {"tl_arch": "bigram", "tl_tokenizer": "bytes", "vocab_size": 256}
HEADER = (
    '{"__metadata__":{"format":"tinyllm"},'
    '"bigram.weight":{"dtype":"F32","shape":[256,256],"data_offsets":[0,262144]}}'
)


def write_model(directory: Path, logit: Callable[[int, int], float]) -> Path:
    """Write a bigram checkpoint; the function gives the logit of `after` following `before`."""
    directory.mkdir(parents=True, exist_ok=True)
    header = HEADER.encode().ljust(120)
    values = [logit(before, after) for before in range(256) for after in range(256)]
    data = struct.pack("<Q", len(header)) + header + struct.pack("<65536f", *values)
    (directory / "model.safetensors").write_bytes(data)
    (directory / "config.json").write_text(json.dumps(CONFIG))
    return directory


def succ(before: int, after: int) -> float:
    """The next byte value is the likeliest: after `a` comes `b` (the specification's model)."""
    return 2.0 if after == (before + 1) % 256 else 0.0


def utf8(before: int, after: int) -> float:
    """After `x` come C3 A9 FF, then `x` again: one whole character and one broken byte."""
    follows = {ord("x"): 0xC3, 0xC3: 0xA9, 0xA9: 0xFF, 0xFF: ord("x")}
    return 9.0 if follows.get(before, ord("x")) == after else 0.0


def nul(before: int, after: int) -> float:
    """Every byte is followed by NUL, which JSON must escape."""
    return 5.0 if after == 0 else 0.0


def broken_after_a(before: int, after: int) -> float:
    """As succ, but the row of `c` has no usable logit."""
    return float("nan") if before == ord("c") else succ(before, after)
