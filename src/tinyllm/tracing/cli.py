"""`tinyllm traces`: receive spans on a port and print each trace as a tree.

For those who want to see a trace and have no collector. A trace is printed when nothing of it
has arrived for a moment, and again, whole, when more of it comes. GET / shows the last ones.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import threading
import time

from tinyllm.tracing.receiver.server import Received, TraceReceiver
from tinyllm.tracing.receiver.store import TraceStore
from tinyllm.tracing.receiver.tree import DIM, YELLOW, Style, render
from tinyllm.tracing.transport import one_line

DEFAULT_PORT = 4318  # the port of OTLP/HTTP
QUIET_SECONDS = 0.5  # a trace is printed when it has not changed for so long
TICK_SECONDS = 0.1
MAX_PRINTED = 20  # traces and problems printed per tick; a load test would flood the terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `tinyllm traces`."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument(
        "--port",
        type=_port,
        default=DEFAULT_PORT,
        help="port to listen on, 0 for a free one (%(default)s)",
    )
    parser.add_argument(
        "--keep",
        type=_count,
        default=100,
        metavar="N",
        help="traces to keep, for GET / to show (%(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Receive until SIGINT or SIGTERM; return the exit code."""
    store = TraceStore(args.keep)
    printer = Printer(store, _style())
    try:
        receiver = TraceReceiver((args.host, args.port), printer.took, printer.overview)
    except OSError as problem:
        reason = problem.strerror or problem
        print(f"tinyllm traces: {args.host}:{args.port}: {reason}", file=sys.stderr)
        return 1
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with receiver:
        host = f"[{args.host}]" if ":" in args.host else args.host
        print(f"listening on http://{host}:{receiver.server_port}/v1/traces", flush=True)
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        try:
            while not stop.wait(TICK_SECONDS):
                printer.tick(time.monotonic(), QUIET_SECONDS)
            printer.tick(time.monotonic(), 0)  # what is not settled yet is not lost
        except BrokenPipeError:  # whoever read our output has gone
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        receiver.shutdown()
    return 0


class Printer:
    """Prints what arrives, a bounded amount at a time. `took` runs on the receiver's threads."""

    def __init__(self, store: TraceStore, style: Style) -> None:
        self._store = store
        self._style = style
        self._problems: list[str] = []
        self._lock = threading.Lock()

    def took(self, received: Received) -> None:
        """Keep what a request brought until the next tick."""
        self._store.add(received.spans, time.monotonic())
        with self._lock:
            self._problems += received.problems

    def tick(self, now: float, quiet: float) -> None:
        """Print the problems that came up and the traces that have settled."""
        with self._lock:
            problems, self._problems = self._problems, []
        for problem in problems[:MAX_PRINTED]:
            print(self._style.paint(f"! {one_line(problem, 1000)}", YELLOW))
        settled = self._store.take_settled(now, quiet)
        for trace in settled[:MAX_PRINTED]:
            print("", *render(trace, self._style), sep="\n")
        more = max(len(problems) - MAX_PRINTED, 0) + max(len(settled) - MAX_PRINTED, 0)
        more += self._store.take_untold()
        if more:
            print(self._style.paint(f"... and {more} more", DIM))
        sys.stdout.flush()

    def overview(self) -> str:
        """Return the traces that are kept as plain text."""
        traces = self._store.last()
        lines = [line for trace in traces for line in (*render(trace, Style()), "")]
        return "\n".join(lines) if lines else "no traces yet\n"


def _style() -> Style:
    terminal = sys.stdout.isatty()
    return Style(
        width=shutil.get_terminal_size((100, 24)).columns,
        color=terminal and "NO_COLOR" not in os.environ,  # no-color.org
        unicode=(sys.stdout.encoding or "").lower().replace("-", "") == "utf8",
    )


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text) < 65536:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no port, 0 to 65535")


def _count(text: str) -> int:
    if text.isascii() and text.isdigit() and 0 < int(text) <= 1_000_000:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 1000000")
