"""What a span costs, and what a broken collector costs the clients of a traced engine.

    python -m benchmarks.bench_tracing           (three minutes)

Costs are processor time of the thread that pays: the contenders of the first table take turns and
each one's best round counts. The whole of a span (the exporter's process and the kernel's part of
sending it) is both processes' time for ten thousand of them, against a collector in a third.
Faults: servers with every kind of collector run side by side and are asked in turn, a block of
requests each, by one client on one kept connection; the median counts. Each server keeps the speed
that it happens to start with, some per cent from its neighbour's, so all are started five times:
what counts is the median of the medians, beside those of `off` of the same start. The client and
each server's loop are put on two cores, then on one: left alone they change between the two, and
a server next door answers in a third of the time of one that has to be woken elsewhere.

What tracing does to the rate is asked by `python -m benchmarks.bench_serving --only observing`.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple

from benchmarks.harness import anchors
from benchmarks.harness.processes import ServerProcess, free_port
from benchmarks.harness.report import Section
from benchmarks.harness.statistics import Spread, figure, percentile

from tinyllm.serving.exchange import COMPLETED, Exchange
from tinyllm.serving.schema import CompletionRequest
from tinyllm.serving.telemetry import completion_span
from tinyllm.tracing import (
    CompletionSpan,
    ExportConfig,
    ExporterProcess,
    otlp_json,
    parent_from_headers,
    random_hex,
)
from tinyllm.tracing.attributes import span_of
from tinyllm.tracing.body import SPANS_PER_PIECE
from tinyllm.tracing.encoding import SpanEncoder
from tinyllm.tracing.queue import pack_spans
from tinyllm.wire import Request

ROUNDS = 25
CALLS = 2000
SPANS = 10_000
PAUSE_EVERY, PAUSE = 20, 0.0004  # the pace of a busy server, whose loop waits for its sockets
BLOCKS, REQUESTS = 50, 20  # 1,000 requests each
STARTS = 5  # of the servers: each has a speed of its own
FAULTS = ("silent", "refusing", "throttling", "resetting")

TRACE_ID, SPAN_ID = "4bf92f3577b34da6a3ce929d0e0e4736", "a1b2c3d4e5f60718"
TRACEPARENT = f"00-{TRACE_ID}-00f067aa0ba902b7-01"


def an_exchange() -> Exchange:
    """A plain completion of a client that is traced itself, over."""
    exchange = Exchange(("127.0.0.1", 40000))
    exchange.method, exchange.path, exchange.status = "POST", "/v1/completions", 200
    fields = [
        (b"Host", b"127.0.0.1:8000"),
        (b"User-Agent", b"python-httpx/0.28.1"),
        (b"traceparent", TRACEPARENT.encode()),
    ]
    exchange.request = Request("POST", "/v1/completions", fields)
    exchange.completion = CompletionRequest("tracer", "The", 16, 0.0)
    exchange.completion_id = "cmpl-0123456789abcdef0123456789abcdef"
    exchange.prompt_tokens, exchange.completion_tokens = 3, 16
    exchange.mark_first_token()
    exchange.end(COMPLETED)
    return exchange


def best_microseconds(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The best round of each, in microseconds of processor time per call."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS):
        for name, call in calls.items():
            started = time.thread_time_ns()
            for _ in range(CALLS):
                call()
            best[name] = min(best[name], (time.thread_time_ns() - started) / CALLS / 1000)
    return best


def calls() -> Section:
    """What each step of a span costs."""
    exchange, encoder = an_exchange(), SpanEncoder()
    facts = completion_span(exchange)
    many = [facts] * SPANS_PER_PIECE, [TRACE_ID] * SPANS_PER_PIECE, [SPAN_ID] * SPANS_PER_PIECE
    steps: dict[str, Callable[[], object]] = {
        "parent_from_headers, per request": lambda: parent_from_headers([TRACEPARENT]),
        "completion_span, its facts, per request": lambda: completion_span(exchange),
        "random_hex(8), a span id": lambda: random_hex(8),
        f"SpanEncoder.encode, {SPANS_PER_PIECE} spans": lambda: encoder.encode(*many),
        "pack_spans, one": lambda: pack_spans([facts]),
        "pack_spans, 8": lambda: pack_spans([facts] * 8),
        "otlp_json(span_of(...)), the reference": lambda: otlp_json(
            "engine", span_of(CompletionSpan.of(facts), TRACE_ID, SPAN_ID)
        ),
    }
    section = Section("The steps of a span", ("step", "us"))
    section.rows = [[name, figure(us)] for name, us in best_microseconds(steps).items()]
    return section


def whole_span(sink: ServerProcess) -> Section:
    """What a span costs both processes, from the exchange to the collector's answer."""
    section = Section("A whole span", ("spans", "us on the loop's thread", "us in all"))
    rounds = []
    for _ in range(5):
        idle, _ = _exported(sink, 0)  # a process starts and ends
        total, here = _exported(sink, SPANS)
        rounds.append((total - idle, here))
    total, here = min(rounds)
    section.rows.append([f"{SPANS:,}", figure(here / SPANS * 1e6), figure(total / SPANS * 1e6)])
    return section


def _exported(sink: ServerProcess, spans: int) -> tuple[float, float]:
    """Export spans; return the seconds of processor time of both processes, and of this thread."""
    began = _processor_time()
    exporter = ExporterProcess(ExportConfig(f"http://127.0.0.1:{sink.port}/v1/traces"))
    exchange = an_exchange()
    began_here = time.thread_time()
    for number in range(spans):
        exporter.offer(completion_span(exchange))
        if number % PAUSE_EVERY == 0:
            time.sleep(PAUSE)
    here = time.thread_time() - began_here
    if not exporter.close(30):
        raise SystemExit("not all spans arrived")
    return _processor_time() - began, here


def _processor_time() -> float:
    """Seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


class Client:
    """One kept connection, and how long each answer took."""

    BODY = json.dumps({"model": "m", "prompt": "a", "max_tokens": 16, "seed": 1}).encode()
    REQUEST = (
        f"POST /v1/completions HTTP/1.1\r\nHost: h\r\ntraceparent: {TRACEPARENT}\r\n"
        f"Connection: keep-alive\r\nContent-Length: {len(BODY)}\r\n\r\n"
    ).encode() + BODY

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.seconds: list[float] = []

    def ask(self, count: int) -> None:
        for _ in range(count):
            began = time.perf_counter()
            self._socket.sendall(self.REQUEST)
            self._read_answer()
            self.seconds.append(time.perf_counter() - began)

    def _read_answer(self) -> None:
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._socket.recv(65536)
        head, _, body = data.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        length = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
        while len(body) < length:
            body += self._socket.recv(65536)


class Waited(NamedTuple):
    """How long a thousand answers of a server took."""

    median: float  # seconds
    to_off: float
    slow: float  # seconds, the 99th percentile


class Asked(NamedTuple):
    """What the requests to a server with one kind of collector found."""

    apart: Waited  # client and server on two cores
    together: Waited  # on one
    grown: float  # MB
    exit: float  # seconds
    said: int  # lines of its log


def faults(sink: ServerProcess) -> Section:
    """Two thousand requests to a server for each kind of collector, start after start."""
    waited = ("two cores: us", "to off", "p99 us", "one core: us", "to off", "p99 us")
    columns = ("collector", *waited, "MB more", "exit s", "lines logged")
    section = Section(f"What a broken collector costs, {STARTS} starts", columns)
    command = [sys.executable, str(anchors.SOURCES / "broken_collector.py"), "{port}"]
    with ExitStack() as stack:
        ports = {"healthy": sink.port, "closed port": free_port()}
        for fault in FAULTS:
            ports[fault] = stack.enter_context(ServerProcess(fault, [*command, fault])).port
        starts = [_asked(ports) for _ in range(STARTS)]
    for name in starts[0]:
        found = [start[name] for start in starts]
        section.rows.append(
            [
                name,
                *_cells([one.apart for one in found]),
                *_cells([one.together for one in found]),
                figure(max(one.grown for one in found)),
                figure(max(one.exit for one in found)),
                str(max(one.said for one in found)),
            ]
        )
    return section


def _cells(found: list[Waited]) -> list[str]:
    return [
        figure(statistics.median(one.median for one in found) * 1e6),
        str(Spread.of([one.to_off for one in found])),
        figure(statistics.median(one.slow for one in found) * 1e6),
    ]


def _asked(ports: dict[str, int]) -> dict[str, Asked]:
    """Start a server for each collector and one without, and ask them all in turn."""
    model = anchors.bench_model()
    servers = {"off": anchors.ours(model, name="off")}
    for name, port in ports.items():
        endpoint = f"http://127.0.0.1:{port}"
        servers[name] = anchors.ours(
            model, name=name, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint, OTEL_BSP_SCHEDULE_DELAY="50"
        )
    with ExitStack() as stack:
        for server in servers.values():
            stack.enter_context(server)
            server.settle()
        clients = {name: Client(server.port) for name, server in servers.items()}
        memory = {name: server.memory() for name, server in servers.items()}
        cores = sorted(os.sched_getaffinity(0))
        apart = _waited(clients, servers, cores[0], cores[-1])
        together = _waited(clients, servers, cores[0], cores[0])
        os.sched_setaffinity(0, cores)  # which servers inherit
        found = {}
        for name, server in servers.items():
            grown = (server.memory() - memory[name]) / 2**20
            began = time.monotonic()
            server.stop()
            took, said = time.monotonic() - began, len(server.said.splitlines())
            found[name] = Asked(apart[name], together[name], grown, took, said)
    return found


def _waited(
    clients: dict[str, Client], servers: dict[str, ServerProcess], ours: int, theirs: int
) -> dict[str, Waited]:
    """Ask all servers in turn; they run on one core, we on one."""
    os.sched_setaffinity(0, {ours})
    for server in servers.values():
        os.sched_setaffinity(server.pid, {theirs})  # its loop; others have its collector's spans
    for client in clients.values():
        client.seconds.clear()
    for _ in range(BLOCKS):  # in another order each time: neighbours disturb each other
        for client in random.sample(list(clients.values()), len(clients)):
            client.ask(REQUESTS)
    medians = {name: statistics.median(client.seconds) for name, client in clients.items()}
    return {
        name: Waited(medians[name], medians[name] / medians["off"], percentile(one.seconds, 0.99))
        for name, one in clients.items()
    }


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with ServerProcess(
        "sink", [sys.executable, str(anchors.SOURCES / "sink.py"), "{port}"]
    ) as sink:
        for section in (calls(), whole_span(sink), faults(sink)):
            print(section.markdown())


if __name__ == "__main__":
    main()
