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
from contextlib import suppress
from importlib import import_module
from pathlib import Path

ENOUGH_BYTES = 400_000  # as much as the topics; reading all of it would take seconds

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def default_text() -> bytes:
    """Return a few hundred kilobytes of English from this Python's own documentation.

    The same Python always gives the same bytes.
    """
    try:
        topics: dict[str, str] = import_module("pydoc_data.topics").topics
    except ImportError:
        return standard_library_docstrings()
    return "\n".join(topics[name] for name in sorted(topics)).encode()


def standard_library_docstrings(enough: int = ENOUGH_BYTES) -> bytes:
    """Return docstrings from the standard library's source, module by module until it is enough."""
    library = Path(sysconfig.get_path("stdlib"))
    text = b""
    for name in sorted(sys.stdlib_module_names):
        if len(text) >= enough:
            break
        with suppress(OSError):  # a package, a built-in module, or one without its source
            tree = ast.parse((library / f"{name}.py").read_bytes())
            text += "".join(f"{docstring}\n" for docstring in docstrings(tree)).encode()
    return text


def docstrings(node: Documented) -> Iterator[str]:
    """Yield the docstring of a module, class or function, and of those defined in it."""
    text = ast.get_docstring(node)
    if text:
        yield text
    for below in node.body:
        if isinstance(below, Documented):
            yield from docstrings(below)
