"""Schemathesis reads the contract from the live server and tries to break one with the other.

Its examples, coverage and fuzzing phases run with every check it has (server errors, statuses,
media types, headers and bodies that the document does not have, valid requests refused, invalid
ones accepted, methods, Allow). The seed is fixed, so a finding comes again:

    st run http://127.0.0.1:8000/openapi.json --max-examples 2000
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from support.processes import BIN, TlServe

HOOKS = Path(__file__).with_name("schemathesis_hooks.py")
EXAMPLES = 20  # per operation: some ten seconds on two cores


def test_schemathesis_finds_nothing(succ_server: TlServe, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    ran = subprocess.run(
        [
            BIN / "schemathesis",
            *("run", f"{succ_server.base_url}/openapi.json"),
            *("--checks", "all", "--phases", "examples,coverage,fuzzing"),
            *("--seed", "1", "--max-examples", str(EXAMPLES)),
            *("--report", "json", "--report-json-path", report),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "SCHEMATHESIS_HOOKS": str(HOOKS), "NO_COLOR": "1"},
        timeout=100,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = json.loads(report.read_text())
    assert (found["failures"], found["errors"]) == ([], [])
    # GET /openapi.json it leaves out: that is where it has the document from.
    assert set(found["valid_rates"]) == {
        "POST /v1/completions",
        "GET /healthz",
        "HEAD /healthz",
        "HEAD /openapi.json",
    }
    assert found["test_cases"]["generated"] >= 100
    assert {phase["status"] for phase in found["phases"].values()} == {"success", "skip"}
