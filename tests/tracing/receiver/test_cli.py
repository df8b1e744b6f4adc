"""`tinyllm traces` as its user runs it: a process, its lines, its end."""

from __future__ import annotations

import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pytest

from support.processes import BIN
from tinyllm.__main__ import main
from tinyllm.tracing import Span, export_span, otlp_json
from tinyllm.tracing.cli import MAX_PRINTED, Printer
from tinyllm.tracing.receiver.received import ReceivedSpan
from tinyllm.tracing.receiver.server import Received
from tinyllm.tracing.receiver.store import TraceStore
from tinyllm.tracing.receiver.tree import Style

T0 = 1_791_518_626_000_000_000
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
GATEWAY = Span(TRACE_ID, "00f067aa0ba902b7", None, "POST /complete", T0, T0 + 20_000_000)
ENGINE = Span(TRACE_ID, "a" * 16, GATEWAY.span_id, "POST /v1/completions", T0, T0 + 10_000_000)


class Traces:
    """A running `tinyllm traces`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self.out: IO[str] = process.stdout
        match = re.fullmatch(
            r"listening on (http://127\.0\.0\.1:\d+)/v1/traces\n", self.out.readline()
        )
        assert match is not None
        self.endpoint = match[1]

    def lines(self, count: int) -> list[str]:
        return [self.out.readline().rstrip("\n") for _ in range(count)]


@contextmanager
def running(*arguments: str) -> Iterator[Traces]:
    command = [str(BIN / "tinyllm"), "traces", "--port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        try:
            yield Traces(process)
        finally:
            process.kill()


def test_spans_of_two_services_become_one_tree() -> None:
    with running() as traces:
        export_span(traces.endpoint, otlp_json("engine", ENGINE))
        export_span(traces.endpoint, otlp_json("gateway", GATEWAY))
        blank, title, gateway, engine = traces.lines(4)
        assert blank == ""
        assert title == f"trace {TRACE_ID} · 2 spans · 20.0 ms"
        assert gateway.startswith("gateway  POST /complete")
        assert engine.startswith("└─ engine  POST /v1/completions")
        # A process without a terminal gets no colours.
        assert "\x1b" not in title + gateway + engine
        with urllib.request.urlopen(traces.endpoint + "/") as reply:
            assert reply.read().decode().splitlines()[0] == title


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_0_and_what_was_not_yet_printed(number: int) -> None:
    with running() as traces:
        export_span(traces.endpoint, otlp_json("gateway", GATEWAY))
        traces.process.send_signal(number)
        assert traces.lines(2)[1] == f"trace {TRACE_ID} · 1 span · 20.0 ms"
        assert traces.process.wait(timeout=20) == 0


def test_a_port_in_use_is_one_line_and_exit_1() -> None:
    with running() as traces:
        port = traces.endpoint.rpartition(":")[2]
        command = [str(BIN / "tinyllm"), "traces", "--port", port]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    assert done.returncode == 1
    assert done.stderr == f"tinyllm traces: 127.0.0.1:{port}: Address already in use\n"


@pytest.mark.parametrize(
    "arguments",
    [["--port", "65536"], ["--port", "-1"], ["--port", "x"], ["--keep", "0"], ["--nonsense"]],
)
def test_usage_errors_exit_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["traces", *arguments])
    assert left.value.code == 2
    assert capsys.readouterr().err.startswith("usage: tinyllm traces")


def test_when_its_reader_goes_away_it_ends_quietly() -> None:
    command = [str(BIN / "tinyllm"), "traces", "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        endpoint = process.stdout.readline().split()[2].removesuffix("/v1/traces")
        process.stdout.close()
        export_span(endpoint, otlp_json("gateway", GATEWAY))
        assert process.wait(timeout=20) == 0
        assert process.stderr.read() == ""


def test_a_flood_is_counted_and_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    printer = Printer(TraceStore(100), Style())
    for number in range(130):
        found = ReceivedSpan(f"{number:032x}", "a" * 16, "", "n", "s", T0, T0 + 1)
        printer.took(Received([found], [f"problem {number}"]))
    printer.tick(now=1e12, quiet=0)
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("trace ") for line in lines) == MAX_PRINTED
    assert sum(line.startswith("! problem ") for line in lines) == MAX_PRINTED
    # 110 problems, 80 kept traces, and 30 that had to go before they were printed.
    assert lines[-1] == "... and 220 more"
    printer.tick(now=1e12, quiet=0)
    assert capsys.readouterr().out == ""


def test_overview_without_traces() -> None:
    assert Printer(TraceStore(1), Style()).overview() == "no traces yet\n"
