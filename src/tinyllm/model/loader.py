"""From a model directory to a model: config.json's tl_arch picks the class.

A new architecture is one new file and one line in the table.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeAlias

from tinyllm.model.base import LanguageModel
from tinyllm.model.bigram import Bigram
from tinyllm.model.config import CONFIG_FILE, ModelConfig, read_config
from tinyllm.model.errors import ConfigError, shown

Loader: TypeAlias = Callable[[str | os.PathLike[str], ModelConfig], LanguageModel]

ARCHITECTURES: dict[str, Loader] = {
    "bigram": Bigram.load_configured,
}


def load_model(model_dir: str | os.PathLike[str]) -> LanguageModel:
    """Return the model in a directory; raise the CheckpointError that says what is wrong."""
    path = os.path.join(model_dir, CONFIG_FILE)
    config = read_config(path)
    loader = ARCHITECTURES.get(config.tl_arch)
    if loader is None:
        problem = f"tl_arch is {shown(repr(config.tl_arch))}, not one of {', '.join(ARCHITECTURES)}"
        raise ConfigError(problem, file=path)
    return loader(model_dir, config)
