"""The floor: a bare uvloop protocol that answers any bytes with constant ones, and nothing else.

No request is read, no token is chosen, nothing is encoded: what is left is what the kernel
and the event loop cost a server that opens, reads, writes and closes a connection.

    python floor.py PORT ANSWER...      (files whose bytes are written, one write each)

Several files are written one after the other, each from a turn of the loop of its own: the
first event of a stream and the rest of it, say.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import cast

import uvloop

BACKLOG = 2048


class Constant(asyncio.Protocol):
    """Writes the same parts to whoever sends anything, then closes."""

    def __init__(self, loop: asyncio.AbstractEventLoop, parts: list[bytes]) -> None:
        self._loop = loop
        self._parts = parts
        self._next = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._write()

    def _write(self) -> None:
        self._transport.write(self._parts[self._next])
        self._next += 1
        if self._next < len(self._parts):
            self._loop.call_soon(self._write)
        else:
            self._transport.close()


async def serve(port: int, parts: list[bytes]) -> None:
    """Answer on a port until the process is ended."""
    loop = asyncio.get_running_loop()
    await loop.create_server(lambda: Constant(loop, parts), "127.0.0.1", port, backlog=BACKLOG)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), [Path(name).read_bytes() for name in sys.argv[2:]]))
