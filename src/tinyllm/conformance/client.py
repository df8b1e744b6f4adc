"""A client that sends exactly the bytes it is given and stamps every read with its time.

It never waits without an end: each connection has one deadline for everything it does, however
the server drips its bytes, and holds at most MAX_RECEIVED_BYTES of what comes back. A hanging, a
babbling and a vanished server all end in a `CheckFailed` that says which it was.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time
from dataclasses import dataclass
from typing import Final

from tinyllm.conformance.evidence import Exchange, NoAnswer, fail

MAX_RECEIVED_BYTES: Final = 8 * 1024 * 1024  # far above the longest honest stream
READ_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens, and what is written in front of every target."""

    host: str
    port: int
    prefix: str = ""

    @property
    def authority(self) -> str:
        """The Host field's value (RFC 9110, section 7.2)."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class Connection:
    """One TCP connection with a record of all that passed, and a deadline for all of it."""

    def __init__(self, address: Address, deadline: float) -> None:
        self.exchange = Exchange(address.authority)
        self.deadline = deadline
        self.position = 0  # how much of exchange.received a reader has taken
        try:
            self._socket = socket.create_connection((address.host, address.port), self._left())
        except OSError as error:
            self.exchange.end = f"not connected: {error}"
            raise NoAnswer(f"cannot connect to {address.authority}: {error}") from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data: bytes) -> None:
        """Send these bytes; a server that stopped reading may still have answered, so go on."""
        try:
            self._socket.settimeout(self._left())
            self._socket.sendall(data)
        except TimeoutError:
            self.exchange.end = "the server stopped reading"
        except OSError as error:
            self.exchange.end = f"while sending: {error.strerror or error}"
        self.exchange.sent += data
        self.exchange.writes.append((len(self.exchange.sent), time.monotonic()))

    def receive(self) -> bool:
        """Read once; False when the server has closed. Raises NoAnswer on a reset or too late."""
        try:
            self._socket.settimeout(self._left())
            data = self._socket.recv(READ_BYTES)
        except TimeoutError:
            self.exchange.end = "timed out"
            raise NoAnswer(self._late(), self.exchange) from None
        except OSError as error:
            self.exchange.end = f"{error.strerror or error}"
            raise NoAnswer(
                f"the connection broke ({self.exchange.end}) after {len(self.exchange.received)} "
                "bytes, without a clean end",
                self.exchange,
            ) from None
        if not data:
            self.exchange.end = "closed by the server"
            return False
        self.exchange.received += data
        self.exchange.reads.append((len(self.exchange.received), time.monotonic()))
        if len(self.exchange.received) > MAX_RECEIVED_BYTES:
            fail(f"more than {MAX_RECEIVED_BYTES} bytes came back", self.exchange.mark(0, 80))
        return True

    def receive_to_end(self) -> None:
        """Read until the server closes."""
        while self.receive():
            pass

    def readable(self) -> bool:
        """Whether something has come that was not read yet."""
        return bool(select.select([self._socket], [], [], 0)[0])

    def finish_sending(self) -> None:
        """Shut down the sending side only: the server sees the end of the stream."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def abort(self) -> None:
        """Close with a reset, as a client does whose process ends with bytes unread."""
        linger_zero = struct.pack("ii", 1, 0)
        with contextlib.suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_zero)
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self.exchange.end == "open":
            self.exchange.end = "closed by the runner"
        self._socket.close()

    def _left(self) -> float:
        """Seconds until the deadline; never 0, which would mean "do not block"."""
        return max(0.001, self.deadline - time.monotonic())

    def _late(self) -> str:
        count = len(self.exchange.received)
        begun = self.exchange.writes[0][1] if self.exchange.writes else self.deadline
        waited = max(0.0, time.monotonic() - begun)
        if count == 0:
            return f"no answer within {waited:.1f} s"
        return f"the answer was not whole within {waited:.1f} s ({count} bytes came)"
