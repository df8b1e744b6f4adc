"""Measure tl-serve: beside its anchors, under load, at scale, from its start, step by step.

    python -m benchmarks.bench_serving [--only NAME,NAME] [--seconds S] [--rounds N]
                                      [--out DIR] [--note TEXT]

Prints a table per question and writes them, with the same figures as JSON, into DIR
(serving.md, serving.json; nothing is written without --out). benchmarks/README.md tells the method.
Everything runs on 127.0.0.1, for a bounded time.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from importlib import import_module
from pathlib import Path

from benchmarks.harness import machine
from benchmarks.harness.report import Section, write_report
from benchmarks.serving.lab import Lab

# In the order they are asked. The last ones take long, or need more than the others: they are
# asked by name.
QUESTIONS = ("compare", "tail", "fairness", "scale", "workers", "observing", "floor", "start")
BY_NAME = ("curves", "profile")


def main() -> int:
    """Ask the questions, print and write the answers."""
    args = _parser().parse_args()
    machine.require_linux()
    machine.raise_file_limit()
    facts = machine.describe()
    for key, value in facts.items():
        print(f"{key}: {value}")
    lab = Lab(args.seconds, args.rounds, args.out)
    start = time.monotonic()
    sections = [_ask(name, lab) for name in args.only or QUESTIONS]
    facts["seconds taken"] = f"{time.monotonic() - start:.0f}"
    facts["load generator"] = lab.load.note or "loadgen.rs"
    facts["errors of the load"] = "; ".join(lab.load.errors) or "none"
    facts["left out"] = "; ".join(lab.left_out) or "nothing"
    if args.note:
        facts["note"] = args.note
    for key in ("seconds taken", "load generator", "errors of the load", "left out"):
        print(f"{key}: {facts[key]}")
    if args.out is not None:
        command = f"python -m benchmarks.bench_serving {shlex.join(sys.argv[1:])}"
        write_report(args.out, "serving", command, facts, sections)
    return 0


def _ask(name: str, lab: Lab) -> Section:
    section: Section = import_module(f"benchmarks.serving.{name}").measure(lab)
    print(f"\n{section.markdown()}", flush=True)
    return section


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bench_serving",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--only", type=_questions, metavar="NAME,...", help=", ".join(QUESTIONS + BY_NAME))
    add("--seconds", type=float, default=1.5, help="of load per measurement (%(default)s)")
    add("--rounds", type=int, default=3, help="of measurements in turn (%(default)s)")
    add("--out", type=Path, help="folder for the tables, figures and pictures")
    add("--note", help="what a reader of the written figures should know")
    return parser


def _questions(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in QUESTIONS + BY_NAME:
            raise argparse.ArgumentTypeError(f"there is no {name!r}")
    return names


if __name__ == "__main__":
    sys.exit(main())
