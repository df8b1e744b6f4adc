"""The self-test's model: a byte bigram made so that every kind of text comes out of it.

Greedy, letters follow letters, and now and then a character of two, three or four bytes; some
rows have a tie. At a high temperature any byte can come, so that controls, quotes and broken
UTF-8 are met within a few dozen tokens.
"""

from __future__ import annotations

import array
import itertools
import json
import struct
from pathlib import Path
from typing import Final

LIKELY: Final = 4.0

_CYCLES: Final = (
    "abcdefghijklmnopqrstuvwxyz é".encode(),
    "THE 日".encode(),
    "😀".encode(),
    b"0123456789\n",
    b"!~",
)
_TIED: Final = (ord("5"), ord("m"))  # their rows have a second, higher id with the largest logit


def weights() -> array.array[float]:
    """Return the 256 * 256 logits, row by row."""
    table = array.array("f", bytes(4 * 256 * 256))
    for cycle in _CYCLES:
        for current, following in itertools.pairwise(cycle + cycle[:1]):
            table[256 * current + following] = LIKELY
    for byte in _TIED:
        table[256 * byte + 0xF0] = LIKELY
    return table


def write_checkpoint(directory: Path) -> None:
    """Write the model as a model directory."""
    entry = {"dtype": "F32", "shape": [256, 256], "data_offsets": [0, 4 * 256 * 256]}
    header = json.dumps({"__metadata__": {"format": "tinyllm"}, "bigram.weight": entry}).encode()
    header += b" " * (-len(header) % 8)
    data = struct.pack("<Q", len(header)) + header + weights().tobytes()
    (directory / "model.safetensors").write_bytes(data)
    config = '{"tl_arch": "bigram", "tl_tokenizer": "bytes", "vocab_size": 256}\n'
    (directory / "config.json").write_text(config)
