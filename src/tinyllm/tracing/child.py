"""The process that exports the spans of an engine (see process.py).

    python -m tinyllm.tracing.child         started by an engine, with a socket as standard input

It ends when the engine says so or has ended. Signals do not end it: whoever stops a whole group of
processes means the engine, which still has spans to hand over.
"""

from __future__ import annotations

import logging
import signal
import sys
import time
from dataclasses import replace
from typing import Final

from tinyllm import LOG_FORMAT
from tinyllm.tracing.export import SpanExporter
from tinyllm.tracing.handover import read, read_config

FLUSH_SECONDS: Final = 2.0  # after an engine that ended without a word


def main() -> int:
    """Export what arrives on standard input."""
    if sys.stdin.isatty():
        sys.exit("an engine starts this, with a socket as its standard input")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    logging.basicConfig(format=LOG_FORMAT, level=logging.INFO)
    stream = sys.stdin.buffer
    try:
        config = read_config(stream)
    except EOFError:
        return 0
    # A span may wait for `schedule_delay` in all.
    exporter = SpanExporter(replace(config, schedule_delay=config.schedule_delay / 2))
    deadline = None
    while deadline is None:
        try:
            groups, overflow, deadline = read(stream)
        except EOFError:
            deadline = time.monotonic() + FLUSH_SECONDS
        else:
            exporter.take_over(groups, overflow)
    return 0 if exporter.close(max(deadline - time.monotonic(), 0)) else 1


if __name__ == "__main__":
    sys.exit(main())
