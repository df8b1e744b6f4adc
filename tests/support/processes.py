"""Servers as their users start them: a command, its first line, signals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from support.wire import Address

STARTED = re.compile(r"listening on (\S+):(\d+), health on (\S+):(\d+)")
BIN = Path(sys.executable).parent


class TlServe:
    """A running tl-serve; leaving the context stops it."""

    def __init__(
        self, model_dir: Path, *arguments: str, environ: dict[str, str] | None = None
    ) -> None:
        self.process = subprocess.Popen(
            [
                BIN / "tl-serve",
                *("--model-dir", model_dir, "--host", "127.0.0.1", "--port", "0"),
                *("--health-port", "0", *arguments),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environ or {})},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        match = STARTED.match(line)
        if match is None:
            self.process.kill()
            raise AssertionError(f"tl-serve said {line!r} and {self.process.communicate()[1]!r}")
        self.address: Address = (match[1], int(match[2]))
        self.health_address: Address = (match[3], int(match[4]))
        self.curl_line = self.process.stdout.readline().rstrip("\n")

    @property
    def base_url(self) -> str:
        """What clients call the base URL."""
        return f"http://{self.address[0]}:{self.address[1]}"

    def stop(self, number: int = signal.SIGTERM, timeout: float = 20) -> tuple[int, str, str]:
        """Send a signal; return the exit code and what stdout and stderr still held."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=timeout)
        return self.process.returncode, out, err

    def __enter__(self) -> TlServe:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@contextmanager
def running(model_dir: Path, *arguments: str) -> Iterator[TlServe]:
    """Run a quiet server for the length of a with block."""
    with TlServe(model_dir, "--no-access-log", *arguments) as server:
        yield server


def run_command(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    """Run one of our commands to its end."""
    command: Sequence[str | Path] = [BIN / name, *arguments]
    return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
