"""A server whose access log and tracing are switched on and off while it is under load.

    python -m benchmarks.serving.switched PORT MODEL COLLECTOR     (a port; started by observing.py)

Two servers cannot be compared to a few per cent: each keeps the speed that it happens to start
with, and the machine's own changes from one second to the next. So one server is switched ten
times a second, by turns to `off` and to one of the others. For each turn a line of JSON tells its
name, its seconds, the requests and tokens answered, and the processor time of server and exporter.
The first moments of a turn do not count: the exporter may still be at spans of the turn before.

Two contenders show the floor. `ready` is what is left of both if the facts of a request, and its
line, are there for nothing: the same ones are handed on for each. `constants` is what is left if
all that is ours costs nothing, the text of a span too: a constant line goes to the log's thread, a
constant span to a process that posts constant bodies of the same size (constant_exporter.py).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Final

from benchmarks.serving.constant_exporter import PACKED_BYTES, SPANS_PER_BODY

from tinyllm.serving import lifecycle
from tinyllm.serving.accesslog import AccessLog
from tinyllm.serving.exchange import Exchange
from tinyllm.serving.server import Server
from tinyllm.tracing import CompletionSpan, ExportConfig, ExporterProcess

TURN, LEAD = 0.1, 0.02  # seconds: measured, and before that
CONTENDERS: Final = ("log", "tracing", "both", "ready", "constants")
LINE: Final = (
    '2026-12-01T00:00:00.000Z 0123456789abcdef 127.0.0.1:40000 "POST /v1/completions" 200 352B '
    "prompt=4 completion=16 ttft=52us duration=62us completed\n"
)
FACTS: Final = CompletionSpan(
    1_796_083_200_000_000_000,
    host="127.0.0.1:8000",
    status=200,
    stream=False,
    temperature=0.0,
    finish_reason="length",
    duration_ns=62_000,
    first_token_ns=52_000,
    response_id="cmpl-0123456789abcdef0123456789abcdef",
    model="tracer",
    max_tokens=16,
    seed=1,
    input_tokens=4,
    output_tokens=16,
).plain()
PACKED: Final = b"x" * PACKED_BYTES

# What the server has, and who is told of an exchange.
Way = tuple[AccessLog | None, ExporterProcess | None, Callable[[Sequence[Exchange]], None]]


class Constants:
    """Hands over a constant for each request, as `ExporterProcess` and `AccessLog` do facts."""

    def __init__(self, collector: int, log: AccessLog) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", "benchmarks.serving.constant_exporter", str(collector)]
            self.process = subprocess.Popen(command, stdin=theirs.fileno())
        self._socket = ours
        self._waiting: list[bytes] = []
        self._write = log._writer.write

    def finished(self, exchanges: Sequence[Exchange]) -> None:
        for exchange in exchanges:
            self._write(LINE)
            if exchange.path != "/v1/completions":
                continue
            self._waiting.append(PACKED)
            if len(self._waiting) == SPANS_PER_BODY:
                self._socket.sendall(b"".join(self._waiting))
                self._waiting.clear()

    def close(self) -> None:
        self._socket.close()
        self.process.wait()


class Ready:
    """Hands over the same facts and the same line for each request."""

    def __init__(self, exporter: ExporterProcess, log: AccessLog) -> None:
        self._offer, self._write = exporter.offer, log.write

    def finished(self, exchanges: Sequence[Exchange]) -> None:
        self._offer(*[FACTS for exchange in exchanges if exchange.path == "/v1/completions"])
        self._write(*[LINE] * len(exchanges))


class Switch:
    """Gives each contender its turns, and tells of each turn."""

    def __init__(self, server: Server, ways: dict[str, Way], children: list[int]) -> None:
        self._server, self._ways, self._children = server, ways, children
        turns = [name for contender in CONTENDERS for name in ("off", contender)]
        self._names = itertools.cycle(turns)
        self._requests = self._tokens = 0
        server.finished = self._finished  # type: ignore[method-assign]

    def _finished(self, exchanges: Sequence[Exchange]) -> None:
        self._requests += len(exchanges)
        self._tokens += sum(exchange.completion_tokens for exchange in exchanges)
        self._tell(exchanges)

    def next(self) -> None:
        """Begin a turn."""
        self._name = next(self._names)
        self._server.access_log, self._server.exporter, self._tell = self._ways[self._name]
        self._loop = asyncio.get_running_loop()
        self._loop.call_later(LEAD, self._begin)

    def _begin(self) -> None:
        self._requests = self._tokens = 0
        self._began, self._used = time.perf_counter(), self._cpu()
        self._loop.call_later(TURN, self._end)

    def _end(self) -> None:
        seconds, cpu = time.perf_counter() - self._began, self._cpu() - self._used
        facts = {"name": self._name, "seconds": seconds, "requests": self._requests}
        print(json.dumps({**facts, "events": self._tokens, "cpu": cpu}), flush=True)
        self.next()

    def _cpu(self) -> float:
        """Seconds of processor time of this process and its children so far."""
        # A process's clock as the kernel numbers them: clock_getcpuclockid(3).
        clocks = [~child << 3 | 2 for child in self._children]
        return time.process_time() + sum(map(time.clock_gettime, clocks))


def main(port: int, model: str, collector: int) -> None:
    """Serve until SIGTERM."""
    traced = ExporterProcess(
        ExportConfig.from_env({"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector}"})
        or sys.exit("nothing is exported")
    )
    server = Server.from_env(model, environ={})
    with tempfile.TemporaryFile() as file:
        log = AccessLog(file.fileno())
        constants = Constants(collector, log)
        told = server.finished  # as it is
        ways: dict[str, Way] = {
            "off": (None, None, told),
            "log": (log, None, told),
            "tracing": (None, traced, told),
            "both": (log, traced, told),
            "ready": (None, None, Ready(traced, log).finished),
            "constants": (None, None, constants.finished),
        }
        switch = Switch(server, ways, [traced._process.pid, constants.process.pid])
        with socket.create_server(("127.0.0.1", port), backlog=2048) as listener:
            lifecycle.run(server, listener, started=switch.next)
        traced.close(2)
        constants.close()
        log.close(2)
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
