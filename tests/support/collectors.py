"""Collectors on loopback that answer as a test tells them: well, badly, late or never."""

from __future__ import annotations

import gzip
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

TIMEOUT = 20.0

Answer = bytes | Callable[["FakeCollector", socket.socket], None]


def response(status: int, body: bytes = b"{}", *headers: str) -> bytes:
    """Return a whole answer; the connection stays open."""
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


OK = response(200, b"{}", "Content-Type: application/json")


def hang(collector: FakeCollector, connection: socket.socket) -> None:
    """Never answer: hold the connection until the test is over."""
    collector.over.wait(TIMEOUT)


def reset(collector: FakeCollector, connection: socket.socket) -> None:
    """Drop the connection with a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    socket.close(connection.detach())  # at once, though a reader still holds the socket


def hang_up(collector: FakeCollector, connection: socket.socket) -> None:
    """Close without an answer."""
    connection.shutdown(socket.SHUT_RDWR)
    collector.count_hang_up()


def then_close(answer: bytes) -> Answer:
    """Answer, then close although the connection was to stay open."""

    def act(collector: FakeCollector, connection: socket.socket) -> None:
        connection.sendall(answer)
        hang_up(collector, connection)

    return act


def trickle(collector: FakeCollector, connection: socket.socket) -> None:
    """Send an endless head, a byte at a time, each well within any socket timeout."""
    while not collector.over.wait(0.02):
        connection.sendall(b"H")


class Received(NamedTuple):
    """One request as it arrived."""

    request_line: str
    headers: dict[str, str]  # names in lower case
    body: bytes

    def spans(self) -> list[dict[str, Any]]:
        """The spans of an OTLP/HTTP JSON body."""
        gzipped = self.headers.get("content-encoding") == "gzip"
        message = json.loads(gzip.decompress(self.body) if gzipped else self.body)
        return [
            span
            for resource_spans in message["resourceSpans"]
            for scope_spans in resource_spans["scopeSpans"]
            for span in scope_spans["spans"]
        ]


class FakeCollector:
    """Answers its requests one after the other as told; the last answer goes for all later ones."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers) or [OK]
        self.requests: list[Received] = []
        self.connections = 0
        self.hung_up = 0
        self.over = threading.Event()
        self._changed = threading.Condition()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def endpoint(self) -> str:
        """What OTEL_EXPORTER_OTLP_ENDPOINT would be."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Where batches go."""
        return f"{self.endpoint}/v1/traces"

    def spans(self) -> list[dict[str, Any]]:
        """All spans that arrived, whatever was answered."""
        with self._changed:
            return [span for received in self.requests for span in received.spans()]

    def wait_for(self, condition: Callable[[FakeCollector], bool]) -> None:
        """Wait until the condition holds; it is looked at after each request and hang-up."""
        with self._changed:
            assert self._changed.wait_for(lambda: condition(self), TIMEOUT), self.requests

    def count_hang_up(self) -> None:
        with self._changed:
            self.hung_up += 1
            self._changed.notify_all()

    def close(self) -> None:
        self.over.set()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as reader:
                while received := _read(reader):
                    with self._changed:
                        answer = self.answers[min(len(self.requests), len(self.answers) - 1)]
                        self.requests.append(received)
                        self._changed.notify_all()
                    if isinstance(answer, bytes):
                        connection.sendall(answer)
                    else:
                        answer(self, connection)
        except OSError:
            pass  # the exporter went away, or the connection was closed as told


def _read(reader: Any) -> Received | None:
    lines = []
    while (line := reader.readline()) not in (b"\r\n", b""):
        lines.append(line.decode("latin-1").rstrip("\r\n"))
    if not lines:
        return None
    pairs = (line.partition(":") for line in lines[1:])
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    return Received(lines[0], headers, reader.read(int(headers.get("content-length", "0"))))


@contextmanager
def collector(*answers: Answer) -> Iterator[FakeCollector]:
    """Run a collector for the length of a with block."""
    fake = FakeCollector(*answers)
    try:
        yield fake
    finally:
        fake.close()


def closed_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port
