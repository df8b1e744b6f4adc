"""Servers as processes: started on a free port, asked what they cost, stopped.

Cost is read from /proc: CPU time of the process and its children (whatever the client does),
memory as the kernel counts it.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple, Self

TICKS = os.sysconf("SC_CLK_TCK")
START_SECONDS = 20.0
STOP_SECONDS = 15.0
SETTLE_SECONDS = 10.0  # at most
QUIET_SECONDS = 0.2


class CpuTime(NamedTuple):
    """Seconds of CPU."""

    user: float
    system: float

    @property
    def total(self) -> float:
        return self.user + self.system

    def since(self, before: CpuTime) -> CpuTime:
        return CpuTime(self.user - before.user, self.system - before.system)


@dataclass
class ServerProcess:
    """A server that listens on 127.0.0.1. Its command may hold {port} and {health}.

    A `port` of 0 means: a free one, each time it is started.
    """

    name: str
    command: Sequence[str]
    environ: dict[str, str] = field(default_factory=dict)
    port: int = 0
    stdout: int | IO[bytes] = subprocess.DEVNULL

    def start(self) -> Self:
        """Start it and wait until it listens; RuntimeError with its last words if it does not."""
        self.port = self.port or free_port()
        fields = {"port": self.port, "health": free_port()}
        # A file, not a pipe: nobody reads while the server runs, and a full pipe would stop it.
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - it outlives this call
        self._process = subprocess.Popen(
            [word.format(**fields) for word in self.command],
            stdin=subprocess.DEVNULL,
            stdout=self.stdout,
            stderr=self._stderr,
            env={**os.environ, **self.environ},
            start_new_session=True,  # as services are started: a scheduling group of its own
        )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            if listens(self.port):
                return self
            time.sleep(0.02)
        self.stop()
        raise RuntimeError(f"{self.name} did not start: {self.said[-500:]}")

    @property
    def pid(self) -> int:
        return self._process.pid

    def cpu(self) -> CpuTime:
        """Return what the process and its children have used so far."""
        times = [_cpu_of(pid) for pid in [self.pid, *_children(self.pid)]]
        return CpuTime(sum(t.user for t in times), sum(t.system for t in times))

    def settle(self) -> None:
        """Wait until it is done with what it was left with: no tick of CPU for a while."""
        deadline = time.monotonic() + SETTLE_SECONDS
        used = self.cpu().total
        while time.monotonic() < deadline:
            time.sleep(QUIET_SECONDS)
            before, used = used, self.cpu().total
            if used - before <= 1 / TICKS:
                return

    def memory(self) -> int:
        """Return the resident bytes of the process."""
        return _status_bytes(self.pid, "VmRSS")

    def forget_peak(self) -> None:
        """Let `peak_memory` count from now (the kernel's own reset)."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def peak_memory(self) -> int:
        """Return the most resident bytes so far."""
        return _status_bytes(self.pid, "VmHWM")

    def stop(self) -> None:
        """End it; a server that does not end on SIGTERM is killed."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def said(self) -> str:
        """What it has written to stderr."""
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="replace")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def free_port() -> int:
    """Return a port of 127.0.0.1 that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def listens(port: int) -> bool:
    """Say whether something accepts connections on a port."""
    try:
        socket.create_connection(("127.0.0.1", port), 0.5).close()
    except OSError:
        return False
    return True


def _children(pid: int) -> list[int]:
    children: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        # A thread may have ended since: its children are another thread's now.
        with suppress(FileNotFoundError, ProcessLookupError):
            children += map(int, (task / "children").read_text().split())
    return children


def _cpu_of(pid: int) -> CpuTime:
    """Read fields 14 and 15 of /proc/PID/stat (proc(5)); the name before may hold anything."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return CpuTime(int(fields[11]) / TICKS, int(fields[12]) / TICKS)


def _status_bytes(pid: int, name: str) -> int:
    match = re.search(rf"{name}:\s*(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    if match is None:
        raise RuntimeError(f"/proc/{pid}/status has no {name}")
    return int(match[1]) * 1024
