"""The machine that figures come from, in words: a figure means little without it."""

from __future__ import annotations

import os
import platform
import re
import resource
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def describe() -> dict[str, str]:
    """Return what a reader needs to compare figures: cores, kernel, versions, the load."""
    return {
        "cpu": f"{_cpu_model()}, {_cores()} cores",
        "memory": f"{_memory_kib() / 2**20:.0f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "uvloop": _version("uvloop"),
        "rustc": _first_line("rustc", "--version"),
        "tinyllm": _commit(),
        "load before": " ".join(f"{value:.1f}" for value in os.getloadavg()),
    }


def require_linux() -> None:
    """End with a reason where there is no /proc: CPU time and memory are read from it."""
    if not Path("/proc/self/stat").exists():
        sys.exit("these benchmarks read CPU time and memory from /proc: they need Linux")


def raise_file_limit() -> int:
    """Let this process and its children open as many files as they may; return how many."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _cpu_model() -> str:
    match = re.search(r"(?m)^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text())
    return match[1] if match else platform.machine()


def _memory_kib() -> int:
    match = re.search(r"MemTotal: *(\d+) kB", Path("/proc/meminfo").read_text())
    return int(match[1]) if match else 0


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _commit() -> str:
    """Return the commit measured, marked where files differ from it."""
    commit = _first_line("git", "rev-parse", "--short", "HEAD")
    changed = _first_line("git", "status", "--porcelain", "--", "src")
    return f"{commit} with changes in src" if changed != "-" else commit


def _first_line(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "-"
    return done.stdout.partition("\n")[0] or "-"
