"""The package from outside: its public surface, and what it is made of."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import tinyllm.wire
from tinyllm.wire import errors, jsontext, message, request, response, sse

FILES = sorted(Path(tinyllm.wire.__file__).parent.glob("*.py"))
PUBLIC_MODULES = [errors, jsontext, message, request, response, sse]
# For the layers of this package, not for its users.
INTERNAL = {"FieldIndex", "Fields", "MAX_DEPTH", "MAX_EVENT_BYTES", "ExtraFields"}
INTERNAL |= {"index_fields", "write_all"}


def imports(path: Path) -> set[str]:
    """Top-level names of all modules that a file imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found


def own_names(module: ModuleType) -> set[str]:
    """Public names that a module itself defines."""
    defined = set()
    for node in ast.parse(Path(str(module.__file__)).read_text()).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            defined.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            defined.update(name.id for name in targets if isinstance(name, ast.Name))
    return {name for name in defined if not name.startswith("_")}


def test_public_surface_is_what_the_modules_define() -> None:
    defined = set().union(*map(own_names, PUBLIC_MODULES))
    assert set(tinyllm.wire.__all__) == defined - INTERNAL
    assert defined >= INTERNAL
    assert all(hasattr(tinyllm.wire, name) for name in tinyllm.wire.__all__)
    assert len(set(tinyllm.wire.__all__)) == len(tinyllm.wire.__all__)


# The specification's test_crate_builds ("std only") and test_your_cargo_tests_pass, in Python.


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_package_imports_only_the_standard_library(path: Path) -> None:
    assert imports(path) - {"tinyllm"} <= set(sys.stdlib_module_names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_package_imports_neither_socket_nor_asyncio_but_in_its_server(path: Path) -> None:
    network = {"socket", "asyncio", "select", "selectors", "ssl", "http", "socketserver"}
    assert imports(path) & network == ({"socket"} if path.name == "__main__.py" else set())


def test_process_that_uses_the_package_loads_neither_socket_nor_asyncio() -> None:
    program = "import sys, tinyllm.wire; print(sorted({'socket', 'asyncio'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
