"""From a model directory to a model: config.json's tl_arch picks the class.

A new architecture is one new file and one line in the table.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tinyllm.model.base import LanguageModel
from tinyllm.model.bigram import Bigram
from tinyllm.model.config import read_config
from tinyllm.model.errors import ConfigError

ARCHITECTURES: dict[str, Callable[[str | os.PathLike[str]], LanguageModel]] = {
    "bigram": Bigram.load,
}


def load_model(model_dir: str | os.PathLike[str]) -> LanguageModel:
    """Return the model in a directory; raise the CheckpointError that says what is wrong."""
    config_file = Path(model_dir) / "config.json"
    arch = read_config(config_file).tl_arch
    if arch not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise ConfigError(f"tl_arch is {arch!r}, known are: {known}", file=str(config_file))
    return ARCHITECTURES[arch](model_dir)
