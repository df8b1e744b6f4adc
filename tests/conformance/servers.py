"""Servers that misbehave as a test tells them, for the runner's own client."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

from tinyllm.conformance.client import Address, Connection
from tinyllm.conformance.session import Settings

Script = Callable[[socket.socket], None]
PATIENCE = 20.0  # seconds until a test's client gives up: never reached in a test that passes


@contextlib.contextmanager
def scripted(script: Script) -> Iterator[Address]:
    """Run a server that plays the script to each of its clients, in turn."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                with client, contextlib.suppress(OSError):
                    script(client)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield Address("127.0.0.1", listener.getsockname()[1])
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def sends(data: bytes) -> Script:
    """Return a script that reads a request, sends these bytes and closes."""

    def play(client: socket.socket) -> None:
        client.recv(65536)
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        while client.recv(65536):
            pass

    return play


def says_nothing(client: socket.socket) -> None:
    """Read until the client gives up."""
    while client.recv(65536):
        pass


def settings(address: Address, **changes: object) -> Settings:
    """Return settings for a server of this file."""
    return Settings(address, **{"timeout": PATIENCE, **changes})  # type: ignore[arg-type]


def connected(address: Address, seconds: float = PATIENCE) -> Connection:
    """Return a connection to a server of this file, with a request sent."""
    connection = Connection(address, time.monotonic() + seconds)
    connection.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    return connection
