"""What the layer offers to others, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tinyllm.training


def test_every_public_name_is_there() -> None:
    for name in tinyllm.training.__all__:
        assert getattr(tinyllm.training, name).__name__ == name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'train_llama'"):
        _ = tinyllm.training.train_llama


def test_importing_the_layer_and_its_commands_imports_no_numpy() -> None:
    script = """
import sys
import tinyllm.training
from tinyllm.__main__ import command_parser
command_parser("train")
command_parser("inspect")
from tinyllm.training import TrainOptions, default_text
default_text()
assert not {"numpy", "matplotlib", "multiprocessing"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True)
