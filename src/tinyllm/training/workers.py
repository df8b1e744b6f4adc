"""Count pieces in several processes.

Threads would not do: numpy counts under the GIL. A worker (worker.py) is a fresh interpreter at
the other end of one pipe: forking a process that may have threads is not safe, and
multiprocessing's own way of starting one runs the caller's main module again and one process
more to look after it. Two ranges at most are on their way to a worker, so that it need not
wait for the next one; whatever no worker has room for this process counts itself. So it works
while the others still start, and none is idle while there is a range left.

A worker whose pipe is closed ends, so none outlives this process however that ends. Ctrl-C
reaches every process of the terminal's group; workers have one of their own, and leave it to
this process to end them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, Pipe, wait
from typing import TYPE_CHECKING

from tinyllm.training.errors import TrainingError, explain
from tinyllm.training.options import MAX_PROCESSES
from tinyllm.training.pieces import Piece, Range
from tinyllm.training.progress import Progress

if TYPE_CHECKING:  # these import numpy, which takes as long as a worker takes to start
    from tinyllm.training.holdout import Segment
    from tinyllm.training.tally import Tally
    from tinyllm.training.worker import Answer

MAX_ON_THE_WAY = 2
BYTES_PER_PROCESS = 64 * 1024 * 1024  # a worker takes about as long to start as to count this
WORKER_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1"}  # its threads, made at import, stand idle


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def worthwhile_processes(stored_bytes: int) -> int:
    """Return how many processes a text of this size is worth on this machine."""
    return max(1, min(available_cores(), MAX_PROCESSES, stored_bytes // BYTES_PER_PROCESS))


def count_pieces(
    pieces: Iterable[Piece], tally: Tally, progress: Progress, workers: Sequence[Worker] = ()
) -> None:
    """Count all pieces into `tally`; raise TrainingError when one cannot be read."""
    pipes = []
    for piece in pieces:
        if not isinstance(piece, Range) and piece.stored_bytes is None:
            pipes.append(piece)  # open in this process alone, and read while the others work
        elif worker := _worker_for(piece, workers, progress):
            worker.give(piece)
        else:
            tally.count(piece, progress.advance)
    for pipe in pipes:
        tally.count(pipe, progress.advance)
    for worker in workers:
        worker.give(None)
    for worker in workers:
        while worker.parts is None:
            _listen(workers, progress)
        tally.merge(*worker.parts)


@contextmanager
def started_workers(count: int, holdout: float) -> Iterator[list[Worker]]:
    """Start workers, and end them when the block is left; raise TrainingError.

    They are ready after about as long as importing numpy takes.
    """
    workers: list[Worker] = []
    try:
        for _ in range(count):
            workers.append(_start(holdout))
        yield workers
    finally:
        for worker in workers:
            worker.end()


class Worker:
    """A process that counts, as the one that gives it pieces sees it."""

    def __init__(self, connection: Connection, process: subprocess.Popen[bytes]) -> None:
        self.connection = connection
        self.parts: tuple[Segment, Segment] | None = None  # once it has ended
        self._process = process
        self._on_the_way: list[Piece] = []

    def has_room_for(self, piece: Piece) -> bool:
        """Tell whether the piece would soon be counted; nobody knows how long a stream takes."""
        if not isinstance(piece, Range) or any(not isinstance(p, Range) for p in self._on_the_way):
            return not self._on_the_way
        return len(self._on_the_way) < MAX_ON_THE_WAY

    def give(self, piece: Piece | None) -> None:
        """Send a piece, or None: there are no more. Raises TrainingError when it has ended."""
        try:
            self.connection.send(piece)
        except OSError:
            self.take_answers(Progress())  # it may have said why
            raise self._death() from None
        if piece is not None:
            self._on_the_way.append(piece)

    def take_answers(self, progress: Progress) -> None:
        """Take what it has answered by now; raise TrainingError when it failed or died."""
        while self.parts is None and self.connection.poll():
            try:
                answer: Answer = self.connection.recv()
            except (EOFError, OSError):
                raise self._death() from None
            if isinstance(answer, TrainingError):
                raise answer
            if isinstance(answer, int):
                progress.advance(answer)
            elif answer is None:
                self._on_the_way.pop(0)
            else:
                self.parts = answer

    def _death(self) -> TrainingError:
        """Return the error for a process that ended without a word."""
        self._process.wait()
        return TrainingError(f"a worker process died (exit code {self._process.returncode})")

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self.connection.close()
        self._process.terminate()
        self._process.wait()


def _worker_for(piece: Piece, workers: Sequence[Worker], progress: Progress) -> Worker | None:
    """Return a worker with room for the piece, None if this process shall count it itself."""
    for worker in workers:
        worker.take_answers(progress)
    while True:
        for worker in workers:
            if worker.has_room_for(piece):
                return worker
        if isinstance(piece, Range) or not workers:
            return None
        # This process must not lose itself in a long stream while the others wait for ranges.
        _listen(workers, progress)


def _listen(workers: Sequence[Worker], progress: Progress) -> None:
    """Wait for an answer, and take all that there are."""
    wait([worker.connection for worker in workers if worker.parts is None])
    for worker in workers:
        worker.take_answers(progress)


def _start(holdout: float) -> Worker:
    """Start one worker; raise TrainingError when the system refuses."""
    try:
        ours, theirs = Pipe()
        # -P: what lies in the current folder is text perhaps, and no module.
        command = [sys.executable, "-P", "-m", "tinyllm.training.worker", str(theirs.fileno())]
        process = subprocess.Popen(
            [*command, str(holdout)],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env={**os.environ, **WORKER_ENVIRONMENT, "PYTHONPATH": os.pathsep.join(sys.path)},
            process_group=0,
        )
        theirs.close()
    except OSError as error:
        raise TrainingError(f"cannot start a process: {explain(error)}") from error
    return Worker(ours, process)
