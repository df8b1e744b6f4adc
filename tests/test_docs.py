"""The documents against the code: what is generated is up to date, what is named exists."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.processes import run_command
from tinyllm.__main__ import COMMANDS, command_parser
from tinyllm.serving.cli import tl_serve_parser

ROOT = Path(__file__).parents[1]
CLI = (ROOT / "docs" / "cli.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", CLI, re.MULTILINE | re.DOTALL))
OPTION = re.compile(r"--[a-z][a-z-]*")


LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)")
DOCUMENTS = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "examples" / "README.md"])
SOURCE = "\n".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))


def options(parser: argparse.ArgumentParser) -> set[str]:
    return {option for action in parser._actions for option in action.option_strings}


def test_generated_files_are_what_their_sources_make() -> None:
    command = [sys.executable, "-m", "tools.generate_docs", "--check"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (checked.stdout, checked.stderr, checked.returncode) == ("", "", 0)


def test_every_command_has_its_section_with_role_ports_environment_and_exit_codes() -> None:
    titles = {f"tinyllm {name}" for name in COMMANDS} - {"tinyllm serve"}
    assert set(SECTIONS) == titles | {"tinyllm", "tl-serve"}
    for title in titles | {"tl-serve"}:
        for part in ("Ports", "Environment", "Exit codes"):
            assert f"- **{part}:** " in SECTIONS[title], title


def test_tinyllm_serve_takes_the_arguments_of_tl_serve() -> None:
    assert options(command_parser("serve")) == options(tl_serve_parser())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_has_the_options_that_help_shows(name: str) -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "tinyllm", name, "--help"],
        env={**os.environ, "COLUMNS": "1000"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    section = SECTIONS["tl-serve" if name == "serve" else f"tinyllm {name}"]
    table = "\n".join(line for line in section.splitlines() if line.startswith("| `"))
    assert set(OPTION.findall(printed.stdout)) == set(OPTION.findall(table))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_usage_error_exits_with_2(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        command_parser(name).parse_args(["--no-such-option"])
    assert exited.value.code == 2
    assert f"usage: tinyllm {name}" in capsys.readouterr().err


def test_no_command_and_an_unknown_one_are_usage_errors() -> None:
    for arguments in ((), ("sing",)):
        ran = run_command("tinyllm", *arguments)
        assert (ran.returncode, ran.stdout) == (2, b"")
        assert b"usage: tinyllm COMMAND" in ran.stderr


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_what_a_document_links_to_exists(document: Path) -> None:
    links = LINK.findall(document.read_text("utf-8"))
    assert [link for link in links if not (document.parent / link).exists()] == []


def test_what_the_architecture_names_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    for shown, link in re.findall(r"\[`([^`]+\.py)`\]\(([^)]+)\)", text):
        assert link.endswith(shown), f"{shown} leads to {link}"
    functions = re.findall(r"`(\w+)\(\)`", text)
    assert [name for name in functions if f"def {name}(" not in SOURCE] == []
    classes = set(re.findall(r"`([A-Z][a-z]+(?:[A-Z][a-z0-9]*)*)`", text)) - {"Allow"}
    assert [name for name in classes if f"class {name}" not in SOURCE] == []
    assert len(functions) > 10
    assert len(classes) > 8


def test_the_layers_of_the_architecture_are_those_of_the_test_of_imports() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    ladder = (
        "wire  <-  model, tracing  <-  decoding, training  <-  engine  <-  serving  <-  __main__"
    )
    assert ladder in text
    assert ladder in (ROOT / "tests" / "test_layers.py").read_text("utf-8")
