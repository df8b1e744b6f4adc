"""The command line of the `wire` server: what may be said, and the defaults."""

from __future__ import annotations

import argparse
import math
import threading

from tinyllm.wire.session import DEFAULT_TIMEOUTS

HOST = "127.0.0.1"
MAX_CONNECTIONS = 256  # threads at once
GRACE_SECONDS = 10.0  # for the answers under way when a signal comes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the server."""
    add = parser.add_argument
    parser.set_defaults(prog=parser.prog)
    add("--port", type=_port, default=8080, help=f"on {HOST}; 0 picks one (default: %(default)s)")
    add(
        "--max-connections",
        type=_count,
        default=MAX_CONNECTIONS,
        metavar="N",
        help="served at once, a thread each; beyond, clients get 503 (default: %(default)s)",
    )
    add(
        "--keep-alive",
        choices=("on-request", "never"),
        default="on-request",
        help="keep connections of clients that ask for it (default: %(default)s)",
    )
    for name, what in (
        ("head", "for a request's head to arrive"),
        ("body", "for its body"),
        ("idle", "between two requests of a kept connection"),
    ):
        seconds: float = getattr(DEFAULT_TIMEOUTS, name)
        note = f"seconds {what} (default: %(default)s)"
        add(f"--{name}-timeout", type=_seconds, default=seconds, metavar="S", help=note)
    add(
        "--grace",
        type=_seconds,
        default=GRACE_SECONDS,
        metavar="S",
        help="seconds for answers under way at a shutdown (default: %(default)s)",
    )


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: 0 to 65535")
    return int(text)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < threading.TIMEOUT_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return seconds
