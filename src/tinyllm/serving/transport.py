"""The sockets of an edge: an acceptor, and a transport that asks the kernel for little.

Most requests are whole when their connection is accepted, and most answers are taken by the
kernel in one call. So an accepted socket is read at once, and only a connection that has to wait
is registered with the event loop: a plain answer costs accept, recv, send and close, where an
event loop's own transport adds six more calls and its objects. What is accepted together is also
answered together, all sends in a row, and so is what kept connections ask in one round of the loop:
each send then costs less, and so does what comes between them (benchmarks/README.md has the
microseconds).

`SocketTransport` keeps the rules of asyncio's transports as far as a `Connection` uses them,
above an event loop's add_reader and add_writer, so any event loop will do.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import Callable
from typing import Any, Final

READ_BYTES: Final = 64 * 1024
HIGH_WATER: Final = 64 * 1024  # bytes unsent above which the protocol is asked to pause
LOW_WATER: Final = 16 * 1024  # and below which to go on

SMALL_BYTES: Final = 16 * 1024  # of a last piece: it fits the first window of any connection

ACCEPTS_PER_TURN: Final = 8  # the first answer waits for the eighth, half a millisecond
ANSWERS_TOGETHER: Final = 8  # of kept connections, as many for the same reason
LAST_TURNS: Final = 256  # of accepting before the end: about what a listener's queue holds
ACCEPT_PAUSE: Final = 0.2  # seconds without accepting when the kernel could not give us one

# Every call is made without waiting; the flag saves the call that would make the socket so.
NO_WAIT: Final = socket.MSG_DONTWAIT
NO_WAIT_MORE: Final = NO_WAIT | getattr(socket, "MSG_MORE", 0)  # which Linux has

RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)  # socket(7): linger, for no time

NOBODY: Final = asyncio.Protocol()  # in the place of a protocol that has been told of the end

logger = logging.getLogger("tinyllm.serving")

Address = tuple[Any, ...]  # as the socket module gives it: host and port first


class Outbox:
    """What the connections of one round of the loop answer: the first at once, others together.

    Each send wakes a client, which costs a virtual machine 8 us if that client's core sleeps; of
    sends in a row the first pays it. Requests of 16 kept connections take 33 us, not 42. The first
    of a round waits for nobody, so a client alone is answered as fast as ever.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._begun = False  # this round has had its first answer
        self._held: list[SocketTransport] = []

    def holds(self) -> bool:
        """Whether an answer made now is to wait for others; it is given to `put` then."""
        if self._begun:
            return True
        self._begun = True
        self._loop.call_soon(self._end_round)
        return False

    def put(self, transport: SocketTransport) -> None:
        """Uncork a transport when others have answered too, or the round has ended."""
        self._held.append(transport)
        if len(self._held) == ANSWERS_TOGETHER:
            self._leave()

    def _end_round(self) -> None:
        self._begun = False
        self._leave()

    def _leave(self) -> None:
        held, self._held = self._held, []
        for transport in held:
            transport.uncork()


class SocketTransport(asyncio.Transport):
    """One connected socket. The protocol is told of data, end of file, room to write, and loss."""

    __slots__ = (
        "_buffer",
        "_closing",
        "_corked",
        "_eof",
        "_loop",
        "_outbox",
        "_paused",
        "_protocol",
        "_reading",
        "_socket",
        "_watched",
        "_writing",
        "peer",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connected: socket.socket,
        peer: Address,
        protocol: asyncio.Protocol,
        outbox: Outbox,
    ) -> None:
        self._loop = loop
        self._outbox = outbox
        self._socket = connected
        self._protocol = protocol
        self._buffer = b""  # unsent
        self._corked = True  # what is written waits for `uncork`
        self._reading = True  # the protocol wants data
        self._watched = False  # the loop tells us when there is some
        self._writing = False  # the loop tells us when there is room to write
        self._paused = False  # the protocol was asked to pause writing
        self._eof = False  # nothing more is to be sent
        self._closing = False
        self.peer = peer

    def begin(self) -> None:
        """Hand the protocol its transport, and what has already arrived; it may answer already.

        The answer is sent by `uncork`.
        """
        try:
            self._protocol.connection_made(self)
        except Exception:
            logger.exception("a connection failed as it was made")
            self._lose(None)
            return
        if self._reading and not self._closing:
            self._on_readable()
            self._watch()

    # Reading

    def _on_readable(self) -> None:
        if not self._reading:
            self._unwatch()  # asked for again when the protocol resumes
            return
        try:
            data = self._socket.recv(READ_BYTES, NO_WAIT)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lose(error)
            return
        try:
            if data:
                if self._corked or not self._outbox.holds():
                    self._protocol.data_received(data)
                else:
                    self._corked = True
                    self._protocol.data_received(data)
                    self._outbox.put(self)
                return
            self._reading = False
            self._unwatch()
            if not self._protocol.eof_received():
                self.close()
        except Exception:
            logger.exception("a connection failed on what it was sent")
            self._lose(None)

    def pause_reading(self) -> None:
        """Leave what arrives to the kernel."""
        self._reading = False

    def resume_reading(self) -> None:
        """Read again."""
        self._reading = True
        self._watch()

    def is_reading(self) -> bool:
        """Whether the protocol gets data."""
        return self._reading and not self._closing

    def has_unread(self) -> bool:
        """Whether the kernel holds bytes of the client that the protocol has not been given."""
        try:
            return bool(self._socket.recv(1, NO_WAIT | socket.MSG_PEEK))
        except OSError:
            return False

    def _watch(self) -> None:
        if self._reading and not self._watched and not self._closing:
            self._watched = True
            self._loop.add_reader(self._socket, self._on_readable)

    def _unwatch(self) -> None:
        if self._watched:
            self._watched = False
            self._loop.remove_reader(self._socket)

    # Writing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send now what the kernel takes, and the rest when it has room."""
        if self._closing or self._eof:
            return
        waits = self._corked or self._writing
        self._buffer += bytes(data)
        if not waits:
            self._send()
        if len(self._buffer) > HIGH_WATER and not self._paused:
            self._paused = True
            self._protocol.pause_writing()

    def cork(self) -> bool:
        """Let what is written wait for `uncork`; return False if it waits already."""
        began, self._corked = not self._corked, True
        return began

    def uncork(self) -> None:
        """Send what was written so far, and from now on at once."""
        self._corked = False
        if not self._buffer or self._writing:
            return
        try:
            self._send()
            if self._buffer:  # the protocol counts from what is left, so it is asked to pause anew
                self._paused = True
                self._protocol.pause_writing()
        except Exception:
            logger.exception("a connection failed as its answer was sent")
            self._lose(None)

    def _send(self) -> None:
        """Send what the kernel takes now; the loop tells when it has room for the rest."""
        self._flush()
        if self._buffer:
            self._writing = True
            self._loop.add_writer(self._socket, self._flush)

    def _await_no_room(self) -> None:
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self._socket)

    def _flush(self) -> None:
        # A small last piece leaves with the end that follows it (tcp(7), TCP_CORK), in one segment:
        # the kernel delivers once and the client wakes once, a tenth of a plain request's time. Of
        # a large piece the beginning has left, and woken the client, by then: no gain.
        last = (self._closing or self._eof) and len(self._buffer) <= SMALL_BYTES
        try:
            sent = self._socket.send(self._buffer, NO_WAIT_MORE if last else NO_WAIT)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lose(error)
            return
        self._buffer = self._buffer[sent:]
        if not self._buffer:
            self._await_no_room()
            if self._closing:
                self._end(None)
                return
            if self._eof:
                self._shut_down()
        if self._paused and len(self._buffer) <= LOW_WATER:
            self._paused = False
            self._protocol.resume_writing()

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that wait for the kernel."""
        return len(self._buffer)

    def can_write_eof(self) -> bool:
        """TCP can close one direction."""
        return True

    def write_eof(self) -> None:
        """Close the sending side once everything is sent."""
        if not self._eof and not self._closing:
            self._eof = True
            if not self._buffer:
                self._shut_down()

    def _shut_down(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError as error:
            self._lose(error)

    # The end

    def close(self) -> None:
        """Read no more, and close once everything is sent."""
        if self._closing:
            return
        self._closing = True
        self._unwatch()
        if not self._buffer:
            self._end(None)

    def abort(self) -> None:
        """Close at once with a reset: what is unsent is lost, and the client is to know it.

        An end of file would mean that a stream is complete (RFC 9112, section 8).
        """
        if self._socket.fileno() >= 0:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        self._lose(None)

    def is_closing(self) -> bool:
        """Whether the end has begun."""
        return self._closing

    def _lose(self, error: OSError | None) -> None:
        if self._socket.fileno() < 0:
            return
        self._closing = True
        self._unwatch()
        self._buffer = b""
        self._await_no_room()
        self._end(error)

    def _end(self, error: OSError | None) -> None:
        """Close the socket, and tell the protocol when it is not in the middle of something."""
        self._socket.close()
        self._loop.call_soon(self._protocol.connection_lost, error)
        # The two refer to each other; apart, they are freed at once and their memory is still
        # in the processor's cache for the next connection.
        self._protocol = NOBODY

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - asyncio's
        """Return "peername" or "socket"."""
        if name == "peername":
            return self.peer
        return self._socket if name == "socket" else default


class Acceptor:
    """Accepts connections from a listening socket for as long as it is open."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listener: socket.socket,
        make_protocol: Callable[[], asyncio.Protocol],
    ) -> None:
        self._loop = loop
        self._listener = listener
        self._make_protocol = make_protocol
        listener.setblocking(False)
        # Accepted sockets inherit it, which saves a call each (tcp(7)).
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._outbox = Outbox(loop)
        self._resume: asyncio.TimerHandle | None = None
        loop.add_reader(listener, self._accept)

    def close(self) -> None:
        """Accept those who are waiting already, and then nobody: close the listening socket.

        The kernel would reset them, for whom it has accepted on our behalf.
        """
        if self._listener.fileno() < 0:
            return
        for _ in range(LAST_TURNS):
            if self._resume is not None or self._accept() < ACCEPTS_PER_TURN:
                break
        if self._resume is not None:
            self._resume.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()

    def _accept(self) -> int:
        """Accept a few, answer them together as far as they have asked, and return how many."""
        accepted = []
        for _ in range(ACCEPTS_PER_TURN):
            try:
                accepted.append(self._listener.accept())
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                break
            except OSError as error:  # no descriptor is to be had, or the network is down
                self._pause(error)
                break
        transports = [
            SocketTransport(self._loop, connected, peer, self._make_protocol(), self._outbox)
            for connected, peer in accepted
        ]
        for transport in transports:
            transport.begin()
        for transport in transports:
            transport.uncork()
        return len(accepted)

    def _pause(self, error: OSError) -> None:
        """Wait for connections to end, say: until then the kernel would wake us for nothing."""
        logger.error("cannot accept connections: %s; trying again soon", error.strerror)
        self._loop.remove_reader(self._listener)
        self._resume = self._loop.call_later(ACCEPT_PAUSE, self._go_on)

    def _go_on(self) -> None:
        self._resume = None
        self._loop.add_reader(self._listener, self._accept)
