"""The `tinyllm` command: one word picks the layer, and only that layer is imported.

Every command lives in its own layer as a pair of functions: one declares its arguments,
the other runs it and returns the exit code (0 done, 1 failed with one line on stderr,
2 a usage error). This table is all that knows them all, so the help in docs/cli.md can be
generated from it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple


class Command(NamedTuple):
    """Where a command lives, and what it is for in one line."""

    module: str
    prefix: str  # the functions are {prefix}add_... when a module owns several commands
    summary: str


COMMANDS = {
    "serve": Command("tinyllm.serving.cli", "", "serve a model (a default one if none is named)"),
    "generate": Command("tinyllm.engine.cli", "", "print a completion, token by token"),
    "train": Command("tinyllm.training.cli", "train", "train a model on text"),
    "inspect": Command("tinyllm.training.cli", "inspect", "show what a checkpoint holds"),
    "conform": Command(
        "tinyllm.conformance.cli", "", "grade an OpenAI-compatible server on the wire"
    ),
    "traces": Command("tinyllm.tracing.cli", "", "receive spans and print them as trees"),
    "wire": Command("tinyllm.wire.__main__", "", "run the wire layer's own small server"),
}


def command_parser(name: str) -> argparse.ArgumentParser:
    """Return the argument parser of one command, as `tinyllm NAME` uses it."""
    command = COMMANDS[name]
    module = import_module(command.module)
    parser = argparse.ArgumentParser(prog=f"tinyllm {name}", description=command.summary)
    add = f"add_{command.prefix}_arguments" if command.prefix else "add_arguments"
    getattr(module, add)(parser)
    return parser


def usage() -> str:
    """Return the text of `tinyllm --help`: the commands, a line each."""
    lines = ["usage: tinyllm COMMAND [...]", "", "commands:"]
    lines += [f"  {name:<10} {command.summary}" for name, command in COMMANDS.items()]
    lines += ["", "`tinyllm COMMAND --help` shows a command's arguments."]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = arguments[0] if arguments else ""
    if name in ("-h", "--help"):
        print(usage())
        return 0
    if name == "--version":
        from tinyllm import __version__

        print(f"tinyllm {__version__}")
        return 0
    if name not in COMMANDS:
        problem = f"unknown command {name!r}" if name else "no command given"
        print(f"{usage()}\n\ntinyllm: {problem}", file=sys.stderr)
        return 2
    command = COMMANDS[name]
    args = command_parser(name).parse_args(arguments[1:])
    run = f"run_{command.prefix}" if command.prefix else "run"
    code: int = getattr(import_module(command.module), run)(args)
    return code


if __name__ == "__main__":
    sys.exit(main())
