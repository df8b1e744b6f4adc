"""What a measured process costs, read from /proc while it lives its life."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.harness.processes import _children


def test_a_thread_that_has_ended_meanwhile_has_no_children(monkeypatch: pytest.MonkeyPatch) -> None:
    iterdir = Path.iterdir

    def with_an_ended_one(folder: Path) -> Iterator[Path]:
        yield folder / "0"
        yield from iterdir(folder)

    monkeypatch.setattr(Path, "iterdir", with_an_ended_one)
    command = [sys.executable, "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as child:
        assert child.pid in _children(os.getpid())
        child.communicate(b"\n")
