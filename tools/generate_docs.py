"""Write the files that are made from others, or check that they still agree with them.

    python -m tools.generate_docs            write them
    python -m tools.generate_docs --check    exit 1, with a diff, if one is not what it would write

src/tinyllm/serving/openapi.v0.json is docs/openapi/openai-subset.v0.yaml as JSON: it is what the
server gives as GET /openapi.json, so that serving needs no YAML reader. docs/cli.md is made from
the argument parsers.
"""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import yaml
from tools.cli_docs import cli_markdown

ROOT = Path(__file__).resolve().parent.parent


def openapi_json() -> str:
    """Return the contract as JSON."""
    contract = yaml.safe_load((ROOT / "docs/openapi/openai-subset.v0.yaml").read_text("utf-8"))
    return json.dumps(contract, indent=1, ensure_ascii=False) + "\n"


GENERATED: dict[str, Callable[[], str]] = {
    "docs/cli.md": cli_markdown,
    "src/tinyllm/serving/openapi.v0.json": openapi_json,
}


def main() -> int:
    """Write or check every generated file; return the exit code."""
    check = sys.argv[1:] == ["--check"]
    stale = False
    for name, make in GENERATED.items():
        path = ROOT / name
        wanted = make()
        found = path.read_text("utf-8") if path.exists() else ""
        if found == wanted:
            continue
        stale = True
        if check:
            lines = found.splitlines(True), wanted.splitlines(True)
            sys.stdout.writelines(difflib.unified_diff(*lines, name, "generated now"))
        else:
            path.write_text(wanted, "utf-8")
            sys.stdout.write(f"wrote {name}\n")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
