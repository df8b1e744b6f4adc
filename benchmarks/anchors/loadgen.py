"""The load generator for machines without rustc: loadgen.rs again, on one uvloop.

The commands, the times and what is printed are those of loadgen.rs (its head tells them). One
Python process costs more per answer than the Rust threads do, so rates come out lower where
client and server share cores; ratios and the server's own CPU time hardly move.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Coroutine
from time import perf_counter
from typing import Any, cast

import uvloop

TIMEOUT = 60.0
MOST_SECONDS = 600.0
MOST_CONNECTIONS = 10_000
LENGTH = re.compile(rb"(?i)content-length: (\d+)\r\n")
TEXT = re.compile(r'"text":"((?:[^"\\]|\\.)*)"')
HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"


class Client(asyncio.Protocol):
    """One connection: sends a request, gathers the answer, says when it is whole."""

    def __init__(self, keep: bool) -> None:
        self._keep = keep
        self._answered: asyncio.Future[bytes] | None = None
        self._chunks: list[bytes] = []
        self._missing = -1  # bytes of a kept connection's answer; -1: not known yet
        self.first_byte = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def ask(self, request: bytes) -> asyncio.Future[bytes]:
        """Send a request; the future is its whole answer."""
        self._answered = asyncio.get_running_loop().create_future()
        self._chunks, self._missing = [], -1
        self._transport.write(request)
        return self._answered

    def data_received(self, data: bytes) -> None:
        if not self._chunks:
            self.first_byte = perf_counter()
            if self._keep and (length := LENGTH.search(data)):
                self._missing = data.index(b"\r\n\r\n") + 4 + int(length[1])
        self._chunks.append(data)
        self._missing -= len(data)
        if self._keep and self._missing == 0:
            self._finish()

    def connection_lost(self, exc: Exception | None) -> None:
        self._finish()

    def close(self) -> None:
        """Let go of a kept connection."""
        self._transport.abort()

    def _finish(self) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_result(b"".join(self._chunks))


async def connect(port: int, keep: bool = False) -> Client:
    loop = asyncio.get_running_loop()
    _, client = await loop.create_connection(lambda: Client(keep), "127.0.0.1", port)
    return client


def post(body: str, keep: bool = False) -> bytes:
    """Return the bytes of a completion request."""
    data = body.encode()
    connection = "keep-alive" if keep else "close"
    head = (
        "POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Connection: {connection}\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


def micros(start: float) -> int:
    return int((perf_counter() - start) * 1e6)


def percentile(values: list[int], q: float) -> int:
    """Return the value at rank q of the sorted ones; 0 when there are none."""
    return sorted(values)[int((len(values) - 1) * q)] if values else 0


class Tally:
    """What the connections of `turns` have seen."""

    def __init__(self) -> None:
        self.events = self.bytes = self.errors = 0
        self.first_byte: list[int] = []
        self.total: list[int] = []

    def report(self, seconds: float) -> dict[str, float]:
        requests = len(self.total)
        return {
            "requests_s": round(requests / seconds, 1),
            "events_s": round(self.events / seconds, 1),
            "mb_s": round(self.bytes / seconds / 1e6, 2),
            "first_byte_p50_us": percentile(self.first_byte, 0.5),
            "first_byte_p99_us": percentile(self.first_byte, 0.99),
            "total_p50_us": percentile(self.total, 0.5),
            "total_p99_us": percentile(self.total, 0.99),
            "requests": requests,
            "events": self.events,
            "seconds": round(seconds, 4),
            "errors": self.errors,
        }


async def turns(port: int, connections: int, seconds: float, body: str, keep: bool) -> None:
    tally, start = Tally(), perf_counter()
    request = post(body, keep)
    loops = [take_turns(port, request, keep, start + seconds, tally) for _ in range(connections)]
    await asyncio.gather(*loops)
    print(json.dumps(tally.report(perf_counter() - start)))


async def take_turns(port: int, request: bytes, keep: bool, end: float, tally: Tally) -> None:
    client: Client | None = None
    while (start := perf_counter()) < end:
        try:
            if client is None or not keep:
                client = await connect(port, keep)
            answer = await asyncio.wait_for(client.ask(request), TIMEOUT)
        except (OSError, TimeoutError):
            answer, client = b"", None
        if client is None or not answer.startswith(b"HTTP/1.1 200"):
            tally.errors += 1
            await asyncio.sleep(0.001)  # nobody listens: do not spin
            continue
        tally.first_byte.append(int((client.first_byte - start) * 1e6))
        tally.total.append(micros(start))
        tally.events += answer.count(b"\n\n")
        tally.bytes += len(answer)
    if client is not None:
        client.close()


async def burst(port: int, streams: int, body: str) -> None:
    clients = [await connect(port) for _ in range(streams)]
    start = perf_counter()
    loops = [
        one_stream(client, number, post(body.replace("{stream}", str(number))), start)
        for number, client in enumerate(clients)
    ]
    for line in await asyncio.gather(*loops):
        print(line)


async def one_stream(client: Client, number: int, request: bytes, start: float) -> str:
    try:
        answer = (await asyncio.wait_for(client.ask(request), TIMEOUT)).decode("utf-8", "replace")
    except TimeoutError:
        return json.dumps({"stream": number, "status": 0, "error": "timed out"})
    # The text is put together as it was written, escapes and all: JSON inside JSON.
    return (
        f'{{"stream":{number},"status":{answer[9:12] or 0},'
        f'"first_us":{int((client.first_byte - start) * 1e6)},"total_us":{micros(start)},'
        f'"events":{answer.count(chr(10) * 2)},'
        f'"done":{str(answer.endswith("data: [DONE]" + chr(10) * 2)).lower()},'
        f'"text":"{"".join(TEXT.findall(answer))}"}}'
    )


async def probe(port: int, seconds: float, period_ms: int, body: str) -> None:
    requests = (HEALTHZ, post(body))
    start = perf_counter()
    probes = []
    for turn in range(min(MOST_CONNECTIONS, int(seconds * 1000 / period_ms))):
        due = start + turn * period_ms / 1000
        await asyncio.sleep(max(0.0, due - perf_counter()))
        probes.append(asyncio.ensure_future(one_probe(port, requests[turn % 2], due)))
    latencies = await asyncio.gather(*probes)
    healthz, plain = (
        [latency for latency in latencies[turn::2] if latency is not None] for turn in (0, 1)
    )
    errors = latencies.count(None)
    print(json.dumps({"healthz_us": healthz, "plain_us": plain, "errors": errors}))


async def one_probe(port: int, request: bytes, due: float) -> int | None:
    """Return the microseconds from when the request was due to its whole answer."""
    try:
        client = await connect(port)
        answer = await asyncio.wait_for(client.ask(request), TIMEOUT)
    except (OSError, TimeoutError):
        return None
    return micros(due) if answer.startswith(b"HTTP/1.1 200") else None


def number(text: str, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= most:
        sys.exit(f"{text} is not a number from 0 to {most:g}")
    return value


def count(text: str, most: int = MOST_CONNECTIONS) -> int:
    return int(number(text, most))


def duration(text: str) -> float:
    return number(text, MOST_SECONDS)


def work(words: list[str]) -> Coroutine[Any, Any, None]:
    """Return what the arguments ask for."""
    match words:
        case ["turns", port, connections, time, body, *keep] if keep in ([], ["keep"]):
            return turns(count(port, 65535), count(connections), duration(time), body, bool(keep))
        case ["burst", port, streams, body]:
            return burst(count(port, 65535), count(streams), body)
        case ["probe", port, time, period, body]:
            return probe(count(port, 65535), duration(time), count(period), body)
    sys.exit("usage: loadgen.py turns|burst|probe PORT ... (see the head of loadgen.rs)")


if __name__ == "__main__":
    uvloop.run(work(sys.argv[1:]))
