"""What a case saw: the bytes of each connection, and where in them a rule was broken.

An `Exchange` is one connection's record: what was sent, what came back, and when each read
happened. A `Mark` points into the bytes that came back. A case that finds a broken rule raises
`CheckFailed` with a mark, so that every report can show the offending part instead of telling
about it.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from typing import NoReturn


@dataclass(slots=True)
class Exchange:
    """One connection: every byte in both directions, with the time of each read.

    Times are seconds of the monotonic clock. `reads` holds (offset of the read's last byte + 1,
    time), `writes` the same for what was sent.
    """

    peer: str
    sent: bytearray = field(default_factory=bytearray)
    received: bytearray = field(default_factory=bytearray)
    writes: list[tuple[int, float]] = field(default_factory=list)
    reads: list[tuple[int, float]] = field(default_factory=list)
    end: str = "open"  # how it ended: closed by the server, reset, closed by the runner, ...
    dropped: int = 0  # bytes that came before `received` and were not kept

    def arrival(self, offset: int) -> float:
        """Return when the byte at this offset of `received` had been read."""
        index = bisect.bisect_right(self.reads, offset, key=lambda read: read[0])
        return self.reads[min(index, len(self.reads) - 1)][1]

    def hide(self, secret: str) -> None:
        """Put asterisks in place of a secret, byte for byte, so that marks stay where they are."""
        stars = b"*" * len(secret.encode())
        self.sent = self.sent.replace(secret.encode(), stars)
        self.received = self.received.replace(secret.encode(), stars)

    def mark(self, start: int, end: int | None = None) -> Mark:
        """Return a mark on received[start:end], by default up to the last byte."""
        return Mark(self, start, len(self.received) if end is None else end)


@dataclass(frozen=True, slots=True)
class Mark:
    """A part of what came back: exchange.received[start:end]; empty means "here"."""

    exchange: Exchange
    start: int
    end: int


class CheckFailed(Exception):
    """The server broke the rule that a case checks; `mark` shows where, if it can be shown."""

    def __init__(self, message: str, mark: Mark | Exchange | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.mark = mark.mark(len(mark.received)) if isinstance(mark, Exchange) else mark


class NoAnswer(CheckFailed):
    """Nothing came in time, or the connection broke before an answer did."""


class CaseSkipped(Exception):
    """The case cannot be run here, and says why; that is neither held nor broken."""


def fail(message: str, mark: Mark | Exchange | None = None) -> NoReturn:
    """Report a broken rule."""
    raise CheckFailed(message, mark)


def check(condition: bool, message: str, mark: Mark | Exchange | None = None) -> None:
    """Report a broken rule unless the condition holds."""
    if not condition:
        raise CheckFailed(message, mark)
