"""The text a model is trained on when none is named: real, and on every machine.

CPython ships the topics of its own reference manual (what `help("for")` prints) as a
module, a few hundred kilobytes of English with code in it. A Python packaged without that
module still has the docstrings of its standard library, so those stand in.
"""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path


def default_text() -> bytes:
    """Return a few hundred kilobytes of English from this Python's own documentation.

    The same Python always gives the same bytes.
    """
    try:
        topics: dict[str, str] = import_module("pydoc_data.topics").topics
    except ImportError:
        parts = list(standard_library_docstrings())
    else:
        parts = [topics[name] for name in sorted(topics)]
    return "\n".join(parts).encode()


def standard_library_docstrings() -> Iterator[str]:
    """Yield the docstrings of the standard library's modules, in order, read from their source."""
    library = Path(sysconfig.get_path("stdlib"))
    for name in sorted(sys.stdlib_module_names):
        try:
            tree = ast.parse((library / f"{name}.py").read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue  # a package, a built-in module, or one that is shipped without its source
        yield from docstrings(tree)


def docstrings(tree: ast.Module) -> Iterator[str]:
    """Yield the docstring of a module and of all that it defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield text
