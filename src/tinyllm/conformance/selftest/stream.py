"""A socket as the self-test's servers see it: whole lines and bodies in, bytes out."""

from __future__ import annotations

import contextlib
import fcntl
import select
import socket
import sys
import termios
import time
from typing import Final

MOST_ON_ITS_WAY: Final = 64 * 1024  # bytes: generation pauses for a reader that does not read


class Gone(Exception):
    """The client has closed, or never said what it began to say."""


class Reset(Gone):
    """The client has broken its connection off."""


class Late(Exception):
    """The client took longer than it was given."""


class Stream:
    """One client's connection, with the bytes that were read and not used yet."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.buffer = bytearray()
        self.deadline: float | None = None
        self.reads = 0
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def fill(self) -> None:
        """Read once more. Raises Gone at the end of the stream, Late after the deadline."""
        if self.deadline is not None:
            self.socket.settimeout(max(0.001, self.deadline - time.monotonic()))
        try:
            data = self.socket.recv(65536)
        except TimeoutError:
            raise Late from None
        except OSError:
            raise Reset from None
        if not data:
            raise Gone
        self.reads += 1
        self.buffer += data

    def take(self, count: int) -> bytes:
        """Return exactly this many bytes."""
        while len(self.buffer) < count:
            self.fill()
        taken = bytes(self.buffer[:count])
        del self.buffer[:count]
        return taken

    def write(self, data: bytes) -> None:
        """Send these bytes now, and wait while too much is on its way. Raises Gone."""
        self.socket.settimeout(10)
        try:
            self.socket.sendall(data)
            while self.on_its_way() > MOST_ON_ITS_WAY and not self.broken():
                time.sleep(0.0005)
        except OSError:
            raise Gone from None

    def on_its_way(self) -> int:
        """Return how many bytes the client's kernel has not taken yet."""
        answer = fcntl.ioctl(self.socket, termios.TIOCOUTQ, bytes(4))
        return int.from_bytes(answer, sys.byteorder)

    def broken(self) -> bool:
        """Whether the connection was reset, or ended on both sides."""
        poll = select.poll()
        poll.register(self.socket, 0)  # errors and hang-ups are told in any case
        return bool(poll.poll(0))

    def close_gently(self) -> None:
        """End the sending side, drop what still comes for a while, and close (RFC 9112, 9.6)."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)
            self.socket.settimeout(0.2)
            end = time.monotonic() + 0.5
            while time.monotonic() < end and self.socket.recv(65536):
                pass
        self.socket.close()
