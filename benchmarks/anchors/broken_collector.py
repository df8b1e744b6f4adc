"""A collector with a fault of one's choice, to see what it costs an engine.

    python broken_collector.py PORT silent|refusing|throttling|resetting

silent takes requests and never answers; refusing answers 400; throttling answers 429 with
Retry-After: 1; resetting drops every connection when a request has begun to come.
"""

from __future__ import annotations

import asyncio
import re
import socket
import struct
import sys
from typing import cast

LENGTH = re.compile(rb"(?i)content-length: *(\d+)\r\n")
ANSWERS = {
    "silent": b"",
    "refusing": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\n{}",
    "throttling": b"HTTP/1.1 429 Slow\r\nRetry-After: 1\r\nContent-Length: 2\r\n\r\n{}",
}


class Broken(asyncio.Protocol):
    """One connection that goes wrong as told."""

    def __init__(self, fault: str) -> None:
        self._fault = fault
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._fault == "resetting":
            sock = self._transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()
            return
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            match = LENGTH.search(self._data[: end + 2])
            whole = end + 4 + (int(match[1]) if match else 0)
            if len(self._data) < whole:
                return
            self._data = self._data[whole:]
            self._transport.write(ANSWERS[self._fault])


async def main() -> None:
    port, fault = int(sys.argv[1]), sys.argv[2]
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Broken(fault), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
