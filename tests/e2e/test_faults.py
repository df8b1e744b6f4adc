"""What hostile, broken and unlucky clients do to a real server, and to the clients beside them.

How quick the others stay is printed (pytest -rP), not asserted: a test machine has no clock.
"""

from __future__ import annotations

import json
import os
import random
import resource
import socket
import statistics
import struct
import subprocess
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.processes import TlServe
from support.waiting import health, wait_until
from support.wire import (
    TIMEOUT,
    Address,
    complete,
    connect,
    exchange,
    get,
    parse_reply,
    post,
    read_all,
)

HALF = b'POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 50\r\n\r\n{"model":'
# The name is in every event, so this stream is larger than all buffers on its way.
LARGE = {"model": "m" * 3_000, "prompt": "a", "max_tokens": 4096, "stream": True}
STREAM = {"model": "m", "prompt": "a", "max_tokens": 4096, "stream": True, "temperature": 0}
RESET_ON_CLOSE = struct.pack("ii", 1, 0)

LOOPS = pytest.mark.parametrize("loop", ["auto", "asyncio"])


class Process:
    """What the kernel knows of a server."""

    def __init__(self, server: TlServe) -> None:
        self._folder = Path("/proc") / str(server.process.pid)
        self._asked: deque[int] = deque(maxlen=10)

    @property
    def open_files(self) -> int:
        return len(os.listdir(self._folder / "fd"))

    @property
    def threads(self) -> int:
        return len(os.listdir(self._folder / "task"))

    def is_idle(self) -> bool:
        """Whether it used no processor time between the last ten times that one asked."""
        self._asked.append(self._ticks())
        return len(self._asked) == self._asked.maxlen and len(set(self._asked)) == 1

    def _ticks(self) -> int:
        fields = (self._folder / "stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])  # in user and in system mode; proc(5)

    @property
    def resident_kib(self) -> int:
        (line,) = [
            line
            for line in (self._folder / "status").read_text().splitlines()
            if line.startswith("VmRSS:")
        ]
        return int(line.split()[1])


def connect_narrowly(address: Address) -> socket.socket:
    """Connect as from afar: small segments and a small window, so the kernel buffers little.

    (It sizes the send buffer by the segments, which on loopback are 64 KiB.)
    """
    connection = socket.socket()
    connection.settimeout(TIMEOUT)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
    connection.connect(address)
    return connection


def seconds(function: object, *arguments: object) -> float:
    started = time.perf_counter()
    function(*arguments)  # type: ignore[operator]
    return time.perf_counter() - started


def stream_times(address: Address) -> tuple[float, float]:
    """Read a stream, check it, and return the seconds to its first bytes and to its end."""
    with connect(address) as connection:
        started = time.perf_counter()
        connection.sendall(post("/v1/completions", STREAM))
        beginning = connection.recv(65536)
        first = time.perf_counter() - started
        data = beginning + read_all(connection)
        whole = time.perf_counter() - started
    *events, done = parse_reply(data).events()
    texts = [json.loads(event)["choices"][0]["text"] for event in events]
    assert (len(texts), done) == (4096, "[DONE]")
    assert texts[:5] == ["b", "c", "d", "e", "f"]
    return first, whole


def said(first: float, whole: float) -> str:
    return f"first {first * 1000:.2f} ms, whole {whole * 1000:.1f} ms"


@LOOPS
def test_stalled_clients_cost_the_others_nothing(succ_model: Path, loop: str) -> None:
    with TlServe(succ_model, "--no-access-log", "--loop", loop) as server, ExitStack() as stalled:
        stream_alone = stream_times(server.address)
        alone = [seconds(exchange, server.address, get("/healthz")) for _ in range(20)]
        for _ in range(200):
            stalled.enter_context(connect(server.address)).sendall(HALF)
        for _ in range(50):
            never_reads = stalled.enter_context(connect_narrowly(server.address))
            never_reads.sendall(post("/v1/completions", LARGE))
        process = Process(server)
        wait_until(lambda: process.open_files > 250, "250 open connections")
        wait_until(process.is_idle, "the buffers of those that never read to be full")

        beside = [seconds(exchange, server.address, get("/healthz")) for _ in range(20)]
        probes = [seconds(exchange, server.health_address, get("/healthz")) for _ in range(20)]
        first, whole = stream_times(server.address)
        assert server.process.poll() is None
        for name, times in (("alone", alone), ("beside", beside), ("health port", probes)):
            print(f"{loop}: /healthz {name}: median {statistics.median(times) * 1000:.2f} ms")
        print(f"{loop}: a stream: {said(*stream_alone)} alone, {said(first, whole)} beside")
        print(f"{loop}: resident with 50 that never read: {process.resident_kib / 1024:.0f} MiB")


def reset_in_mid_stream(address: Address) -> None:
    with connect_narrowly(address) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        connection.sendall(post("/v1/completions", LARGE))
        assert connection.recv(64)


def test_resets_in_mid_stream_leave_nothing_behind(succ_model: Path, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    with (
        log.open("wb") as file,
        TlServe(succ_model, "--log-format", "json") as server,
        subprocess.Popen(["cat"], stdin=server.process.stdout, stdout=file) as drain,
    ):
        process = Process(server)
        for _ in range(400):  # caches, allocator pools and the log's queue find their size
            reset_in_mid_stream(server.address)
        wait_until(lambda: log.read_bytes().count(b"\n") == 400, "the log")
        idle_files, threads, before = process.open_files, process.threads, process.resident_kib
        for _ in range(1600):
            reset_in_mid_stream(server.address)
        wait_until(lambda: log.read_bytes().count(b"\n") == 2000, "the log")
        wait_until(lambda: process.open_files <= idle_files, "the files to be closed")
        assert process.threads == threads
        grown = process.resident_kib - before
        # A connection that was kept, with its parser and its stream, would be well over 2 KiB.
        assert grown < 2 * 1600, f"{grown} KiB more than after 400 resets"
        assert exchange(server.address, get("/healthz")).status == 200
        server.process.terminate()
        drain.wait(TIMEOUT)
    lines = [json.loads(line) for line in log.read_bytes().splitlines()]
    aborted = [line for line in lines if line["path"] == "/v1/completions"]
    assert Counter(line["ended"] for line in aborted) == {"client_gone": 2000}
    assert max(line["completion_tokens"] for line in aborted) < 4096, "generation stopped"
    print(f"2,000 resets: {grown} KiB more resident than after the first 400")


# Random and mutated requests

DOCUMENTED = {200, 400, 404, 405, 408, 411, 413, 417, 431, 501}
SEEDS = [
    get("/healthz"),
    get("/healthz", "Connection: keep-alive", "X-Request-Id: abc"),
    get("/openapi.json?x=y"),
    get("http://host/healthz", "Accept: */*"),
    post("/v1/completions", {"model": "m", "prompt": "a", "max_tokens": 3, "temperature": 0}),
    post("/v1/completions", {"model": "m", "prompt": "h\u00e9", "seed": 7, "stream": True}),
    post("/v1/completions", b'{"model":"m","prompt":"\\ud83d\\ude00","max_tokens":1}'),
    post("/v1/completions", {"model": "m", "prompt": "a"}, "Expect: 100-continue"),
    post("/v1/completions", {"model": "m", "prompt": "a"}, "Connection: keep-alive"),
    b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 1048577\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: t\r\n\r\n",
]
TOKENS = [
    b"\r\n", b"\n", b"\r", b"\0", b":", b" ", b"\t", b"\r\n\r\n", b"HTTP/1.1", b"HTTP/2",
    b"Host: \r\n", b"Content-Length: 5\r\n", b"Content-Length: +5\r\n", b"Expect: x\r\n",
    b"Connection: keep-alive\r\n", b"Transfer-Encoding: gzip\r\n", b'"', b"{", b"}", b"[" * 200,
    b"1e999", b"-0", b"null", b"true", b"NaN", b"\\ud800", b"\xff", b"\xed\xa0\x80", b"9" * 30,
    b'"stream":true,',
]  # fmt: skip


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Change a request in one to three places."""
    for _ in range(rng.randint(1, 3)):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.choice((0, 1, 1, 2, 8)))
        middle = rng.choice(
            (
                b"",
                rng.choice(TOKENS),
                rng.randbytes(rng.randint(1, 4)),
                data[start:end] * rng.randint(2, 3),
            )
        )
        data = data[:start] + middle + data[end:]
    return data


def make_request(rng: random.Random) -> bytes:
    """Return noise, or one or two mutated requests, perhaps cut."""
    kind = rng.random()
    if kind < 0.1:
        return rng.randbytes(rng.randint(0, 300))
    data = mutate(rng, rng.choice(SEEDS))
    if kind < 0.3:
        data += mutate(rng, rng.choice(SEEDS))
    return data[: rng.randrange(len(data) + 1)] if kind > 0.85 else data


def send_and_half_close(address: Address, request: bytes) -> bytes:
    with connect(address) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return read_all(connection)


def statuses(data: bytes) -> Iterator[int]:
    """Take a whole conversation apart; AssertionError where it is not what the contract says."""
    while data:
        head, separator, rest = data.partition(b"\r\n\r\n")
        assert separator
        assert head.startswith(b"HTTP/1.1 ")
        status = int(head[9:12])
        if status == 100:
            data = rest
            continue
        yield status
        if b"\r\nContent-Type: text/event-stream\r\n" in head:
            assert rest.endswith(b"data: [DONE]\n\n")
            return
        fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
        length = int(fields[b"Content-Length"])
        body, data = rest[:length], rest[length:]
        assert len(body) == length
        if status != 200:
            assert set(json.loads(body)["error"]) == {"message", "type", "param", "code"}
        if fields[b"Connection"] == b"close":
            assert data == b""


@LOOPS
@pytest.mark.timeout(300)
def test_random_requests_get_documented_answers_and_leave_a_live_server(
    succ_model: Path, loop: str
) -> None:
    rng = random.Random(20261130)
    seen: Counter[int] = Counter()
    with TlServe(succ_model, "--no-access-log", "--loop", loop) as server:
        process = Process(server)
        for number in range(10_000):
            request = make_request(rng)
            try:
                answers = list(statuses(send_and_half_close(server.address, request)))
            except (AssertionError, OSError, ValueError) as error:
                raise AssertionError(f"request {number}: {request!r}: {error!r}") from error
            assert set(answers) <= DOCUMENTED, f"request {number}: {request!r}: {answers}"
            seen.update(answers or [0])
        reply = complete(server.address, prompt="a", max_tokens=3, temperature=0)
        assert reply.json()["choices"][0]["text"] == "bcd"
        assert health(server.health_address) == 200
        wait_until(lambda: process.open_files < 40, "the connections to be closed")
        code, _, err = server.stop()
    assert (code, err) == (0, ""), "no answer was an exception of ours"
    print(f"{loop}: {dict(sorted(seen.items()))}")
    assert {0, 200, 400, 404, 405, 411, 413, 501} <= set(seen)
    assert seen[200] > 300


def test_a_server_out_of_descriptors_recovers(succ_model: Path) -> None:
    with TlServe(succ_model, "--no-access-log") as server:
        process = Process(server)
        assert complete(server.address, max_tokens=100).status == 200  # all is imported now
        limit = process.open_files + 5
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (limit, limit))
        with ExitStack() as clients:
            for _ in range(30):
                clients.enter_context(connect(server.address)).sendall(HALF)
            wait_until(lambda: process.open_files == limit, "the last descriptor")
        assert exchange(server.address, get("/healthz")).status == 200
        assert exchange(server.health_address, get("/healthz")).status == 200
        code, _, err = server.stop()
    assert code == 0
    assert 1 <= err.count("cannot accept connections: Too many open files") <= 100
    assert "Traceback" not in err
