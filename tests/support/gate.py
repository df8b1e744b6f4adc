"""A relay that holds back all of a stream but its first event, until it is told not to."""

from __future__ import annotations

import socket
import threading
from types import TracebackType

from support.wire import TIMEOUT, Address, connect


class Gate:
    """Stands between a proxy and a server for one connection.

    While it is shut, the second event has not come into being for whoever reads behind it: what
    arrives then has not waited for anything.
    """

    def __init__(self, server: Address) -> None:
        self._server = server
        self._opened = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(TIMEOUT)
        self.address: Address = self._listener.getsockname()
        self._thread = threading.Thread(target=self._relay)

    def open(self) -> None:
        """Let the rest of the stream pass."""
        self._opened.set()

    def __enter__(self) -> Gate:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.open()
        self._thread.join()
        self._listener.close()

    def _relay(self) -> None:
        client, _ = self._listener.accept()
        client.settimeout(TIMEOUT)
        with client, connect(self._server) as server:
            server.sendall(_read_request(client))
            held = bytearray()
            while (end := _end_of_first_event(held)) == 0:
                held += server.recv(65536)
            client.sendall(held[:end])
            if not self._opened.wait(TIMEOUT):
                return  # whoever waits for more than the first event must not get it in the end
            client.sendall(held[end:])
            while data := server.recv(65536):
                client.sendall(data)


def _read_request(client: socket.socket) -> bytes:
    """Read a request, whose body is one JSON object."""
    data = bytearray()
    while not data.endswith(b"}"):
        data += client.recv(65536)
    return bytes(data)


def _end_of_first_event(data: bytearray) -> int:
    """Return the offset behind the first event of an answer, 0 while it is not there."""
    head = data.find(b"\r\n\r\n")
    event = data.find(b"\n\n", head + 4)
    return 0 if -1 in (head, event) else event + 2
