"""Connections without sockets: a hand-driven loop, and a transport whose client is the test.

`MemoryLoop` stands for the event loop: it has a clock that moves only when told to, so a test
of a deadline takes no time. `MemoryTransport` behaves as asyncio documents a transport to: a
high-water mark, a buffer that only a reading client empties, end of file, close and abort. A
`Client` is the other end of one connection.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import socket
from collections import deque
from collections.abc import Callable
from typing import Any, cast

from support.wire import Reply, parse_reply
from tinyllm.serving.edge import Edge
from tinyllm.serving.exchange import Exchange
from tinyllm.serving.limits import Limits
from tinyllm.serving.responses import Pending, Response
from tinyllm.wire import Request

HIGH_WATER = 64 * 1024  # asyncio's and uvloop's default
LOW_WATER = HIGH_WATER // 4


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
        self._ready: deque[Callable[[], object]] = deque()
        self._timers: list[tuple[float, int, Timer, Callable[[], object]]] = []
        self._numbers = itertools.count()
        self.factory: Callable[[], asyncio.Protocol] | None = None

    def time(self) -> float:
        return self._now

    def call_soon(self, callback: Callable[..., object], *args: object) -> None:
        self._ready.append(lambda: callback(*args))

    def call_later(self, delay: float, callback: Callable[[], object]) -> Timer:
        timer = Timer()
        heapq.heappush(self._timers, (self._now + delay, next(self._numbers), timer, callback))
        return timer

    async def create_server(
        self, factory: Callable[[], asyncio.Protocol], *, sock: socket.socket, backlog: int
    ) -> None:
        self.factory = factory

    def round(self) -> bool:
        """Run what was ready; False when nothing was."""
        count = len(self._ready)
        for _ in range(count):
            self._ready.popleft()()
        return count > 0

    def run(self) -> None:
        """Run until nothing is ready."""
        while self.round():
            pass

    def advance(self, seconds: float) -> None:
        """Let time pass, with every timer that becomes due."""
        end = self._now + seconds
        self.run()
        while self._timers and self._timers[0][0] <= end:
            self._now, _, timer, callback = heapq.heappop(self._timers)
            if not timer.cancelled:
                callback()
            self.run()
        self._now = end


class MemoryTransport(asyncio.Transport):
    """One connection's server side; what the client has read is in `received`."""

    def __init__(self, loop: MemoryLoop, protocol: asyncio.Protocol, peer: object) -> None:
        super().__init__({"peername": peer})
        self.received = bytearray()
        self.client_reads = True
        self.reading = True
        self.eof_written = False
        self.aborted = False
        self.lost = False
        self.peak = 0  # the most that the buffer held
        self._loop = loop
        self._protocol = protocol
        self._buffer = bytearray()
        self._closing = False
        self._full = False

    # The server's side

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        assert not self.eof_written, "asyncio: cannot call write() after write_eof()"
        if self._closing:
            return  # as asyncio does
        self._buffer += data
        if self.client_reads:
            self._pass_on(len(self._buffer))
        self.peak = max(self.peak, len(self._buffer))
        if len(self._buffer) > HIGH_WATER and not self._full:
            self._full = True
            self._protocol.pause_writing()

    def get_write_buffer_size(self) -> int:
        return len(self._buffer)

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.eof_written = True

    def is_closing(self) -> bool:
        return self._closing

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self.reading = False
            if not self._buffer:
                self._lose(None)

    def abort(self) -> None:
        self._closing = self.aborted = True
        self.reading = False
        self._buffer.clear()
        self._lose(None)

    # The client's side

    def _pass_on(self, count: int) -> None:
        self.received += self._buffer[:count]
        del self._buffer[:count]

    def client_takes(self, count: int) -> None:
        """Let the client read some bytes."""
        self._pass_on(count)
        if self._full and len(self._buffer) <= LOW_WATER and not self._closing:
            self._full = False
            self._protocol.resume_writing()
        if self._closing and not self._buffer:
            self._lose(None)

    def client_resets(self) -> None:
        self._closing = True
        self._buffer.clear()
        self._lose(ConnectionResetError())

    def _lose(self, error: Exception | None) -> None:
        if not self.lost:
            self.lost = True
            self._loop.call_soon(self._protocol.connection_lost, error)


class Client:
    """The other end of a connection. Bytes arrive at once; answers come when the loop runs."""

    def __init__(self, loop: MemoryLoop, protocol: asyncio.Protocol, peer: object) -> None:
        self.transport = MemoryTransport(loop, protocol, peer)
        self.protocol = protocol
        self._loop = loop
        protocol.connection_made(self.transport)

    def send(self, data: bytes) -> None:
        """Send bytes and let the loop run; refused once the server does not read any more."""
        self.send_quietly(data)
        self._loop.run()

    def send_quietly(self, data: bytes) -> None:
        """Send bytes, but leave it to the test to run the loop."""
        assert self.transport.reading, "the server has stopped reading"
        self.protocol.data_received(data)

    def finish_sending(self) -> None:
        """Shut down the sending side."""
        if not self.protocol.eof_received():
            self.transport.close()
        self._loop.run()

    def reset(self) -> None:
        self.transport.client_resets()
        self._loop.run()

    def stop_reading(self) -> None:
        self.transport.client_reads = False

    def take(self, count: int) -> None:
        """Read so many bytes of what waits."""
        self.transport.client_takes(count)
        self._loop.run()

    def take_all(self) -> None:
        """Read on, to the end."""
        self.transport.client_reads = True
        while self.transport.get_write_buffer_size():
            self.take(self.transport.get_write_buffer_size())

    @property
    def received(self) -> bytes:
        return bytes(self.transport.received)

    @property
    def closed(self) -> bool:
        """Whether the connection is over in both directions."""
        return self.transport.lost

    @property
    def sees_the_end(self) -> bool:
        """Whether the server will send nothing more."""
        return self.transport.lost or self.transport.eof_written

    def reply(self) -> Reply:
        """The one answer that came, taken apart."""
        return parse_reply(self.received)


class Port:
    """An edge on a loop of its own, its clients, and the exchanges that are over."""

    def __init__(
        self,
        dispatch: Callable[[Request, Exchange], Response | Pending],
        limits: Limits | None = None,
    ) -> None:
        self.loop = MemoryLoop()
        self.exchanges: list[Exchange] = []
        loop = cast(asyncio.AbstractEventLoop, self.loop)
        self.edge = Edge(loop, dispatch, self.exchanges.append, limits or Limits())
        with socket.socket() as unused:
            listening = self.edge.listen(unused)
            try:
                listening.send(None)
            except StopIteration:
                return
        raise AssertionError("the memory loop never suspends")

    def connect(self, peer: object = ("192.0.2.1", 50000)) -> Client:
        assert self.loop.factory is not None
        return Client(self.loop, self.loop.factory(), peer)


MakePort = Callable[..., Port]  # keyword arguments are limits
