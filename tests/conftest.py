"""Fixtures that several levels of tests use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import models
from support.processes import TlServe


@pytest.fixture(scope="session")
def succ_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The specification's model: after any byte, the next byte value is the likeliest."""
    return models.write_model(tmp_path_factory.mktemp("succ"), models.succ)


@pytest.fixture(scope="session")
def succ_server(succ_model: Path) -> Iterator[TlServe]:
    """A tl-serve process with the succ model, shared by tests that leave it as it was."""
    with TlServe(succ_model, "--no-access-log") as server:
        yield server
