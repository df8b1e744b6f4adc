"""The other end of a pipe: a process that counts what it is given.

It gets pieces until None, answers with the bytes it has read (int) and with None after each
piece, and last with its two parts. A TrainingError is an answer too, and its last one. When
the pipe is closed, nobody is left to count for, and it ends.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from multiprocessing.connection import Connection

from tinyllm.training.errors import TrainingError
from tinyllm.training.holdout import Segment
from tinyllm.training.tally import Tally

ANSWER_BYTES = 4 * 1024 * 1024  # how often it says how far it is

Answer = int | None | TrainingError | tuple[Segment, Segment]


def work(connection: Connection, holdout: float) -> None:
    """Count what comes through the pipe, until None or until nobody is there."""
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        try:
            _count_all(connection, Tally(holdout))
        except TrainingError as error:
            connection.send(error)


def _count_all(connection: Connection, tally: Tally) -> None:
    """Count piece after piece, then send both parts."""
    while (piece := connection.recv()) is not None:
        progress = _Answers(connection)
        tally.count(piece, progress.advance)
        progress.flush()
        connection.send(None)
    connection.send((tally.train.take(), tally.held_out.take()))


class _Answers:
    """Gathers progress into answers that are few enough."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._bytes = 0

    def advance(self, count: int) -> None:
        """So many more bytes were read."""
        self._bytes += count
        if self._bytes >= ANSWER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Say what has not been said yet."""
        self._connection.send(self._bytes)
        self._bytes = 0


if __name__ == "__main__":
    work(Connection(int(sys.argv[1])), float(sys.argv[2]))
