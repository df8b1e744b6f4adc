"""A `wire` server that the tests of a module share and leave as it was."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.wireserver import WireServer


@pytest.fixture(scope="module")
def wire() -> Iterator[WireServer]:
    """A server process on a free port."""
    with WireServer("--grace", "0") as server:
        yield server
