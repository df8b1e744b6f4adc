"""How long from exec to the first answer, what does each import cost, how much memory is idle?

The start is timed by asking for /healthz on the API port, over and over, until it is 200; an ask
costs well under a millisecond. Imports are Python's own count (-X importtime) of one start,
the median of several, so their sum is larger than without the counting.
"""

from __future__ import annotations

import re
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

from benchmarks.harness import anchors
from benchmarks.harness.load import PLAIN
from benchmarks.harness.processes import ServerProcess, free_port
from benchmarks.harness.report import Section
from benchmarks.harness.statistics import Spread, figure
from benchmarks.serving.clients import plain_texts
from benchmarks.serving.lab import Lab

STARTS = 15
IMPORT_RUNS = 5
SHOWN_IMPORTS = 20
HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
IMPORT_LINE = re.compile(r"import time:\s*(\d+) \|\s*(\d+) \| ( *)(\S+)")
TIMED_IMPORT = "import time; t = time.perf_counter(); import {0}; print(time.perf_counter() - t)"
COLUMNS = ("what", "figure", "goal")


def measure(lab: Lab) -> Section:
    """Start many servers, one after the other."""
    section = Section("Start, imports and idle memory", COLUMNS)
    starts = Spread.of([_time_to_health(lab.model) * 1000 for _ in range(STARTS)])
    bare = Spread.of([_run_python("pass") * 1000 for _ in range(STARTS)])
    wire = Spread.of([_import_time("tinyllm.wire") * 1000 for _ in range(STARTS)])
    section.rows += [
        ["exec to the first 200 on /healthz, ms", str(starts), "under 250"],
        ["of which a Python that does nothing, ms", str(bare), "-"],
        ["import tinyllm.wire, ms", str(wire), "under 30"],
    ]
    section.data |= {"start_ms": starts, "bare_python_ms": bare, "import_wire_ms": wire}
    _add_memory(lab, section)
    _add_imports(lab, section)
    return section


def _time_to_health(model: Path) -> float:
    """Return the seconds from before the fork to the first 200."""
    server = anchors.ours(model)
    port = free_port()
    command = [word.format(port=port, health=free_port()) for word in server.command]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        while not _is_healthy(port):
            if process.poll() is not None or time.perf_counter() - start > 20:
                raise RuntimeError("tl-serve did not start")
        return time.perf_counter() - start
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _is_healthy(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as connection:
            connection.sendall(HEALTHZ)
            return connection.recv(64).startswith(b"HTTP/1.1 200")
    except OSError:
        time.sleep(0.0005)  # leave the starting server its core
        return False


def _run_python(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def _import_time(module: str) -> float:
    """Return the seconds of a first import, in a process of its own."""
    command = [sys.executable, "-c", TIMED_IMPORT.format(module)]
    return float(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def _add_memory(lab: Lab, section: Section) -> None:
    with anchors.ours(lab.model) as server:
        fresh = server.memory() / 2**20
        private = _private_bytes(server) / 2**20
        plain_texts(server, PLAIN, range(100))
        used = server.memory() / 2**20
    section.rows += [
        ["resident memory, idle after the start, MiB", figure(fresh), "under 40"],
        ["of which shared with no other process, MiB", figure(private), "-"],
        ["resident memory after 100 plain requests, MiB", figure(used), "-"],
    ]
    section.data["memory_mib"] = {"idle": fresh, "private": private, "after_requests": used}


def _private_bytes(server: ServerProcess) -> int:
    rollup = Path(f"/proc/{server.pid}/smaps_rollup").read_text()
    return sum(int(kib) * 1024 for kib in re.findall(r"Private_\w+: +(\d+) kB", rollup))


def _add_imports(lab: Lab, section: Section) -> None:
    own: dict[str, list[int]] = defaultdict(list)
    for _ in range(IMPORT_RUNS):
        for name, microseconds in _imports_of_a_start(lab.model).items():
            own[name].append(microseconds)
    medians = {name: statistics.median(values) for name, values in own.items()}
    dearest = sorted(medians, key=medians.__getitem__, reverse=True)
    total = sum(medians.values())
    listed = ", ".join(f"{name} {medians[name] / 1000:.1f}" for name in dearest[:SHOWN_IMPORTS])
    section.notes.append(
        f"{len(medians)} modules are imported until the server listens, {total / 1000:.0f} ms in "
        f"all; the dearest, each without what it imports, in ms: {listed}."
    )
    section.data["imports_us"] = {name: medians[name] for name in dearest}


def _imports_of_a_start(model: Path) -> dict[str, int]:
    """Return each module's own microseconds, from a server that is stopped once it listens."""
    with anchors.ours(model, PYTHONPROFILEIMPORTTIME="1") as server:
        server.stop()
    lines = server.said.splitlines()
    matches = [match for line in lines if (match := IMPORT_LINE.match(line))]
    return {match[4]: int(match[1]) for match in matches}
