"""Several processes behind one port: a supervisor that serves nothing itself.

The supervisor binds the socket and hands it to every worker, so all take connections from one
queue and a worker that dies takes along only the answers it was giving. Between supervisor
and worker runs one socket pair, the lifeline: the worker writes a byte when it accepts, and
either side learns of the other's death as end of file, however it died. The supervisor
replaces workers that end, passes signals on, answers the health port for the group, and ends
when the last worker has.
"""

from __future__ import annotations

import argparse
import logging
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tinyllm.serving.health import SHUTTING_DOWN, HealthPort
from tinyllm.serving.lifecycle import FLUSH_SECONDS
from tinyllm.serving.process import STOP_SIGNALS, holding_signals

RESTART_PAUSE: Final = 1.0  # seconds before a worker that ended at once is started again
STARTS_IN_VAIN: Final = 5  # workers in a row that never accepted, after which the group gives up
PATIENCE_SECONDS: Final = 2.0  # beyond grace and flush, before a worker is killed

logger = logging.getLogger("tinyllm.serving")


def worker_command(args: argparse.Namespace, model_dir: Path) -> list[str]:
    """Return the command of one worker: the server's own arguments, less the ports."""
    # Without -P a file of the current folder could stand in for a module of the library.
    command = [sys.executable, "-P", "-m", "tinyllm.serving.cli", "--model-dir", str(model_dir)]
    command.append("--access-log" if args.access_log else "--no-access-log")
    for name in (
        "log_format",
        "grace",
        "keep_alive",
        "loop",
        "head_timeout",
        "body_timeout",
        "idle_timeout",
        "stall_timeout",
        "max_connections",
        "max_body_bytes",
    ):
        command += [f"--{name.replace('_', '-')}", str(getattr(args, name))]
    return command


class Worker:
    """One worker process and the supervisor's end of its lifeline."""

    def __init__(self, command: Sequence[str], listener: socket.socket) -> None:
        self.lifeline, theirs = socket.socketpair()
        with theirs, holding_signals():
            fds = (listener.fileno(), theirs.fileno())
            self.process = subprocess.Popen(
                [*command, "--listen-fd", str(fds[0]), "--lifeline-fd", str(fds[1])],
                pass_fds=fds,
                stdin=subprocess.DEVNULL,
                process_group=0,  # Ctrl-C reaches the supervisor alone, which passes it on
            )
        self.started = time.monotonic()
        self.accepting = False

    def how_it_ended(self) -> str:
        """Return the end in words. It has lost its lifeline, so it is at its end, or is made to."""
        try:
            code = self.process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"


class Supervisor:
    """Keeps `count` workers behind one listening socket until a signal ends them all."""

    def __init__(
        self, command: Sequence[str], count: int, listener: socket.socket, grace: float
    ) -> None:
        self._command = command
        self._count = count
        self._listener = listener
        self._patience = grace + 3 * FLUSH_SECONDS + PATIENCE_SECONDS  # spans, two logs
        self._selector = selectors.DefaultSelector()
        self._workers: set[Worker] = set()
        self._restart_at: list[float] = []  # monotonic times
        self._in_vain = 0
        self._gave_up = False
        self._stop_at: float | None = None  # when what still runs is killed

    def run(self, health_listener: socket.socket, started: Callable[[], None]) -> int:
        """Run the group; return the exit code of the whole."""
        wakeup, signalled = socket.socketpair()
        signalled.setblocking(False)
        signal.set_wakeup_fd(signalled.fileno())
        for number in STOP_SIGNALS:
            signal.signal(number, lambda *_: None)
        self._selector.register(wakeup, selectors.EVENT_READ, None)
        health = HealthPort(health_listener, self._unavailable)
        for _ in range(self._count):
            self._start()
        announced = False
        while self._workers or self._restart_at:
            for key, _ in self._selector.select(self._pause()):
                if key.data is None:
                    self._on_signal(wakeup.recv(64))
                else:
                    self._hear(key.data)
            self._keep_time()
            if not announced and not self._unavailable():
                announced = True
                started()
        health.close()
        signal.set_wakeup_fd(-1)
        return 1 if self._gave_up else 0

    def _unavailable(self) -> str:
        """Return why the group takes no requests, "" if it does; the health port's thread asks."""
        if self._stop_at is not None:
            return SHUTTING_DOWN
        return "" if any(worker.accepting for worker in tuple(self._workers)) else "no worker is up"

    def _start(self) -> None:
        try:
            worker = Worker(self._command, self._listener)
        except OSError as error:  # no process or descriptor is to be had: those that run go on
            self._start_again(f"a worker could not be started: {error.strerror}", RESTART_PAUSE)
            return
        self._workers.add(worker)
        self._selector.register(worker.lifeline, selectors.EVENT_READ, worker)

    def _hear(self, worker: Worker) -> None:
        """Note that a worker accepts, or that it is no more."""
        if self._received(worker):
            worker.accepting = True
            self._in_vain = 0
            return
        self._selector.unregister(worker.lifeline)
        worker.lifeline.close()
        self._workers.discard(worker)
        end = f"worker {worker.process.pid} {worker.how_it_ended()}"
        if self._stop_at is not None:
            if worker.process.returncode:
                logger.warning("%s while the server was shutting down", end)
            return
        lived = time.monotonic() - worker.started
        self._start_again(end, RESTART_PAUSE if lived < RESTART_PAUSE else 0, worker.accepting)

    def _start_again(self, why: str, pause: float, accepted: bool = False) -> None:
        """Start another worker in `pause` seconds, unless too many in a row came to nothing."""
        self._in_vain += not accepted
        if self._in_vain >= STARTS_IN_VAIN and self._unavailable():
            logger.error("%s; giving up after %d starts in vain", why, self._in_vain)
            self._gave_up = True
            self._stop()
            return
        logger.warning("%s; starting another", why)
        self._restart_at.append(time.monotonic() + pause)

    @staticmethod
    def _received(worker: Worker) -> bytes:
        try:
            return worker.lifeline.recv(1)
        except ConnectionError:
            return b""

    def _pause(self) -> float | None:
        """Return for how many seconds nothing is due; None: for ever."""
        due = [*self._restart_at, *([] if self._stop_at is None else [self._stop_at])]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _keep_time(self) -> None:
        """Start the workers that are due, and kill those that should have ended."""
        now = time.monotonic()
        for _ in [at for at in self._restart_at if at <= now]:
            self._start()
        self._restart_at = [at for at in self._restart_at if at > now]
        if self._stop_at is not None and self._stop_at <= now:
            logger.warning("%d workers did not end in time; killing them", len(self._workers))
            self._stop_at = now + PATIENCE_SECONDS
            for worker in self._workers:
                worker.process.kill()

    def _on_signal(self, numbers: bytes) -> None:
        for number in numbers:
            if number in STOP_SIGNALS:
                self._stop()

    def _stop(self) -> None:
        """Pass a signal on; from the first one on, nothing is started any more.

        The first is SIGTERM, further ones SIGINT, whatever came: two signals of one number can
        arrive as one, and a worker that is slow to wake would not learn of the second.
        """
        number = signal.SIGINT
        if self._stop_at is None:
            number = signal.SIGTERM
            self._stop_at = time.monotonic() + self._patience
            self._listener.close()
        self._restart_at.clear()
        for worker in self._workers:
            worker.process.send_signal(number)
