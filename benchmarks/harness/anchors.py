"""What ours is measured beside, and what loads it: built from our own sources, or left out.

The Rust programs need rustc; without it the Python load generator stands in and the Rust design
is left out. The peers live in an environment of their own, made on first use from a list of
pinned packages; where that fails they are left out. Whatever is left out is said.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.harness.processes import ServerProcess

HERE = Path(__file__).resolve().parent.parent
SOURCES = HERE / "anchors"
BUILD = HERE / ".build"
PEERS = HERE / ".venv"
WEIGHTS = "model.safetensors"
RUSTC = ("rustc", "--edition", "2021", "-O", "-C", "target-cpu=native")


class Missing(Exception):
    """An anchor cannot be had on this machine; the message says why."""


def rust_program(name: str) -> Path:
    """Return anchors/NAME.rs as a program, built anew when its source is newer."""
    source, program = SOURCES / f"{name}.rs", BUILD / name
    if program.exists() and program.stat().st_mtime > source.stat().st_mtime:
        return program
    if shutil.which("rustc") is None:
        raise Missing(f"{name}: no rustc on this machine")
    BUILD.mkdir(exist_ok=True)
    # Built aside and moved: another process may want the same program at the same time.
    with tempfile.TemporaryDirectory(dir=BUILD) as aside:
        built = Path(aside) / name
        command = [*RUSTC, str(source), "-o", str(built)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Missing(f"{name} does not build: {done.stderr.strip()[-300:]}")
        built.replace(program)
    return program


def peer_environment() -> Path:
    """Return the bin folder of the peers' environment, made on first use."""
    wanted = SOURCES / "requirements.txt"
    stamp = PEERS / "installed"
    if not stamp.exists() or stamp.stat().st_mtime < wanted.stat().st_mtime:
        python = str(PEERS / "bin" / "python")
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        for command in ([sys.executable, "-m", "venv", str(PEERS)], [*install, "-r", str(wanted)]):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise Missing(f"the peers cannot be installed: {done.stderr.strip()[-300:]}")
        stamp.touch()
    return PEERS / "bin"


def bench_model() -> Path:
    """Return the folder of the checkpoint that all servers load: Python's own documentation."""
    from tinyllm.training import train_default_model

    folder = BUILD / "model"
    if not (folder / WEIGHTS).exists():
        folder.mkdir(parents=True, exist_ok=True)
        train_default_model(folder)
    return folder


def ours(model: Path, *arguments: str, name: str = "ours", **environ: str) -> ServerProcess:
    """Return tl-serve, with its access log off unless `arguments` turn it on."""
    command = [sys.executable, "-m", "tinyllm.serving.cli", "--model-dir", str(model)]
    command += ["--host", "127.0.0.1", "--port", "{port}", "--health-port", "{health}"]
    return ServerProcess(name, [*command, "--no-access-log", *arguments], dict(environ))


def tracer(model: Path) -> ServerProcess:
    """Return the specification's own design in Rust."""
    program = rust_program("tracer")
    return ServerProcess("tracer", [str(program), str(model / WEIGHTS), "{port}"])


def fastapi(model: Path) -> ServerProcess:
    """Return what a Python user would write today."""
    command = [str(peer_environment() / "python"), "-m", "uvicorn", "--app-dir", str(SOURCES)]
    command += ["fastapi_peer:app", "--port", "{port}", "--no-access-log", "--log-level", "warning"]
    return ServerProcess("fastapi", command, {"MODEL": str(model / WEIGHTS)})
