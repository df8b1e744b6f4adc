"""The cases, a file per subject; importing a file registers what it defines."""

from __future__ import annotations

from importlib import import_module
from typing import Final

# In the order in which they run and are listed: what the rest builds on comes first.
MODULES: Final = (
    "plain",
    "usage",
    "stream",
    "stream_bytes",
    "text",
    "sampling",
    "checkpoint",
    "errors",
    "json_texts",
    "fields",
    "health",
    "requests",
    "bodies",
    "connections",
    "rejects",
    "flow",
    "crowd",
    "deadlines",
    "traces",
    "wire_routes",
    "wire_json",
    "wire_stream",
)


def load() -> None:
    """Import every file of cases."""
    for name in MODULES:
        import_module(f"{__name__}.{name}")
