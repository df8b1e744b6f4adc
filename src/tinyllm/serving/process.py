"""What a server does to its own process before it serves: standard files, signals, descriptors."""

from __future__ import annotations

import logging
import os
import resource
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
# Descriptors beside those of connections: listeners, event loops, files, clients turned away.
OTHER_DESCRIPTORS: Final = 512

logger = logging.getLogger("tinyllm.serving")


def open_standard_files() -> None:
    """Open /dev/null for each standard file that the process was started without.

    The next socket would get its number otherwise, and whatever is printed would go there.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - for as long as we live
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def end_on_signals() -> None:
    """Let SIGTERM and SIGINT end the process with exit code 0: there is nothing to drain.

    Those that came while they were held count.
    """
    if threading.current_thread() is threading.main_thread():
        for number in STOP_SIGNALS:
            signal.signal(number, _end)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


@contextmanager
def holding_signals() -> Iterator[None]:
    """Hold SIGTERM and SIGINT back, also from a process that is started meanwhile.

    It would die of them, with an exit code of its own, before it can say what they mean to it.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)


def make_room_for(connections: int) -> int:
    """Raise the limit of open files as far as needed; return how many connections it allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + OTHER_DESCRIPTORS
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return connections
    soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    fit = soft * 3 // 4
    if soft == needed or fit >= connections:
        return connections
    logger.warning(
        "--max-connections %d needs %d open files; %d are allowed, so it is taken as %d",
        connections,
        needed,
        soft,
        fit,
    )
    return fit


def say(text: str) -> None:
    """Print to stdout. If that cannot be written, say so once: nobody needs it for being served."""
    try:
        print(text, flush=True)  # noqa: T201
    except OSError as error:
        logger.warning("nothing more is said on stdout: %s", error.strerror)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())  # what it still holds goes there at the exit
        os.close(null)
