"""Load tl-serve at full speed for ten minutes and see that it holds no more memory at the end.

    python -m benchmarks.soak [--seconds S] [--clients N] [--loop auto|asyncio]

Clients (serving/soak_clients.py) ask without pause: plain answers and streams, on new and on kept
connections, requests that are refused, and streams that are abandoned in the middle. Meanwhile
the server's resident memory, open files and threads are read each second, and printed over time.

Memory is flat when its median over the last quarter is at most ALLOWED_KIB above that over the
second quarter; the first is left to caches, which find their size. At a thousand
requests a second that is a few bytes for each. Exits with 1 when memory has grown, when files or
threads are left over, or when an answer was wrong.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.harness import anchors, machine
from benchmarks.harness.processes import ServerProcess
from benchmarks.serving.soak_clients import ask_until

ALLOWED_KIB: Final = 2048
SAMPLE_SECONDS: Final = 1.0
LINES: Final = 20  # of the table over time


class Sample(NamedTuple):
    """A server at one moment."""

    seconds: float
    resident_kib: int
    open_files: int
    threads: int
    answers: int


def main() -> int:
    """Run the soak and print it; return the exit code."""
    args = _parser().parse_args()
    machine.require_linux()
    for key, value in machine.describe().items():
        print(f"{key}: {value}")
    with _server(args.loop) as server:
        idle = _sample(server.pid, time.monotonic(), 0)
        samples, failed = _soak(server, args.seconds, args.clients)
        server.settle()
        after = _sample(server.pid, time.monotonic(), 0)
        cpu = server.cpu().total
    faults = [*failed, *_faults(samples, idle, after)]
    print(f"server CPU: {cpu:.0f} s; answers: {samples[-1].answers:,}")
    print("\n".join(f"FAULT: {fault}" for fault in faults) or "flat: nothing grew, nothing is left")
    if server.said:
        print(f"the server said:\n{server.said[-2000:]}")
    return 1 if faults or server.said else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--loop", choices=("auto", "asyncio"), default="auto")
    return parser


@contextmanager
def _server(loop: str) -> Iterator[ServerProcess]:
    """Run a server with its access log on, into a pipe that is read."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as reader:
        assert reader.stdin is not None
        command = [sys.executable, "-m", "tinyllm.serving.cli", "--host", "127.0.0.1"]
        command += ["--model-dir", str(anchors.bench_model()), "--loop", loop]
        command += ["--port", "{port}", "--health-port", "{health}"]
        with ServerProcess("tinyllm", command, stdout=reader.stdin) as server:
            reader.stdin.close()  # ours; the server has its own
            server.settle()
            yield server


def _soak(server: ServerProcess, seconds: float, count: int) -> tuple[list[Sample], list[str]]:
    """Load the server; return a sample for each second, and what went wrong."""
    started = time.monotonic()
    end = started + seconds
    answers = multiprocessing.Array("Q", count, lock=False)
    clients = [
        multiprocessing.Process(
            target=ask_until, args=(end, number, ("127.0.0.1", server.port), answers)
        )
        for number in range(count)
    ]
    for client in clients:
        client.start()
    samples: list[Sample] = []
    print("\n  time    answers  per second   resident KiB   files  threads")
    while time.monotonic() < end and all(client.exitcode is None for client in clients):
        time.sleep(SAMPLE_SECONDS)
        samples.append(_sample(server.pid, started, sum(answers)))
        if len(samples) % max(1, int(seconds / SAMPLE_SECONDS / LINES)) == 0:
            _print(samples[-1])
    for client in clients:
        client.join(60)
    failed = [f"client {n} ended with {c.exitcode}" for n, c in enumerate(clients) if c.exitcode]
    return samples, failed


def _print(sample: Sample) -> None:
    rate = sample.answers / sample.seconds
    print(
        f"{sample.seconds:5.0f} s {sample.answers:10,} {rate:11,.0f} {sample.resident_kib:14,}"
        f" {sample.open_files:7} {sample.threads:8}",
        flush=True,
    )


def _sample(pid: int, started: float, answers: int) -> Sample:
    """Read the server's state from /proc (proc(5))."""
    status = Path(f"/proc/{pid}/status").read_text()
    values = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    return Sample(
        time.monotonic() - started,
        int(values["VmRSS"].split()[0]),
        len(os.listdir(f"/proc/{pid}/fd")),
        int(values["Threads"]),
        answers,
    )


def _faults(samples: Sequence[Sample], idle: Sample, after: Sample) -> list[str]:
    """Return what is not as it was."""
    quarter = len(samples) // 4
    early = statistics.median(s.resident_kib for s in samples[quarter : 2 * quarter] or samples)
    late = statistics.median(s.resident_kib for s in samples[3 * quarter :])
    print(f"\nresident, median: second quarter {early:,.0f} KiB, last quarter {late:,.0f} KiB")
    print(f"idle before and after: {idle.resident_kib:,} and {after.resident_kib:,} KiB")
    faults = []
    if late - early > ALLOWED_KIB:
        faults.append(f"memory grew by {late - early:,.0f} KiB")
    for what in ("open_files", "threads"):
        before, now = getattr(idle, what), getattr(after, what)
        if now > before:
            faults.append(f"{what} were {before}, are {now}")
    return faults


if __name__ == "__main__":
    sys.exit(main())
