"""Measure tl-serve: beside its anchors, under load, at scale, from its start, step by step.

    python -m benchmarks.bench_serving [--only NAME,NAME] [--seconds S] [--rounds N]
                                      [--out DIR] [--note TEXT]

Prints a table per question. With --out it writes them, and the same figures as JSON, into DIR:
serving.md and serving.json, and files of their own for what is asked by name alone
(serving-curves.md, serving-profile.md ...). benchmarks/README.md tells the method.
Everything runs on 127.0.0.1, for a bounded time.
"""

from __future__ import annotations

import argparse
import shlex
import signal
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
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwinds, so that no server is left
    facts = machine.describe()
    for key, value in facts.items():
        print(f"{key}: {value}")
    lab = Lab(args.seconds, args.rounds, args.out)
    start = time.monotonic()
    sections = {name: _ask(name, lab) for name in args.only or QUESTIONS}
    facts["seconds taken"] = f"{time.monotonic() - start:.0f}"
    facts["load generator"] = lab.load.note or "loadgen.rs"
    facts["errors of the load"] = "; ".join(lab.load.errors) or "none"
    facts["left out"] = "; ".join(lab.left_out) or "nothing"
    if args.note:
        facts["note"] = args.note
    for key in ("seconds taken", "load generator", "errors of the load", "left out"):
        print(f"{key}: {facts[key]}")
    if args.out is not None:
        _write(args.out, facts, sections)
    return 0


def _ask(name: str, lab: Lab) -> Section:
    section: Section = import_module(f"benchmarks.serving.{name}").measure(lab)
    print(f"\n{section.markdown()}", flush=True)
    return section


def _write(folder: Path, facts: dict[str, str], sections: dict[str, Section]) -> None:
    command = f"python -m benchmarks.bench_serving {shlex.join(sys.argv[1:])}"
    usual = [section for name, section in sections.items() if name in QUESTIONS]
    if usual:
        write_report(folder, "serving", command, facts, usual)
    for name in sections.keys() & set(BY_NAME):
        write_report(folder, f"serving-{name}", command, facts, [sections[name]])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bench_serving",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--only", type=_questions, metavar="NAME,...", help=", ".join(QUESTIONS + BY_NAME))
    add("--seconds", type=_seconds, default=1.5, help="of load per measurement (%(default)s)")
    add("--rounds", type=_rounds, default=3, help="of measurements in turn (%(default)s)")
    add("--out", type=Path, help="folder for the tables, figures and pictures")
    add("--note", help="what a reader of the written figures should know")
    return parser


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0.1 <= seconds <= 60:
        raise argparse.ArgumentTypeError(f"{text} is not from 0.1 to 60")
    return seconds


def _rounds(text: str) -> int:
    rounds = int(text)
    if not 1 <= rounds <= 100:
        raise argparse.ArgumentTypeError(f"{text} is not from 1 to 100")
    return rounds


def _questions(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in QUESTIONS + BY_NAME:
            raise argparse.ArgumentTypeError(f"there is no {name!r}")
    return names


if __name__ == "__main__":
    sys.exit(main())
