"""One server for all real clients, its log, and the clients' own packages."""

from __future__ import annotations

import fcntl
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.accesslog import AccessLog
from support.processes import TlServe
from support.tools import require

NODE = Path(__file__).parent / "node"


@pytest.fixture(scope="session")
def server(succ_model: Path) -> Iterator[TlServe]:
    """A tl-serve with the succ model that says in its log when a request has ended."""
    with TlServe(succ_model, "--log-format", "json") as running:
        yield running


@pytest.fixture(scope="session")
def log(server: TlServe) -> AccessLog:
    return AccessLog(server)


@pytest.fixture(scope="session")
def node_modules() -> Path:
    """The folder with the npm packages of node/package.json, installed there if they are not."""
    package = NODE / "package.json"
    modules = NODE / "node_modules"
    with package.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # two test processes would install into one folder
        for name, version in json.load(held)["dependencies"].items():
            installed = modules / name / "package.json"
            if not installed.exists() or json.loads(installed.read_text())["version"] != version:
                subprocess.run(
                    [require("npm"), "install", "--no-package-lock", "--no-audit", "--no-fund"],
                    cwd=NODE,
                    check=True,
                    capture_output=True,
                    timeout=110,
                )
    return modules
