"""A collector that counts spans and forgets them, so that exporting has somewhere to go.

    python sink.py PORT       (GET /count answers how many spans have come)

It does no more than it must, since it shares the machine with what is measured: it takes
requests apart by their Content-Length and counts a byte pattern in their bodies.
"""

from __future__ import annotations

import asyncio
import re
import sys
from typing import cast

import uvloop

LENGTH = re.compile(rb"(?i)content-length: *(\d+)\r\n")
SPAN = b'"spanId"'


class Sink(asyncio.Protocol):
    """Answers every whole request on a connection with 200."""

    spans = 0  # of all connections

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._data = b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head, rest = self._data[: end + 2], self._data[end + 4 :]
            match = LENGTH.search(head)
            length = int(match[1]) if match else 0
            if len(rest) < length:
                return
            self._data = rest[length:]
            Sink.spans += rest.count(SPAN, 0, length)
            self._answer(b"%d" % Sink.spans if head.startswith(b"GET ") else b"{}")

    def _answer(self, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        self._transport.write(head % len(body) + body)


async def serve(port: int) -> None:
    """Answer on a port until the process is ended."""
    await asyncio.get_running_loop().create_server(Sink, "127.0.0.1", port)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
