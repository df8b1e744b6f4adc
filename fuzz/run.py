"""Run a fuzz target under atheris: `python fuzz/run.py TARGET [libFuzzer arguments]`.

Only our own modules are instrumented, so that coverage means coverage of them.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import atheris

FOLDER = Path(__file__).parent


def main(target: str, *arguments: str) -> None:
    """Import the target with instrumentation and fuzz its `check`."""
    sys.path.insert(0, str(FOLDER))
    with atheris.instrument_imports(include=["tinyllm"]):
        check = import_module(f"fuzz_{target}").check
    atheris.Setup([sys.argv[0], *arguments], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
