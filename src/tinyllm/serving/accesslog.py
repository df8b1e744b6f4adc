"""One line per request, as text or JSON, written by a thread of its own.

The loop only formats a line (about a microsecond) and puts it into a list; the thread takes
the whole list and writes it with one call. A reader that is slow, or stuck, therefore delays
no answer: beyond a bound lines are dropped, and the log says how many.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import IO, Final

from tinyllm.serving.exchange import Exchange
from tinyllm.tracing import random_hex
from tinyllm.wire import Json, dump_json, json_string

MAX_LINES: Final = 100_000  # waiting to be written: some 20 MB
GATHER_SECONDS: Final = 0.05  # lines of this time leave together
SECOND: Final = 1_000_000_000  # nanoseconds

Format = Callable[[Exchange], str]


class Clock:
    """Turns Unix nanoseconds into an ISO 8601 time; the text of a second is made once."""

    def __init__(self) -> None:
        self._second = -1
        self._text = ""

    def text(self, unix_nano: int) -> str:
        """Return e.g. 2026-11-30T12:00:00.123Z."""
        second, rest = divmod(unix_nano, SECOND)
        if second != self._second:
            self._second = second
            self._text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._text}.{rest // 1_000_000:03d}Z"


_CLOCK = Clock()


def log_id(exchange: Exchange) -> str:
    """Return what names the request in the log: the caller's id, or one made for it."""
    if exchange.request_id is None and exchange.log_id is None:
        exchange.log_id = random_hex(8)
    return exchange.request_id or exchange.log_id or "-"


def text_line(exchange: Exchange) -> str:
    """Return a line for people. Method and path are quoted: they are the client's own bytes."""
    first = exchange.first_token
    ttft = "-" if first is None else f"{first * 1000:.2f}ms"
    what = json_string(f"{exchange.method or '-'} {exchange.path or '-'}")
    return (
        f"{_CLOCK.text(exchange.started_unix_nano)} {log_id(exchange)} {exchange.client()} "
        f"{what} {exchange.status} {exchange.bytes_sent}B "
        f"prompt={exchange.prompt_tokens} completion={exchange.completion_tokens} "
        f"ttft={ttft} duration={exchange.duration * 1000:.2f}ms {exchange.ended.value}\n"
    )


def json_line(exchange: Exchange) -> str:
    """Return a line for programs: one JSON object; times are in seconds."""
    fields: dict[str, Json] = {
        "time": _CLOCK.text(exchange.started_unix_nano),
        "request_id": log_id(exchange),
        "client": exchange.client(),
        "method": exchange.method,
        "path": exchange.path,
        "status": exchange.status,
        "bytes": exchange.bytes_sent,
        "prompt_tokens": exchange.prompt_tokens,
        "completion_tokens": exchange.completion_tokens,
        "time_to_first_token": exchange.first_token,
        "duration": exchange.duration,
        "ended": exchange.ended.value,
    }
    return f"{dump_json(fields)}\n"


class AccessLog:
    """Writes lines to a text stream from a thread of its own."""

    def __init__(self, stream: IO[str], line: Format = text_line) -> None:
        self._stream = stream
        self._line = line
        self._lines: deque[str] = deque()  # its two ends may be used by two threads
        self._dropped = 0
        self._filled = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="access-log", daemon=True)
        self._thread.start()

    def write(self, exchange: Exchange) -> None:
        """Format a line and leave it for the thread."""
        lines = self._lines
        if len(lines) >= MAX_LINES:
            self._dropped += 1
            return
        lines.append(self._line(exchange))
        if len(lines) == 1:  # the thread sleeps only after it saw none
            self._filled.set()

    def close(self, timeout: float) -> None:
        """Write what is left, but wait no longer than `timeout` seconds for a stuck reader."""
        self._closing.set()
        self._filled.set()
        self._thread.join(timeout)

    def _run(self) -> None:
        while not self._closing.is_set():
            self._filled.wait()
            self._filled.clear()
            while self._lines:
                self._closing.wait(GATHER_SECONDS)
                if not self._write_lines():
                    return

    def _write_lines(self) -> bool:
        """Write what has gathered; False when nobody reads the log any more."""
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        if self._dropped:
            lines.append(f"access log: {self._dropped} lines dropped, the reader is too slow\n")
            self._dropped = 0
        try:
            self._stream.write("".join(lines))
            self._stream.flush()
        except (OSError, ValueError):
            return False
        return True
