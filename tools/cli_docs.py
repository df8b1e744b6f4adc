"""docs/cli.md, made from the argument parsers themselves.

The tables are made from each parser's arguments and not from its --help text, whose layout
changes from one Python to the next. What a parser does not know (the ports a command listens on,
what it reads from the environment, how it exits) stands in ROLES, one entry for each command.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator
from typing import NamedTuple

from tinyllm.__main__ import COMMANDS, command_parser, usage
from tinyllm.serving.cli import tl_serve_parser


class Role(NamedTuple):
    """What a command's parser does not say of it."""

    is_for: str
    ports: str = "none"
    environment: str = "none"
    exits: str = "0 done, 1 failed (stderr says why in one line), 2 a usage error"


SERVER_EXITS = (
    "0 after SIGTERM or SIGINT, 1 when {problem} (one line on stderr, before anything listens), "
    "2 a usage error. The first signal ends the accepting and lets answers under way end, for "
    "`--grace` seconds at most; a second one ends at once"
)
TRACING = (
    "`OTEL_EXPORTER_OTLP_ENDPOINT` turns tracing on; `OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER` "
    "and the others are in [tracing.md](tracing.md)"
)

ROLES = {
    "tl-serve": Role(
        "Answers the API of [openai-subset.v0.yaml](openapi/openai-subset.v0.yaml). Once it "
        "accepts connections, its first line on stdout is `listening on HOST:PORT, health on "
        "HOST:PORT`, with the ports it got, its second a `curl` command to try; then comes the "
        "access log. "
        "`tinyllm serve` is the same, but without `--model-dir` it serves a default model, trained "
        "the first time on the documentation that Python brings along.",
        "`--port`: the API, and `GET /healthz`. `--health-port`: `GET /healthz` alone, which says "
        "503 from the first signal on, and without a ready worker",
        f"{TRACING}. `tinyllm serve` keeps its default model in `$XDG_CACHE_HOME/tinyllm`, or "
        "`~/.cache/tinyllm`",
        SERVER_EXITS.format(problem="the model does not load or a port cannot be bound"),
    ),
    "generate": Role(
        "Prints what the server would answer to the same request: the same bytes for the same seed."
    ),
    "train": Role(
        "Writes a model's folder ([training.md](training.md)), and prints what it measured.",
        exits=f"{Role._field_defaults['exits']}, 130 interrupted",
    ),
    "inspect": Role(
        "Reads a model's folder and prints what it holds.",
        exits=f"{Role._field_defaults['exits']}, 130 interrupted",
    ),
    "conform": Role(
        "Grades a running server, ours or another, by what it sends over the wire. It shares no "
        "code with the server.",
        "`--otlp-port`, if it is given: receives the server's spans, on 127.0.0.1",
        exits="0 every required case held, 1 one did not, 2 a usage error, 3 the server could not "
        "be reached or stopped answering",
    ),
    "traces": Role(
        "A collector for those who have none: prints each trace as a tree of its spans.",
        "`--port`: OTLP/HTTP at `POST /v1/traces`, and `GET /` for the last traces",
        "`NO_COLOR` turns colours off",
        "0 after SIGTERM or SIGINT, 1 when the port cannot be bound, 2 a usage error",
    ),
    "wire": Role(
        "The wire layer's own server: `GET /health`, `POST /echo` and `GET /count`. Also "
        "installed as `wire`. Its first line on stdout is `listening on 127.0.0.1:PORT`.",
        "`--port` on 127.0.0.1",
        exits=SERVER_EXITS.format(problem="the port cannot be bound"),
    ),
}

HEAD = """\
# Commands

Generated from the commands themselves by `python -m tools.generate_docs`; a test checks that it is
up to date. `COMMAND --help` says the same in the terminal.

"""


def cli_markdown() -> str:
    """Return the text of docs/cli.md."""
    parts = [HEAD, *_section("tl-serve", tl_serve_parser())]
    parts += ["## tinyllm\n\n", f"```text\n{usage()}\n```\n\n"]
    for name in COMMANDS:
        if name != "serve":  # told of under tl-serve, whose arguments it has
            parts += _section(f"tinyllm {name}", command_parser(name))
    return "".join(parts).rstrip("\n") + "\n"


def _section(title: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    role = ROLES[title.removeprefix("tinyllm ")]
    actions = [action for action in parser._actions if action.help is not argparse.SUPPRESS]
    yield f"## {title}\n\n{_filled(role.is_for)}\n\n"
    yield f"```text\n{_synopsis(parser.prog, actions)}\n```\n\n"
    yield "| argument | meaning |\n| --- | --- |\n"
    for action in actions:
        yield f"| {_notation(action)} | {_meaning(action)} |\n"
    yield f"\n- **Ports:** {role.ports}.\n"
    yield f"- **Environment:** {role.environment}.\n"
    yield f"- **Exit codes:** {role.exits}.\n\n"


def _filled(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def _synopsis(prog: str, actions: list[argparse.Action]) -> str:
    words = [_word(action) for action in actions if action.dest != "help"]
    indent = " " * (len(prog) + 1)
    lines = [prog]
    for word in words:
        if len(lines[-1]) + 1 + len(word) > 96:
            lines.append(indent + word)
        else:
            lines[-1] += f" {word}"
    return "\n".join(lines)


def _word(action: argparse.Action) -> str:
    """Return how an argument stands in the synopsis."""
    spelled = "|".join(action.option_strings) + _value(action)
    optional = action.nargs in ("?", "*") if not action.option_strings else not action.required
    return f"[{spelled}]" if optional else spelled


def _value(action: argparse.Action) -> str:
    """Return what stands for the value of an argument, after a space if it has a name."""
    if action.nargs == 0:
        return ""
    name = str(action.metavar or (action.dest.upper() if action.option_strings else action.dest))
    if action.choices is not None:
        name = "{" + ",".join(map(str, action.choices)) + "}"
    if action.nargs == "+":
        name = f"{name} [{name} ...]"
    return f" {name}" if action.option_strings else name


def _notation(action: argparse.Action) -> str:
    spelled = action.option_strings or [""]
    return ", ".join(f"`{option}{_value(action)}`" for option in spelled)


def _meaning(action: argparse.Action) -> str:
    text = (action.help or "") % {"default": action.default, "prog": "tinyllm"}
    note = "; required" if action.required and action.option_strings else ""
    return f"{text}{note}".replace("|", "\\|").replace("*", "\\*")
