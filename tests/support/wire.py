"""A client of raw bytes: nothing between a test and the socket."""

from __future__ import annotations

import json
import socket
from typing import Any, NamedTuple

Address = tuple[str, int]
TIMEOUT = 20.0


class Reply(NamedTuple):
    """An answer, taken apart at the first empty line."""

    status: int
    head: bytes
    body: bytes

    @property
    def headers(self) -> dict[str, str]:
        """Names in lower case to values."""
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}

    def json(self) -> Any:
        """The body as a JSON value."""
        return json.loads(self.body)

    def events(self) -> list[str]:
        """The payloads of an event stream of one-line events; every byte must belong to one."""
        blocks = self.body.decode().split("\n\n")
        assert blocks.pop() == "", "the stream does not end with an empty line"
        assert all(block.startswith("data: ") and "\n" not in block for block in blocks)
        return [block.removeprefix("data: ") for block in blocks]


def connect(address: Address) -> socket.socket:
    """Open a connection that gives up rather than hang."""
    return socket.create_connection(address, timeout=TIMEOUT)


def read_all(connection: socket.socket) -> bytes:
    """Read until the server closes."""
    data = bytearray()
    while chunk := connection.recv(65536):
        data += chunk
    return bytes(data)


def parse_reply(data: bytes) -> Reply:
    """Take a whole answer apart."""
    head, separator, body = data.partition(b"\r\n\r\n")
    assert separator, f"no whole head: {data[:200]!r}"
    version, status, _ = head.split(b" ", 2)
    assert version == b"HTTP/1.1"
    return Reply(int(status), head, body)


def read_reply(connection: socket.socket, *, head_only: bool = False) -> Reply:
    """Read one answer and no more: to its Content-Length, or to the close if it has none.

    `head_only` is for the answer to a HEAD, which has a length but no body.
    """
    data = bytearray()
    while b"\r\n\r\n" not in data:
        chunk = connection.recv(65536)
        assert chunk, f"the server closed in mid-head: {bytes(data)!r}"
        data += chunk
    reply = parse_reply(bytes(data))
    if "content-length" not in reply.headers:
        return parse_reply(bytes(data) + read_all(connection))
    missing = 0 if head_only else int(reply.headers["content-length"]) - len(reply.body)
    while missing > 0:
        chunk = connection.recv(missing)
        assert chunk, f"the server closed {missing} bytes before the end of the body"
        data += chunk
        missing -= len(chunk)
    assert missing == 0, f"{-missing} bytes came after the body"
    return parse_reply(bytes(data))


def exchange(address: Address, request: bytes) -> Reply:
    """Send bytes, read to the end, take the answer apart."""
    with connect(address) as connection:
        connection.sendall(request)
        return parse_reply(read_all(connection))


def post(path: str, body: bytes | dict[str, Any], *headers: str) -> bytes:
    """Return a POST request; a dict becomes JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: test", f"Content-Length: {len(data)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + data


def get(path: str, *headers: str) -> bytes:
    """Return a GET request."""
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: test", *headers, "", ""]).encode()


def complete(address: Address, *headers: str, **fields: Any) -> Reply:
    """POST a completion request; model and prompt have defaults."""
    body = {"model": "m", "prompt": "a", **fields}
    return exchange(address, post("/v1/completions", body, *headers))
