"""Lines to a file, written by a thread of its own, so that no reader delays the event loop.

Whoever has a line leaves it in a queue; the thread takes all there are and writes them in
pieces that a pipe or a file takes whole, so lines of several processes do not mix. A reader
that is slow or stuck costs a bounded queue: beyond it lines are dropped, and the log says how
many. So are lines that cannot be written (nobody reads any more, the disk is full): the server
serves on.

The file is a descriptor and not a stream of Python's: a thread that is stuck in a stream holds
its lock, for which the interpreter would wait, or abort, at its exit.
"""

from __future__ import annotations

import logging
import os
import select
import stat
import threading
from collections import deque
from collections.abc import Iterator
from typing import Final

MAX_LINES: Final = 50_000  # waiting to be written: some 10 MB
# Lines of this time leave together. Each time the thread takes the interpreter from the requests:
# at 0.05 s, and in pieces of PIPE_BUF, a full server lost 8 % of its rate to its log, not 5.
GATHER_SECONDS: Final = 0.2
PIPE_BUF: Final = 4096  # bytes; POSIX: writes of up to this many do not mix in a pipe
FILE_PIECE: Final = 1024 * 1024  # bytes; of a file the processes share the offset (POSIX: write)

logger = logging.getLogger("tinyllm.serving")


class LineWriter:
    """Writes whole lines to a file descriptor, in order, from its own thread."""

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor = descriptor
        in_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        self._piece_bytes = FILE_PIECE if in_file else PIPE_BUF
        self._name = name
        self._lines: deque[str] = deque()  # its two ends may be used by two threads
        self._dropped = 0
        self._counting = threading.Lock()  # of what is dropped
        self._failing = False
        self._filled = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def write(self, *lines: str) -> None:
        """Leave lines (each with its line end) for the thread. Never blocks."""
        kept = lines[: max(MAX_LINES - len(self._lines), 0)]
        self._lines.extend(kept)
        if len(kept) < len(lines):
            self._drop(len(lines) - len(kept))
        # The thread clears the flag before it looks for lines: set now, it will see these.
        if not self._filled.is_set():
            self._filled.set()

    def close(self, timeout: float) -> None:
        """Write what is left, but wait no longer than `timeout` seconds for a stuck reader."""
        self._closing.set()
        self._filled.set()
        self._thread.join(timeout)

    def _run(self) -> None:
        closing = False
        while not closing:
            self._filled.wait()
            self._closing.wait(GATHER_SECONDS)
            self._filled.clear()
            closing = self._closing.is_set()
            self._write_lines()

    def _write_lines(self) -> None:
        # Joined first: line by line it were half a microsecond each, and the interpreter's.
        lines = "".join([self._lines.popleft() for _ in range(len(self._lines))])
        for piece in _pieces(lines.encode("utf-8", "backslashreplace"), self._piece_bytes):
            if not self._wrote(piece):
                self._drop(piece.count(b"\n"))
        count = self._dropped
        if count and self._wrote(f"{self._name}: {count} lines dropped\n".encode()):
            self._drop(-count)

    def _drop(self, count: int) -> None:
        with self._counting:
            self._dropped += count

    def _wrote(self, data: bytes) -> bool:
        """Write all of it; a failure is said once, until a write succeeds again."""
        try:
            while data:
                data = data[self._write_some(data) :]
        except OSError as error:
            if not self._failing:
                self._failing = True
                logger.error("%s: cannot be written: %s", self._name, error.strerror)
            return False
        self._failing = False
        return True

    def _write_some(self, data: bytes) -> int:
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:  # whoever shares the pipe with us made it so
            select.select([], [self._descriptor], [])
            return 0


def _pieces(lines: bytes, limit: int) -> Iterator[bytes]:
    """Divide lines into pieces of at most `limit` bytes, or one longer line."""
    start = 0
    while start < len(lines):
        end = lines.rfind(b"\n", start, start + limit) + 1
        end = end or lines.find(b"\n", start) + 1 or len(lines)
        yield lines[start:end]
        start = end


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
