"""The surface of model and decoding, and what using them must not cost."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import pytest

import tinyllm.decoding
import tinyllm.model
from model.checkpoints import write_model

# Public within the layer: each module's own parts, which a user reaches by the module's name.
BY_MODULE = {
    "tinyllm.model": {
        *("FileChanged", "UnreadableFile", "FileTooShort", "HeaderTooLong", "HeaderPastEnd"),
        *("HeaderPadding", "HeaderNotJson", "DuplicateName", "BadMetadata", "BadEntry"),
        *("UnsupportedDtype", "BadShape", "BadOffsets", "SizeMismatch", "NotTiled"),
        *("DataPastEnd", "TrailingBytes", "MissingTensor", "UnexpectedTensor", "WrongShape"),
        *("Index", "TensorInfo", "Source", "shown", "check_config", "parse_config"),
    },
    "tinyllm.decoding": {
        *("softmax", "choose", "cumulative", "check_temperature", "lead_guide"),
        *(
            "TemperatureRows",
            "UniformStream",
            "SeedStart",
            "SeedPool",
            "Block",
            "first_blocks",
            "next_blocks",
            "make_ahead",
            "draw_ahead",
            "prepare_blocks",
        ),
    },
}


def defined_in(package: ModuleType) -> set[str]:
    """The public classes and functions that a package's modules define."""
    names = set()
    for info in iter_modules(package.__path__, prefix=f"{package.__name__}."):
        for name, value in vars(import_module(info.name)).items():
            is_code = inspect.isclass(value) or inspect.isfunction(value)
            if is_code and value.__module__ == info.name and not name.startswith("_"):
                names.add(name)
    return names


@pytest.mark.parametrize("package", [tinyllm.model, tinyllm.decoding], ids=lambda p: p.__name__)
def test_surface_is_the_list_and_the_modules_have_nothing_else(package: ModuleType) -> None:
    listed = set(package.__all__)
    assert all(hasattr(package, name) for name in listed)
    assert defined_in(package) == (listed - {"State"}) | BY_MODULE[package.__name__]


SHORT_REQUEST = """
import sys
from tinyllm.decoding import TokenSampler
from tinyllm.model import load_model
tokens = TokenSampler(load_model(sys.argv[1]), b"a", 0.01, 1).take(16)
print(bytes(tokens), "numpy" in sys.modules)
"""


def test_a_short_request_needs_no_numpy(tmp_path: Path) -> None:
    """Importing it would take longer than all the rest of a server's start."""
    command = [sys.executable, "-c", SHORT_REQUEST, str(write_model(tmp_path / "m"))]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout == "b'bcdefghijklmnopq' False\n"
