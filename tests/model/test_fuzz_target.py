"""The fuzz target, held to the corpus: the official reader agrees, or ours is stricter."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from model.checkpoints import DATA, corpus_file

FUZZ = Path(__file__).parent.parent.parent / "fuzz"
CASES: list[dict[str, Any]] = json.loads((DATA / "safetensors.json").read_text())["cases"]


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(FUZZ)
    yield import_module("fuzz_safetensors")
    del sys.modules["fuzz_safetensors"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_official_reader_agrees_but_for_the_stricter_rules(
    case: dict[str, Any], target: ModuleType
) -> None:
    target.check_file(corpus_file(case))


def test_property_holds_for_every_seed(target: ModuleType) -> None:
    for seed in target.seeds():
        target.check(seed)


def test_property_is_not_empty(target: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that only the official reader took, for no reason of ours, would be found."""
    case = next(case for case in CASES if case["name"] == "short-by-one")
    monkeypatch.setattr(target, "read_officially", lambda _file: {})
    with pytest.raises(AssertionError):
        target.check_file(corpus_file(case))
