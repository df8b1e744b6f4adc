"""The broken servers, a file per subject; importing a file registers what it defines."""

from __future__ import annotations

from importlib import import_module
from typing import Final

MODULES: Final = (
    "plain",
    "stream",
    "text",
    "errors",
    "fields",
    "http",
    "connections",
    "rejects",
    "flow",
    "traces",
    "wire",
)


def load() -> None:
    """Import every file of broken servers."""
    for name in MODULES:
        import_module(f"{__name__}.{name}")
