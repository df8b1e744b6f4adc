"""`tinyllm train` and `tinyllm inspect`: their arguments, and what they print.

Nothing here imports numpy before a command runs.
"""

from __future__ import annotations

import argparse
import sys

from tinyllm.training.errors import TrainingError


def add_train_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `tinyllm train`."""
    parser.add_argument("architecture", choices=["bigram"], help="the kind of model")
    parser.add_argument("--data", nargs="+", action="extend", default=[], metavar="PATH")
    parser.add_argument("--out", required=True, metavar="DIR", help="the model folder to write")
    parser.add_argument("--json", action="store_true")


def run_train(args: argparse.Namespace) -> int:
    """Train, print the report, and return the exit code."""
    from tinyllm.training.trainer import TrainOptions, train_model

    try:
        report = train_model(args.out, TrainOptions(paths=args.data))
    except TrainingError as error:
        print(f"tinyllm train: {error}", file=sys.stderr)
        return 1
    print(report.to_json() if args.json else report.to_text())
    return 0
