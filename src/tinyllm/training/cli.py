"""`tinyllm train` and `tinyllm inspect`: their arguments, and what they print.

Nothing here imports numpy before a command runs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import Any

from tinyllm.training.errors import TrainingError, explain, one_line
from tinyllm.training.options import (
    DEFAULT_HOLDOUT,
    DEFAULT_SMOOTHING,
    TrainOptions,
    check_holdout,
    check_processes,
    check_smoothing,
)
from tinyllm.training.progress import Progress, ProgressBar

ESCAPES = {r"\n": 10, r"\t": 9, r"\r": 13, r"\0": 0}
INTERRUPTED = 130  # 128 + SIGINT, as a shell reports it


def add_train_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `tinyllm train`."""
    parser.add_argument("architecture", choices=["bigram"], help="the kind of model")
    parser.add_argument(
        "--data",
        metavar="PATH",
        nargs="+",
        action="extend",
        default=[],
        help="files, folders (with all below them) or - for standard input, any of them gzipped "
        "(default: the documentation that Python itself brings along)",
    )
    parser.add_argument("--out", metavar="DIR", required=True, help="the model's folder")
    parser.add_argument(
        "--smoothing",
        metavar="A",
        type=_checked(float, check_smoothing),
        default=DEFAULT_SMOOTHING,
        help="added to the count of every pair (default: %(default)s)",
    )
    parser.add_argument(
        "--holdout",
        metavar="SHARE",
        type=_checked(float, check_holdout),
        default=DEFAULT_HOLDOUT,
        help="measure on this last share of each text, 0 to 0.5 (default: %(default)s); "
        "the model that is written is counted on all of it",
    )
    parser.add_argument(
        "--processes",
        metavar="N",
        type=_checked(int, check_processes),
        help="how many processes count (default: one per core for a large text)",
    )
    parser.add_argument("--json", action="store_true", help="print the report as one JSON object")


def run_train(args: argparse.Namespace) -> int:
    """Train, print the report, and return the exit code."""
    options = TrainOptions(args.data, args.smoothing, args.holdout, args.processes)
    has_terminal = sys.stderr is not None and sys.stderr.isatty()
    progress = ProgressBar(sys.stderr) if has_terminal else Progress()

    def train() -> str:
        from tinyllm.training.trainer import train_model

        report = train_model(args.out, options, progress)
        return report.to_json() if args.json else f"{report.to_text()}\nWrote {one_line(args.out)}"

    return _print_result("train", train)


def add_inspect_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `tinyllm inspect`."""
    parser.add_argument("model_dir", metavar="DIR", help="the model's folder")
    parser.add_argument(
        "--byte",
        metavar="X",
        type=_byte,
        help=r"what follows this byte: a character (e), an escape (\n) or a number (0xc3, 195)",
    )
    parser.add_argument(
        "--top",
        metavar="N",
        type=_checked(int, _check_top),
        default=16,
        help="how many next bytes --byte shows (default: %(default)s)",
    )
    parser.add_argument("--plot", metavar="PNG", help="draw the matrix as a heat map (matplotlib)")


def run_inspect(args: argparse.Namespace) -> int:
    """Show a checkpoint, and return the exit code."""

    def inspect() -> str:
        from tinyllm.training.inspection import Inspection

        inspection = Inspection(args.model_dir)
        if args.plot is not None:
            from tinyllm.training.plot import plot_matrix

            title = f"How likely is the next byte?  ({one_line(args.model_dir)})"
            plot_matrix(inspection.rows, title, args.plot)
        if args.byte is not None:
            return inspection.after(args.byte, args.top)
        return inspection.summary()

    return _print_result("inspect", inspect)


def _print_result(command: str, work: Callable[[], str]) -> int:
    """Print what `work` returns and return 0, or one line of error and what a shell expects."""
    try:
        _print(work())
    except TrainingError as error:
        print(f"tinyllm {command}: {one_line(str(error))}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 1  # whoever read the output had enough of it
    except KeyboardInterrupt:
        print(f"tinyllm {command}: interrupted", file=sys.stderr)
        return INTERRUPTED
    return 0


def _print(text: str) -> None:
    """Write to standard output, if it is open.

    Raises TrainingError when that fails, BrokenPipeError when nobody reads it.
    """
    if sys.stdout is None:
        return
    try:
        print(_printable(text, sys.stdout.encoding))
        sys.stdout.flush()
    except OSError as error:
        # What could not be written must not be tried again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise
        raise TrainingError(explain(error, "standard output")) from error


def _printable(text: str, encoding: str) -> str:
    """Return text that can be written where not every character can."""
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _checked(
    convert: Callable[[str], float], check: Callable[[Any], None]
) -> Callable[[str], float]:
    """Return an argument type: converts, checks the range, and says what is wrong."""

    def value(text: str) -> float:
        try:
            number = convert(text)
            check(number)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
        return number

    return value


def _check_top(count: int) -> None:
    if not 1 <= count <= 256:
        raise ValueError(f"1 to 256 bytes can be shown, not {count}")


def _byte(text: str) -> int:
    """Return the byte that is meant: one character, an escape, or a number."""
    if len(text) == 1 and text.isascii():
        return ord(text)
    if text in ESCAPES:
        return ESCAPES[text]
    try:
        number = int(text, 16) if text.lower().startswith("0x") else int(text)
    except ValueError:
        number = -1
    if not 0 <= number <= 255:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no byte: one ASCII character, \\n, \\t, \\r, \\0, or 0 to 255"
        )
    return number
