"""The clients of benchmarks/soak.py: they ask without pause and check each answer.

Each is a process of its own. A kind of request is one function; KINDS says how often it comes.
"""

from __future__ import annotations

import json
import random
import socket
import struct
import time
from collections.abc import Callable, MutableSequence
from contextlib import suppress
from typing import Final

RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)
TIMEOUT: Final = 30.0

Address = tuple[str, int]


def ask_until(end: float, number: int, address: Address, answers: MutableSequence[int]) -> None:
    """Ask until a monotonic time, counting into `answers[number]`.

    AssertionError when an answer is wrong.
    """
    rng = random.Random(number)
    kinds, weights = list(KINDS), list(KINDS.values())
    while time.monotonic() < end:
        for kind in rng.choices(kinds, weights, k=20):
            kind(rng, address)
            answers[number] += 1


def plain(rng: random.Random, address: Address) -> None:
    """Some plain answers on one connection, the last of which closes it."""
    count = rng.choice((1, 1, 1, 5))
    with socket.create_connection(address, TIMEOUT) as connection:
        for number in range(count):
            tokens = rng.choice((1, 16, 64, 65, 300))
            connection.sendall(_completion(rng, number < count - 1, max_tokens=tokens))
            data = b""
            while not (b"\r\n\r\n" in data and data.endswith(b"}}")):
                data += _received(connection)
            answer = json.loads(data.partition(b"\r\n\r\n")[2])
            assert answer["usage"]["completion_tokens"] == tokens, answer


def stream(rng: random.Random, address: Address) -> None:
    """A stream, read to its end."""
    tokens = rng.choice((1, 16, 200, 1000))
    with socket.create_connection(address, TIMEOUT) as connection:
        connection.sendall(_completion(rng, max_tokens=tokens, stream=True))
        data = b""
        while chunk := connection.recv(65536):
            data += chunk
    assert data.endswith(b"data: [DONE]\n\n"), data[-200:]
    assert data.count(b"\ndata: ") == tokens + 1, data[:300]


def abandoned(rng: random.Random, address: Address) -> None:
    """A stream whose client goes after its beginning, now and then with a reset."""
    with socket.create_connection(address, TIMEOUT) as connection:
        if rng.random() < 1 / 3:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        connection.sendall(_completion(rng, max_tokens=4096, stream=True))
        assert _received(connection).startswith(b"HTTP/1.1 200 OK\r\n")


def refused(rng: random.Random, address: Address) -> None:
    """A request that is wrong in one way or another."""
    wrong = (
        _completion(rng, max_tokens=rng.choice((0, -1, "x", 4097))),
        b"GET /missing HTTP/1.1\r\nHost: t\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\nHost: t\r\n\r\n",
        b"\xff" + rng.randbytes(50) + b"\r\n\r\n",
    )
    with socket.create_connection(address, TIMEOUT) as connection:
        connection.sendall(rng.choice(wrong))
        assert _received(connection).startswith(b"HTTP/1.1 4")
        with suppress(ConnectionResetError):
            while connection.recv(65536):
                pass


KINDS: Final[dict[Callable[[random.Random, Address], None], int]] = {
    plain: 45,
    stream: 35,
    abandoned: 12,
    refused: 8,
}


def _completion(rng: random.Random, keep: bool = False, **fields: object) -> bytes:
    """Return a completion request with a random prompt, seed and temperature."""
    wanted = {
        "model": "m" * rng.choice((1, 1, 1, 30)),
        "prompt": rng.choice(("Once", "h\u00e9", "The ", "x" * rng.randint(1, 2000))),
        "seed": rng.getrandbits(64),
        "temperature": rng.choice((0, 0.5, 1, 1.5)),  # few: their rows are soon all in the cache
        **fields,
    }
    body = json.dumps(wanted).encode()
    connection = "keep-alive" if keep else "close"
    head = f"POST /v1/completions HTTP/1.1\r\nHost: t\r\nConnection: {connection}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def _received(connection: socket.socket) -> bytes:
    """Return the next bytes; AssertionError at the end."""
    data = connection.recv(65536)
    assert data, "the server closed too early"
    return data
