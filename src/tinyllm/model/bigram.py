"""A byte bigram: the next byte's logits are one row of a 256 x 256 matrix, picked by the last.

Multiplying a one-hot vector by the matrix would select the same row, every other term being an
exact zero; copying the row is that product bit for bit, and needs no arithmetic. The weights
stay in the float32 they were stored in: one `array`, no numpy, so that a server starts at once.
"""

from __future__ import annotations

import os
import struct
import sys
from array import array
from collections.abc import Sequence

from tinyllm.model.config import CONFIG_FILE, ModelConfig, read_config
from tinyllm.model.errors import (
    CheckpointError,
    ConfigError,
    MissingTensor,
    UnexpectedTensor,
    WrongShape,
    shown,
)
from tinyllm.model.safetensors import read_index
from tinyllm.model.source import BufferSource, FileSource, Source

VOCAB_SIZE = 256  # one id per byte value
WEIGHT = "bigram.weight"
WEIGHT_FILE = "model.safetensors"
CONFIG = ModelConfig(tl_arch="bigram", tl_tokenizer="bytes", vocab_size=VOCAB_SIZE)


class Bigram:
    """A LanguageModel whose state is the previous byte."""

    vocab_size = VOCAB_SIZE
    context_length: int | None = 1

    def __init__(self, weight: array[float]) -> None:
        self._weight = weight

    @classmethod
    def from_weight(cls, weight: Sequence[float]) -> Bigram:
        """Make a model of 256 * 256 logits, row-major: row i holds the logits after byte i.

        Values are rounded to float32. Raises CheckpointError when their number is another, or
        a finite one is too large for float32.
        """
        count = VOCAB_SIZE * VOCAB_SIZE
        if len(weight) != count:
            raise CheckpointError(f"the weight has {len(weight)} values, not {count}")
        try:
            return cls(array("f", struct.pack(f"={count}f", *weight)))
        except (OverflowError, struct.error) as error:
            raise CheckpointError(f"the weight does not fit float32: {error}") from error

    @classmethod
    def load(cls, model_dir: str | os.PathLike[str]) -> Bigram:
        """Read config.json and model.safetensors of a model directory; CheckpointError."""
        return cls.load_configured(model_dir, read_config(os.path.join(model_dir, CONFIG_FILE)))

    @classmethod
    def load_configured(cls, model_dir: str | os.PathLike[str], config: ModelConfig) -> Bigram:
        """Read model.safetensors beside a config.json that was read already; CheckpointError."""
        check_config(config, os.path.join(model_dir, CONFIG_FILE))
        with FileSource(os.path.join(model_dir, WEIGHT_FILE)) as source:
            weight = _read_weight(source)
            source.check_unchanged()
        return cls(weight)

    def logits(self, prev: int) -> list[float]:
        """Return a copy of row `prev`: 256 float32 values, the logits after that byte."""
        if not 0 <= prev < VOCAB_SIZE:
            raise ValueError(f"a byte is 0 to 255, not {prev}")
        start = prev * VOCAB_SIZE
        return self._weight[start : start + VOCAB_SIZE].tolist()

    def start(self, prompt_ids: Sequence[int]) -> int:
        """Return the last byte of the prompt; ValueError unless it ends in one."""
        if not prompt_ids:
            raise ValueError("the prompt is empty")
        last = prompt_ids[-1]
        if not 0 <= last < VOCAB_SIZE:
            raise ValueError(f"a byte is 0 to 255, not {last}")
        return last

    def advance(self, _state: int, token_id: int) -> int:
        """Return the token itself: nothing before it matters."""
        return token_id


def read_bigram_weight(data: bytes | bytearray | memoryview) -> array[float]:
    """Return the 256 * 256 weights, row-major, of a safetensors file's bytes.

    Raises the SafetensorsError of the first broken rule, in file order.
    """
    return _read_weight(BufferSource(data))


def check_config(config: ModelConfig, file: str) -> None:
    """Raise ConfigError unless each field has the value of a bigram."""
    for key in ("tl_arch", "tl_tokenizer", "vocab_size"):
        found, expected = getattr(config, key), getattr(CONFIG, key)
        if found != expected:
            problem = f"{key} is {shown(repr(found))}, a bigram has {expected!r}"
            raise ConfigError(problem, file=file)


def _read_weight(source: Source) -> array[float]:
    """Check the file, then the rules of a bigram, and only then read the weights."""
    tensors = read_index(source).tensors
    info = tensors.get(WEIGHT)
    if info is None:
        held = ", ".join(map(repr, tensors)) or "no tensor"
        raise MissingTensor(f"the file holds {shown(held)}", file=source.name, tensor=WEIGHT)
    if info.shape != (VOCAB_SIZE, VOCAB_SIZE):
        raise WrongShape(f"shape is {list(info.shape)}", file=source.name, tensor=WEIGHT)
    if len(tensors) > 1:
        other = next(name for name in tensors if name != WEIGHT)
        raise UnexpectedTensor(f"{len(tensors)} tensors", file=source.name, tensor=other)
    weight = array("f", bytes(source.read(info.begin, info.end)))
    if sys.byteorder == "big":
        weight.byteswap()
    return weight
