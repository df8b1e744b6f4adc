"""The `wire` server: three routes, a thread per connection, `read_request` underneath.

It is the plain use of this library, and shows that the parser knows no runtime: a blocking socket
goes in, bytes come out. The file reads in the order of a server's life: start, accept, serve one
connection, close it. What may be said on the command line is `arguments.py`, what is said on a
connection `session.py`.

SIGTERM and SIGINT become KeyboardInterrupt, which ends the accept loop wherever it waits; the
threads are daemons, so that nothing a client does can hold the exit back.
"""

from __future__ import annotations

import argparse
import io
import os
import socket
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from signal import SIGINT, SIGTERM, default_int_handler, signal

from tinyllm.wire.arguments import GRACE_SECONDS, HOST, MAX_CONNECTIONS, add_arguments
from tinyllm.wire.errors import ClientGone, HttpError, RequestTimeout
from tinyllm.wire.session import DEFAULT_TIMEOUTS, Session, Timeouts

WRITE_SECONDS = 30.0  # for a client to take what was written
LINGER_SECONDS = 2.0  # after the last answer, for the client to take it and close
LINGER_BYTES = 4 * 1024 * 1024
PAUSE_SECONDS = 0.05  # when the system has no descriptor or thread to give


class ServiceUnavailable(HttpError):
    """All connections that the server serves at once are in use."""

    status = 503


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code."""
    try:
        listener = socket.create_server((HOST, args.port), backlog=1024)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        print(f"{args.prog}: cannot listen on {HOST}:{args.port}: {reason}", file=sys.stderr)
        return 1
    try:
        signal(SIGTERM, default_int_handler)
        signal(SIGINT, default_int_handler)
        print(f"listening on {HOST}:{listener.getsockname()[1]}", flush=True)
        serve(
            listener,
            max_connections=args.max_connections,
            timeouts=Timeouts(args.head_timeout, args.body_timeout, args.idle_timeout),
            keep_alive=args.keep_alive == "on-request",
            grace=args.grace,
        )
    except KeyboardInterrupt:
        pass  # a second signal: at once
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `wire`."""
    parser = argparse.ArgumentParser(prog="wire", description=__doc__.partition("\n")[0])
    add_arguments(parser)
    return run(parser.parse_args(argv))


def serve(
    listener: socket.socket,
    *,
    max_connections: int = MAX_CONNECTIONS,
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
    keep_alive: bool = True,
    grace: float = GRACE_SECONDS,
) -> None:
    """Serve connections until KeyboardInterrupt, then let the answers under way finish."""
    connections = Connections(max_connections, timeouts, keep_alive)
    with listener:
        try:
            while True:
                connections.accept(listener)
        except KeyboardInterrupt:
            listener.close()
            connections.drain(grace)


class Connections:
    """The open connections of one listener, each on a thread of its own."""

    def __init__(self, max_connections: int, timeouts: Timeouts, keep_alive: bool) -> None:
        self._max_connections = max_connections
        self._timeouts = timeouts
        self._keep_alive = keep_alive
        self._changed = threading.Condition()
        self._served: set[socket.socket] = set()
        self._refused: set[socket.socket] = set()

    def accept(self, listener: socket.socket) -> None:
        """Wait for one client and give it its thread."""
        try:
            stream, _ = listener.accept()
            self._start(stream)
        except (OSError, RuntimeError) as error:  # no descriptor or no thread left: try again later
            with suppress(OSError):  # nobody may be reading this, and that must not end the server
                print(f"wire: a client could not be taken: {error}", file=sys.stderr)
            time.sleep(PAUSE_SECONDS)

    def _start(self, stream: socket.socket) -> None:
        """Serve the client, or beyond the bound say why not, or beyond twice the bound neither."""
        with self._changed:
            group = self._served if len(self._served) < self._max_connections else self._refused
            if len(group) >= self._max_connections:
                stream.close()
                return
            group.add(stream)
        try:
            threading.Thread(target=self._run, args=(stream, group), daemon=True).start()
        except RuntimeError:
            self._forget(stream, group)
            raise

    def _run(self, stream: socket.socket, group: set[socket.socket]) -> None:
        try:
            handle_connection(
                stream,
                timeouts=self._timeouts,
                keep_alive=self._keep_alive,
                refused=group is self._refused,
            )
        finally:
            self._forget(stream, group)

    def _forget(self, stream: socket.socket, group: set[socket.socket]) -> None:
        with self._changed:
            stream.close()
            group.discard(stream)
            self._changed.notify_all()

    def drain(self, grace: float) -> None:
        """Wait up to `grace` seconds for answers under way; requests not yet whole are given up."""
        with self._changed:
            for stream in self._served | self._refused:
                try:
                    stream.shutdown(socket.SHUT_RD)  # its reads end, its writes go on
                except OSError:
                    continue  # the client was faster
            self._changed.wait_for(lambda: not self._served and not self._refused, grace)


def handle_connection(
    connection: socket.socket,
    *,
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
    keep_alive: bool = True,
    refused: bool = False,
) -> None:
    """Serve one client to its end and close the connection; `refused`: only say 503."""
    try:
        # Nagle's algorithm would hold an event back while an earlier one is unacknowledged.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection:
            stream = SocketStream(connection)
            reader = io.BufferedReader(stream)
            session = Session(reader, stream, stream.allow, timeouts, keep_alive)
            if refused:
                session.refuse(ServiceUnavailable("too many connections"))
            else:
                session.serve()
            close_gently(connection)
    except OSError:
        return  # the client has gone, or takes nothing: nobody is left to tell


class SocketStream(io.RawIOBase):
    """A socket as a blocking stream with time limits: one over all reads, one for each write."""

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream
        self._deadline = 0.0

    def allow(self, seconds: float) -> None:
        """Let reads go on until then; later they raise RequestTimeout."""
        self._deadline = time.monotonic() + seconds

    def readable(self) -> bool:
        """Say yes to io.BufferedReader."""
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        """Receive what there is. Raises RequestTimeout, and ClientGone if the connection broke."""
        # At least a moment: what has arrived is taken, even when it was this server that was slow.
        self._stream.settimeout(max(self._deadline - time.monotonic(), 0.001))
        try:
            return self._stream.recv_into(buffer)
        except TimeoutError:
            raise RequestTimeout("the request did not arrive in time") from None
        except OSError as error:
            raise ClientGone(f"the connection broke: {error}") from None

    def write(self, data: bytes | memoryview, /) -> int:  # type: ignore[override]
        """Send what the client takes now. Raises OSError if that is nothing for too long."""
        self._stream.settimeout(WRITE_SECONDS)
        return self._stream.send(data)


def close_gently(connection: socket.socket) -> None:
    """End our side, then read on until the client has closed, for a bounded time and amount.

    RFC 9112, section 9.6: a close with bytes unread, or still on their way, makes the system send
    a reset, which can destroy the answer before the client has read it.
    """
    connection.shutdown(socket.SHUT_WR)
    deadline = time.monotonic() + LINGER_SECONDS
    left = LINGER_BYTES
    while left > 0 and (seconds := deadline - time.monotonic()) > 0:
        connection.settimeout(seconds)
        dropped = len(connection.recv(65536))
        if not dropped:
            return
        left -= dropped


if __name__ == "__main__":
    sys.exit(main())
