"""Training: from text to a model folder, and a look into one.

Importing this package imports no numpy; the names below are fetched when they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinyllm.training.bigram import bits_per_byte, count_bigrams, train_bigram
    from tinyllm.training.errors import TrainingError
    from tinyllm.training.options import TrainOptions
    from tinyllm.training.python_docs import default_text
    from tinyllm.training.trainer import train_default_model, train_model

__all__ = [
    "TrainOptions",
    "TrainingError",
    "bits_per_byte",
    "count_bigrams",
    "default_text",
    "train_bigram",
    "train_default_model",
    "train_model",
]

_HOMES = {
    "TrainOptions": "options",
    "TrainingError": "errors",
    "bits_per_byte": "bigram",
    "count_bigrams": "bigram",
    "default_text": "python_docs",
    "train_bigram": "bigram",
    "train_default_model": "trainer",
    "train_model": "trainer",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401  (PEP 562: any of the names above)
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
