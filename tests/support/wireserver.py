"""The `wire` server as its users start it: a command, its first line, signals."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from support.wire import Address

WIRE = Path(sys.executable).parent / "wire"
STARTED = re.compile(r"listening on 127\.0\.0\.1:([0-9]+)\n")


class WireServer:
    """A `wire` process on a free port; leaving the context stops it."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [WIRE, "--port", "0", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        match = STARTED.fullmatch(self.process.stdout.readline())
        if match is None:
            self.process.kill()
            raise AssertionError(f"wire did not start: {self.process.communicate()[1]!r}")
        self.address: Address = ("127.0.0.1", int(match[1]))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def wait(self, timeout: float = 20) -> tuple[int, str, str]:
        """Return the exit code and what stdout and stderr still held."""
        out, err = self.process.communicate(timeout=timeout)
        return self.process.returncode, out, err

    def __enter__(self) -> WireServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(20)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
