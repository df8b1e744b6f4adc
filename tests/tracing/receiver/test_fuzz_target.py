"""The fuzz target holds for its seeds, cut short and changed at many places: it cannot rot."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

FUZZ = Path(__file__).parents[3] / "fuzz"


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(FUZZ))
    yield import_module("fuzz_traces")
    del sys.modules["fuzz_traces"]


def test_target_holds_for_its_seeds_and_their_neighbours(target: ModuleType) -> None:
    for seed in target.seeds():
        for place in range(0, len(seed), 17):
            target.check(seed[:place])
            target.check(seed[:place] + b'"' + seed[place + 1 :])
            target.check(seed[:place] + b"0" + seed[place + 1 :])
        target.check(seed)
