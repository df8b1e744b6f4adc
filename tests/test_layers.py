"""The import direction, read from the source: lower layers never look up.

wire  <-  model, tracing  <-  decoding, training  <-  engine  <-  serving  <-  __main__
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tinyllm

PACKAGE = Path(tinyllm.__file__).parent

# Each layer, and what it may import of ours. `model` takes from `wire` only the JSON reader.
ALLOWED: dict[str, set[str]] = {
    "wire": set(),
    "model": {"wire"},
    "tracing": {"wire"},
    "decoding": {"wire", "model"},
    "training": {"wire", "model"},
    "engine": {"wire", "model", "decoding", "training"},
    "serving": {"wire", "model", "tracing", "decoding", "training", "engine"},
    "conformance": set(),
}
FILES = sorted(PACKAGE.rglob("*.py"))


def imported_modules(path: Path) -> set[str]:
    """Absolute names of every module a file imports, at any depth of nesting."""
    package = ".".join(path.relative_to(PACKAGE.parent).parent.parts)
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")
            prefix = ".".join(base[: len(base) - node.level + 1]) + "." if node.level else ""
            module = f"{prefix}{node.module}" if node.module else prefix.rstrip(".")
            names.add(module)
            names.update(f"{module}.{alias.name}" for alias in node.names)
    return names


def layer_of(name: str) -> str | None:
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "tinyllm" and parts[1] in ALLOWED else None


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_lower_layers_never_look_up(path: Path) -> None:
    layer = path.relative_to(PACKAGE).parts[0]
    if layer not in ALLOWED:
        return  # __init__.py and __main__.py of the package itself may see everything
    seen = {found for name in imported_modules(path) if (found := layer_of(name))}
    assert seen - {layer} <= ALLOWED[layer]


def test_model_takes_only_the_json_reader_from_wire() -> None:
    for path in (PACKAGE / "model").glob("*.py"):
        wire = {name for name in imported_modules(path) if name.startswith("tinyllm.wire")}
        assert all(name.startswith("tinyllm.wire.jsontext") for name in wire), path


def test_only_main_imports_conformance() -> None:
    for path in FILES:
        if "conformance" in path.relative_to(PACKAGE).parts or path.name == "__main__.py":
            continue
        assert not any(name.startswith("tinyllm.conformance") for name in imported_modules(path))
