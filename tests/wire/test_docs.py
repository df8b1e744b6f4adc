"""The examples in docs/wire.md and in the docstrings say what the code does."""

from __future__ import annotations

import doctest
from pathlib import Path

import tinyllm.wire
from tinyllm.wire import sse

DOCS = Path(__file__).parent.parent.parent / "docs" / "wire.md"


def test_examples_in_the_documentation_are_true() -> None:
    results = doctest.testfile(str(DOCS), module_relative=False, encoding="utf-8")
    assert results.failed == 0
    assert results.attempted >= 30


def test_examples_in_docstrings_are_true() -> None:
    results = doctest.testmod(sse)
    assert results.failed == 0
    assert results.attempted == 3


def test_documentation_names_every_error_with_its_status() -> None:
    rows = [line for line in DOCS.read_text().splitlines() if line.startswith("| ")]
    for name in tinyllm.wire.__all__:
        error = getattr(tinyllm.wire, name)
        if isinstance(error, type) and issubclass(error, tinyllm.wire.HttpError):
            if name in ("HttpError", "BadRequest", "RequestTimeout"):
                continue  # families, and the one that a server raises
            assert sum(f"`{name}` {error.status} |" in row for row in rows) == 1, name
