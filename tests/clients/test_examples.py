"""Every file of examples/ does what it says, on the real server."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.processes import TlServe
from support.tools import require

EXAMPLES = Path(__file__).parents[2] / "examples"
TEXT = "fghijklmnopqrstuvwxyz{|}"  # what the succ model says after "Once"


def run(*command: str | Path) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def test_curl(server: TlServe) -> None:
    require("curl")
    printed = run("sh", EXAMPLES / "completion.sh", server.base_url)
    whole, *events, done, _ = printed.replace("\n\n", "\n").split("\n")
    assert json.loads(whole)["choices"][0]["text"] == TEXT
    chunks = [json.loads(event.removeprefix("data: ")) for event in events]
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == TEXT
    assert done == "data: [DONE]"


def test_openai_python(server: TlServe) -> None:
    printed = run(sys.executable, EXAMPLES / "completion_openai.py", server.base_url)
    assert printed == f"{TEXT}\n{TEXT}\n"


def test_openai_node(server: TlServe, node_modules: Path, tmp_path: Path) -> None:
    """node looks for packages beside the script, so a copy runs where they are at hand."""
    example = shutil.copy(EXAMPLES / "completion_openai.mjs", tmp_path)
    (tmp_path / "node_modules").symlink_to(node_modules)
    assert run(require("node"), example, server.base_url) == f"{TEXT}\n{TEXT}\n"


def test_fetch(server: TlServe) -> None:
    """The module that the page uses too, under node's fetch."""
    printed = run(require("node"), EXAMPLES / "completion_fetch.mjs", server.base_url)
    assert printed == f"{TEXT}\n{TEXT}\n"


def test_fetch_shows_the_servers_message(server: TlServe) -> None:
    script = (
        f'import {{ completeText }} from "{EXAMPLES}/fetch_stream.mjs";'
        'await completeText(process.argv[1], { model: "m" }).catch((e) => console.log(e.message));'
    )
    printed = run(require("node"), "--input-type=module", "-e", script, server.base_url)
    assert printed == "prompt must be a non-empty string, but is missing or null\n"


def test_every_example_is_told_of_and_run() -> None:
    files = {path.name for path in EXAMPLES.iterdir()} - {"README.md", "node_modules"}
    readme = (EXAMPLES / "README.md").read_text()
    assert all(f"({name})" in readme for name in files)
    assert {name for name in files if name.startswith("completion")} == {
        "completion.sh",
        "completion_openai.py",
        "completion_openai.mjs",
        "completion_fetch.mjs",
        "completion.html",
    }


@pytest.mark.parametrize("name", ["completion.html", "completion_fetch.mjs"])
def test_the_page_and_the_script_use_one_module(name: str) -> None:
    assert 'from "./fetch_stream.mjs"' in (EXAMPLES / name).read_text()
