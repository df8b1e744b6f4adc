"""The engine's end of exporting: a span's facts are handed to a process of its own.

The text of a span, its sending and all that a collector can do wrong cost as much as a tenth of a
plain request. A thread would take that from the requests, for one thread at a time has the
interpreter, and would take it when they need it. So the exporter (export.py) runs in a child
process (child.py). Here spans wait until there are enough to be worth a system call, or half of
`schedule_delay` has passed (the other half is the exporter's); then they are written to a socket
that never blocks. While the child is behind, spans wait in a bounded queue; beyond that they are
lost, and counted. A child that died is replaced; what it held is lost with it, and nobody knows how
much.
"""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import threading
import time
from typing import Final

from tinyllm.tracing.completion import Facts
from tinyllm.tracing.config import ExportConfig
from tinyllm.tracing.handover import pack, pack_config
from tinyllm.tracing.queue import SPANS_PER_GROUP, SpanQueue

log = logging.getLogger("tinyllm.tracing")

# Spans per system call: a batch's, 150 KB. Each call wakes the child, which takes a core from
# someone: with 32 a full server kept 0.84 of its rate, with 128 0.87, with 512 and more 0.89.
TOGETHER: Final = 512
MESSAGES_PER_TURN: Final = 2  # on the loop: a child that was behind is given the rest by the thread
EXIT_SECONDS: Final = 0.5  # for the child's interpreter to end, after the last span
RESTART_SECONDS: Final = 5.0  # from a child's end to the next one
# Without -P a file of the current folder could stand in for a module of the library.
COMMAND: Final = (sys.executable, "-P", "-m", "tinyllm.tracing.child")


class ExporterProcess:
    """Exports the spans that it is offered, as a `SpanExporter` in another process."""

    def __init__(self, config: ExportConfig) -> None:
        """Start the process."""
        self._config = config
        self._together = min(config.max_batch_size, TOGETHER)
        self._queue = SpanQueue(config.max_queue_size, min(self._together, SPANS_PER_GROUP))
        self._offered = 0
        self._overflow_told = 0
        self._unsent = b""  # of a message
        self._turn = threading.Lock()  # of the one thread that writes to the socket
        self._closing = threading.Event()
        self._restart_at: float | None = None  # monotonic time; None while the child lives
        self._start()
        threading.Thread(target=self._keep_time, name="span-handover", daemon=True).start()

    def offer(self, *spans: Facts) -> None:
        """Take the facts of finished requests; never blocks. For one thread.

        Raises ValueError, and takes none, for a fact of a type that CompletionSpan does not have.
        """
        self._queue.put(spans)
        handed_over = self._offered // self._together
        self._offered += len(spans)
        # At every so many and not at each one, if the child is behind: it may read again.
        if self._offered // self._together > handed_over and not self._queue.closed:
            self._hand_over()

    def close(self, timeout: float) -> bool:
        """Have what is waiting sent in `timeout` seconds, and end the process.

        Returns whether it ended in time with nothing left behind.
        """
        if self._queue.closed:
            return True
        self._queue.close()
        self._closing.set()
        give_up = time.monotonic() + timeout
        left = 0
        try:
            with self._turn, self._socket:
                left = len(self._queue)
                last = pack(self._queue.take(left), self._queue.overflow, give_up)
                self._socket.settimeout(max(give_up - time.monotonic(), 0))
                self._socket.sendall(self._unsent + last)
            code = self._process.wait(max(give_up - time.monotonic(), 0) + EXIT_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
            log.warning(
                "the process that exports spans is gone or did not end in time; "
                "the last %d spans are lost, and what it held",
                left,
            )
            return False
        return code == 0

    def _start(self) -> None:
        """Start a child; a message that the one before it got in part is lost."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = subprocess.Popen(
                    COMMAND,
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C reaches the engine alone
                )
            except OSError:
                ours.close()
                raise
        self._socket = ours
        self._unsent = pack_config(self._config)
        self._restart_at = None

    def _keep_time(self) -> None:
        """Hand over what has waited long enough, and replace a child that died."""
        while not self._closing.wait(min(self._config.schedule_delay / 2, RESTART_SECONDS)):
            with self._turn:
                if self._closing.is_set():  # the socket is no longer ours
                    return
                if self._restart_at is None:
                    self._send()
                elif time.monotonic() >= self._restart_at:
                    self._restart()

    def _hand_over(self) -> None:
        """Give the child some of what waits, unless another thread is at it."""
        if self._turn.acquire(blocking=False):
            try:
                if self._restart_at is None:
                    self._send(MESSAGES_PER_TURN)
            finally:
                self._turn.release()

    def _send(self, messages: int = sys.maxsize) -> None:
        """Write so many messages, as far as the socket takes them without making us wait."""
        try:
            while self._unsent or self._queue or self._queue.overflow != self._overflow_told:
                if not self._unsent:
                    if not messages:
                        return
                    messages -= 1
                    self._overflow_told = self._queue.overflow
                    self._unsent = pack(self._queue.take(self._together), self._overflow_told)
                sent = self._socket.send(self._unsent, socket.MSG_DONTWAIT)
                self._unsent = self._unsent[sent:]
        except BlockingIOError:
            pass
        except OSError:
            self._bury()

    def _restart(self) -> None:
        try:
            self._start()
        except OSError as problem:
            self._restart_at = time.monotonic() + RESTART_SECONDS
            log.error("the process that exports spans cannot be started: %s", problem)
        else:
            self._send()

    def _bury(self) -> None:
        """Note that the child is dead."""
        self._socket.close()
        self._process.kill()  # if it only closed its end
        code = self._process.wait()
        self._unsent = b""
        self._restart_at = time.monotonic() + RESTART_SECONDS
        log.error(
            "the process that exports spans ended (exit code %d), and spans with it; "
            "another is started in %g s",
            code,
            RESTART_SECONDS,
        )
