"""A collector that counts spans and forgets them, so that exporting has somewhere to go.

    python sink.py PORT       (GET /count answers how many spans have come)

It does no more than it must, since it shares the machine with what is measured: it reads bodies
into the same piece of memory, small enough for the cache, and counts line ends, for our exporter
writes a line for each span. To count a longer pattern would cost as much as a span's text.
"""

from __future__ import annotations

import socketserver
import sys

PIECE_BYTES = 128 * 1024


class Sink(socketserver.StreamRequestHandler):
    """Answers every request on a connection with 200."""

    spans = 0  # of all connections

    def handle(self) -> None:
        self._memory = bytearray(PIECE_BYTES)
        while request_line := self.rfile.readline():
            length = 0
            while (line := self.rfile.readline()) not in (b"\r\n", b""):
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            self._count(length)
            self._answer(b"%d" % Sink.spans if request_line.startswith(b"GET ") else b"{}")

    def _count(self, length: int) -> None:
        """Count the spans of a body; the last line has no end."""
        Sink.spans += length > 0
        view = memoryview(self._memory)
        while length and (size := self.rfile.readinto(view[: min(length, PIECE_BYTES)])):
            Sink.spans += self._memory.count(b"\n", 0, size)
            length -= size

    def _answer(self, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        self.wfile.write(head % len(body) + body)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True


if __name__ == "__main__":
    with Server(("127.0.0.1", int(sys.argv[1])), Sink) as server:
        server.serve_forever()
