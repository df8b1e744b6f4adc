"""What is the least that a request and a streamed token can cost here?

Beside ours: a bare uvloop protocol that writes the same bytes as constants (anchors/floor.py),
nginx returning a constant as long, and the Rust design. User time is the program's own work, system
time the kernel's, which no program of this shape can avoid.
"""

from __future__ import annotations

import shutil
import statistics
import sys
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.harness import anchors
from benchmarks.harness.load import PLAIN, STREAM, Body, Measured
from benchmarks.harness.processes import ServerProcess, free_port
from benchmarks.harness.report import Section
from benchmarks.harness.statistics import figure
from benchmarks.serving.clients import raw_answer
from benchmarks.serving.lab import Lab, Maker

CONNECTIONS = 16
NGINX_CONFIG: Final = """\
daemon off;
pid {folder}/nginx.pid;
worker_processes 1;
error_log stderr crit;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port} backlog=2048;
        location / {{ default_type application/json; return 200 "{body}"; }}
    }}
}}
"""
COLUMNS = ("server", "work", "units/s", "CPU us/unit", "user", "system")


def measure(lab: Lab) -> Section:
    """Load each server with what it can do, in turn."""
    section = Section("The floor: constant bytes", COLUMNS)
    for work, body in (("plain", PLAIN), ("stream", STREAM)):
        answer = _answer_of_ours(lab, body)
        makers: list[Maker] = [anchors.ours, partial(uvloop_constant, answer), anchors.tracer]
        if work == "plain":
            makers.append(partial(nginx_constant, answer))
        runs: dict[str, list[Measured]] = {}
        with lab.running(*makers) as servers:
            for _ in range(lab.rounds):
                for name, server in servers.items():
                    run = lab.load.turns(server, body, CONNECTIONS, lab.seconds)
                    runs.setdefault(name, []).append(run)
        for name, seen in runs.items():
            _add(section, name, work, seen)
    section.notes.append(
        "Units: requests, and events of a stream of 256. Each server closes every connection."
    )
    return section


def _answer_of_ours(lab: Lab, body: Body) -> bytes:
    """Return the bytes that ours answers with."""
    with anchors.ours(lab.model) as server:
        return raw_answer(server, body)


def uvloop_constant(answer: bytes, _model: Path) -> ServerProcess:
    """Return the bare protocol: a stream's first event leaves alone, as ours does."""
    anchors.BUILD.mkdir(exist_ok=True)
    head = answer.find(b"data: ")
    first = answer.find(b"\n\n", head) + 2 if head >= 0 else len(answer)
    parts = []
    for name, data in (("first", answer[:first]), ("rest", answer[first:])):
        if data:
            part = anchors.BUILD / f"floor-{name}-{len(answer)}"
            part.write_bytes(data)
            parts.append(str(part))
    command = [sys.executable, str(anchors.SOURCES / "floor.py"), "{port}", *parts]
    return ServerProcess("bare uvloop", command)


def nginx_constant(answer: bytes, _model: Path) -> ServerProcess:
    """Return nginx with a body as long as ours. Raises Missing where there is no nginx."""
    nginx = shutil.which("nginx")
    if nginx is None:
        raise anchors.Missing("nginx: not installed (Debian: nginx-light)")
    folder, port = anchors.BUILD / "nginx", free_port()
    folder.mkdir(parents=True, exist_ok=True)
    length = len(answer) - answer.find(b"\r\n\r\n") - 4
    config = folder / "nginx.conf"
    config.write_text(NGINX_CONFIG.format(folder=folder, port=port, body="x" * length))
    return ServerProcess("nginx", [nginx, "-c", str(config)], port=port)


def _add(section: Section, name: str, work: str, runs: list[Measured]) -> None:
    unit = "events" if work == "stream" else "requests"
    rate = statistics.median(run.figures[f"{unit}_s"] for run in runs)
    costs = [run.cpu_per_unit(unit) for run in runs]
    user = statistics.median(cost.user for cost in costs)
    system = statistics.median(cost.system for cost in costs)
    section.rows.append(
        [name, work, figure(rate), figure(user + system), figure(user), figure(system)]
    )
    section.data[f"{name} {work}"] = {"rate": rate, "user_us": user, "system_us": system}
