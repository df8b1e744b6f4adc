"""Lines to a stream, written by a thread of its own, so that no reader delays the event loop.

Whoever has a line leaves it in a queue; the thread takes all there are and writes them in
pieces that a pipe takes whole, so lines of several processes do not mix. A reader that is slow
or stuck costs a bounded queue: beyond it lines are dropped, and the log says how many.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterator
from typing import IO, Final

MAX_LINES: Final = 50_000  # waiting to be written: some 10 MB
GATHER_SECONDS: Final = 0.05  # lines of this time leave together
PIPE_BUF: Final = 4096  # characters; POSIX: writes up to this many bytes do not mix in a pipe


class LineWriter:
    """Writes whole lines to a text stream, in order, from its own thread."""

    def __init__(self, stream: IO[str], name: str) -> None:
        self._stream = stream
        self._name = name
        self._lines: deque[str] = deque()  # its two ends may be used by two threads
        self._dropped = 0
        self._filled = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def write(self, line: str) -> None:
        """Leave a line (with its line end) for the thread. Never blocks."""
        lines = self._lines
        if len(lines) >= MAX_LINES:
            self._dropped += 1
            return
        lines.append(line)
        if len(lines) == 1:  # the thread sleeps only after it saw none
            self._filled.set()

    def close(self, timeout: float) -> None:
        """Write what is left, but wait no longer than `timeout` seconds for a stuck reader."""
        self._closing.set()
        self._filled.set()
        self._thread.join(timeout)

    def _run(self) -> None:
        try:
            while not self._closing.is_set():
                self._filled.wait()
                self._filled.clear()
                while self._lines:
                    self._closing.wait(GATHER_SECONDS)
                    self._write_lines()
        except (OSError, ValueError):
            # Nobody reads any more (EPIPE), or the disk is full: lines gather up to the bound and
            # are dropped; the server serves on.
            return

    def _write_lines(self) -> None:
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        if self._dropped:
            lines.append(f"{self._name}: {self._dropped} lines dropped, the reader is too slow\n")
            self._dropped = 0
        for piece in _pieces(lines):
            self._stream.write(piece)
            self._stream.flush()


def _pieces(lines: list[str]) -> Iterator[str]:
    """Join lines to pieces of at most PIPE_BUF characters, or one longer line."""
    piece: list[str] = []
    length = 0
    for line in lines:
        if length + len(line) > PIPE_BUF and piece:
            yield "".join(piece)
            piece, length = [], 0
        piece.append(line)
        length += len(line)
    yield "".join(piece)


class LineHandler(logging.Handler):
    """Hands log records to a LineWriter, so that a traceback never waits for stderr's reader."""

    def __init__(self, writer: LineWriter) -> None:
        super().__init__()
        self._writer = writer

    def emit(self, record: logging.LogRecord) -> None:
        """Format the record and leave it for the writer."""
        try:
            self._writer.write(f"{self.format(record)}\n")
        except Exception:  # noqa: BLE001 - as logging.Handler.emit must: a log line breaks nobody
            self.handleError(record)
