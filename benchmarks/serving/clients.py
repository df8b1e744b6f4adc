"""A few requests from Python, where the load generator would be too much: keep, ask, compare."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from benchmarks.harness.processes import ServerProcess

KEPT_HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: keep-alive\r\n\r\n"


@contextmanager
def idle_connections(server: ServerProcess, count: int) -> Iterator[None]:
    """Hold connections that have had one answer and ask for nothing more."""
    with ExitStack() as stack:
        for _ in range(count):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            connection.sendall(KEPT_HEALTHZ)
            if not connection.recv(4096).startswith(b"HTTP/1.1 200"):
                raise RuntimeError(f"{server.name} refused an idle connection")
        yield


def plain_texts(server: ServerProcess, body: Mapping[str, object], seeds: range) -> list[str]:
    """Return the text of a plain completion for each seed."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    texts = []
    for seed in seeds:
        fields = json.dumps({**body, "seed": seed, "stream": False})
        connection.request("POST", "/v1/completions", fields)
        texts.append(json.loads(connection.getresponse().read())["choices"][0]["text"])
    return texts


def raw_answer(server: ServerProcess, body: Mapping[str, object]) -> bytes:
    """Return the bytes of an answer, head and all."""
    data = json.dumps(body).encode()
    head = (
        f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(head.encode() + data)
        return b"".join(iter(lambda: connection.recv(65536), b""))
