"""Connections without a network: a hand-driven event loop, and a kernel made of byte arrays.

`MemoryLoop` stands for the event loop. Its clock moves only when told to, so a test of a
deadline takes no time. `MemorySocket` is the server's end of a connection as the kernel shows
it: a receive queue, a send buffer of a fixed size, end of file and reset in both directions.
The one rule of TCP that servers forget is kept: a socket that is closed with bytes unread, or
that gets bytes after its close, resets the connection, and the client may lose its answer.
A `Client` is the other end.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import socket
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import cast

from support.wire import Reply, parse_reply
from tinyllm.serving.edge import TOLD_WITHIN, Edge
from tinyllm.serving.exchange import Exchange
from tinyllm.serving.limits import Limits
from tinyllm.serving.responses import Pending, Response
from tinyllm.wire import Request

SEND_BUFFER = 32 * 1024  # what the kernel takes for a client that does not read
ENDLESS = 2**60

Callback = Callable[[], object]


class Timer:
    """What `call_later` returns."""

    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class MemoryLoop:
    """What the server asks of an event loop, with time that passes on demand."""

    def __init__(self) -> None:
        self._now = 1000.0
        self._ready: deque[Callback] = deque()
        self._timers: list[tuple[float, int, Timer, Callback]] = []
        self._numbers = itertools.count()
        self._readers: dict[MemorySocket, Callback] = {}
        self._writers: dict[MemorySocket, Callback] = {}

    def time(self) -> float:
        return self._now

    def call_soon(self, callback: Callable[..., object], *args: object) -> None:
        self._ready.append(lambda: callback(*args))

    def call_later(self, delay: float, callback: Callback) -> Timer:
        timer = Timer()
        heapq.heappush(self._timers, (self._now + delay, next(self._numbers), timer, callback))
        return timer

    def add_reader(self, sock: MemorySocket, callback: Callback) -> None:
        assert sock.fileno() >= 0, "a closed socket is watched"
        self._readers[sock] = callback

    def remove_reader(self, sock: MemorySocket) -> bool:
        return self._readers.pop(sock, None) is not None

    def add_writer(self, sock: MemorySocket, callback: Callback) -> None:
        assert sock.fileno() >= 0, "a closed socket is watched"
        self._writers[sock] = callback

    def remove_writer(self, sock: MemorySocket) -> bool:
        return self._writers.pop(sock, None) is not None

    @property
    def watched(self) -> int:
        """How many sockets the loop still waits for."""
        return len(self._readers.keys() | self._writers.keys())

    def poll(self) -> None:
        """Find the sockets that are ready, as epoll does."""
        for watched, is_ready in (
            (self._readers, MemorySocket.is_readable),
            (self._writers, MemorySocket.is_writable),
        ):
            self._ready += [partial(_call, watched, sock) for sock in watched if is_ready(sock)]

    def round(self) -> bool:
        """Poll, and run what was ready; False when nothing was."""
        self.poll()
        count = len(self._ready)
        for _ in range(count):
            self._ready.popleft()()
        return count > 0

    def run(self) -> None:
        """Run until nothing is ready."""
        for _ in range(100_000):
            if not self.round():
                return
        raise AssertionError("the loop is busy with nothing")

    def pass_time(self, seconds: float) -> None:
        """Let time pass in which the loop does not get to anything."""
        self._now += seconds

    def advance(self, seconds: float) -> None:
        """Let time pass, with every timer that becomes due."""
        end = self._now + seconds
        self.run()
        while self._timers and self._timers[0][0] <= end:
            at, _, timer, callback = heapq.heappop(self._timers)
            self._now = max(self._now, at)
            if not timer.cancelled:
                callback()
            self.run()
        self._now = max(self._now, end)


def _call(watched: dict[MemorySocket, Callback], sock: MemorySocket) -> None:
    """Call whoever waits for the socket, if he still does."""
    if (callback := watched.get(sock)) is not None:
        callback()


class MemorySocket:
    """The server's end of one connection, or its listening socket."""

    _numbers = itertools.count(1000)

    def __init__(self) -> None:
        self._number = next(self._numbers)
        self.backlog: deque[tuple[MemorySocket, object]] = deque()  # of a listening socket
        self.accept_error: OSError | None = None
        self.arrived = bytearray()  # from the client, not yet received
        self.arrived_end = False
        self.reset_by_client = False
        self.buffered = bytearray()  # sent, not yet taken by the client
        self.send_buffer = ENDLESS  # a client that reads takes everything at once
        self.sent_end = False
        self.closed = False
        self.sent_reset = False
        self.resets_on_close = False

    def setblocking(self, flag: bool) -> None:
        assert not flag, "only a listening socket is asked, not to block"

    def setsockopt(self, level: int, option: int, value: int | bytes) -> None:
        if option == socket.SO_LINGER:
            self.resets_on_close = True

    def fileno(self) -> int:
        return -1 if self.closed else self._number

    def accept(self) -> tuple[MemorySocket, object]:
        if self.accept_error is not None:
            raise self.accept_error
        if not self.backlog:
            raise BlockingIOError
        return self.backlog.popleft()

    def recv(self, size: int, flags: int = 0) -> bytes:
        assert not self.closed
        if self.reset_by_client:
            raise ConnectionResetError
        if not self.arrived:
            if self.arrived_end:
                return b""
            raise BlockingIOError
        data = bytes(self.arrived[:size])
        if not flags & socket.MSG_PEEK:
            del self.arrived[:size]
        return data

    def send(self, data: bytes | bytearray | memoryview, flags: int = 0) -> int:
        assert not self.closed
        assert not self.sent_end, "bytes after the end of file"
        if self.reset_by_client:
            raise BrokenPipeError
        room = self.send_buffer - len(self.buffered)
        if room <= 0:
            raise BlockingIOError
        taken = bytes(data[:room])
        self.buffered += taken
        return len(taken)

    def shutdown(self, how: int) -> None:
        assert how == socket.SHUT_WR
        if self.reset_by_client:
            raise OSError("not connected")
        self.sent_end = True

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.sent_end = True
            self.sent_reset = bool(self.arrived) or self.resets_on_close

    def is_readable(self) -> bool:
        return bool(
            self.backlog
            or self.accept_error
            or self.arrived
            or self.arrived_end
            or self.reset_by_client
        )

    def is_writable(self) -> bool:
        return self.reset_by_client or len(self.buffered) < self.send_buffer


class Client:
    """The other end of a connection. It reads whatever comes, unless told to stop."""

    def __init__(self, loop: MemoryLoop, listener: MemorySocket, peer: object) -> None:
        self._loop = loop
        self._received = bytearray()
        self.socket = MemorySocket()  # the server's end
        listener.backlog.append((self.socket, peer))

    def send(self, data: bytes) -> None:
        """Send bytes and let the loop run."""
        self.send_quietly(data)
        self._loop.run()

    def send_quietly(self, data: bytes) -> None:
        """Send bytes, but leave it to the test to run the loop."""
        if self.socket.closed:
            self.socket.sent_reset = True
        else:
            self.socket.arrived += data

    def finish_sending(self) -> None:
        """Shut down the sending side."""
        self.socket.arrived_end = True
        self._loop.run()

    def reset(self) -> None:
        self.socket.reset_by_client = True
        self._loop.run()

    def stop_reading(self) -> None:
        self.socket.send_buffer = SEND_BUFFER

    def take(self, count: int) -> None:
        """Read so many bytes of what waits, and let the loop run."""
        self._received += self.socket.buffered[:count]
        del self.socket.buffered[:count]
        self._loop.run()

    def take_all(self) -> None:
        """Read on, to the end."""
        while self.socket.buffered:
            self.take(len(self.socket.buffered))

    @property
    def received(self) -> bytes:
        """What has come so far, read or waiting to be read."""
        return bytes(self._received + self.socket.buffered)

    @property
    def reply(self) -> Reply:
        """The one answer that came, taken apart."""
        return parse_reply(self.received)

    @property
    def ended(self) -> bool:
        """Whether the server will send nothing more."""
        return self.socket.sent_end

    @property
    def closed(self) -> bool:
        """Whether the server has closed the connection in both directions."""
        return self.socket.closed

    @property
    def was_reset(self) -> bool:
        """Whether the server's kernel answered with a reset, which may cost the answer."""
        return self.socket.sent_reset


class Port:
    """An edge on a loop of its own, and the exchanges that are over."""

    def __init__(
        self,
        dispatch: Callable[[Request, Exchange], Response | Pending],
        limits: Limits | None = None,
    ) -> None:
        self.loop = MemoryLoop()
        self.listener = MemorySocket()
        self._exchanges: list[Exchange] = []
        loop = cast(asyncio.AbstractEventLoop, self.loop)
        self.edge = Edge(loop, dispatch, self._exchanges.extend, limits or Limits())
        self.edge.listen(cast(socket.socket, self.listener))

    def tell(self) -> None:
        """Let the edge tell of the exchanges that are over."""
        self.loop.advance(TOLD_WITHIN)

    @property
    def exchanges(self) -> list[Exchange]:
        """Those that are over."""
        self.tell()
        return self._exchanges

    def connect(self, peer: object = ("192.0.2.1", 50000)) -> Client:
        """Connect and be accepted."""
        client = self.connect_quietly(peer)
        self.loop.run()
        return client

    def connect_quietly(self, peer: object = ("192.0.2.1", 50000)) -> Client:
        """Connect, and wait in the kernel's queue."""
        return Client(self.loop, self.listener, peer)


MakePort = Callable[..., Port]  # keyword arguments are limits
