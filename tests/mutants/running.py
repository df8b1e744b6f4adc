"""Applying a mutant to a copy of the code, and running a test against such a copy.

The copy keeps compiled files and their times, so Python compiles the changed file alone. The
test runs in a process of its own, whose import path, and that of the servers it starts, begins
with the copy; of pytest's plugins it loads none that it does not need, for they take longer
than the test.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from mutants.catalogue import Mutant

TESTS = Path(__file__).resolve().parents[1]
SOURCE = TESTS.parent / "src"


class StaleMutant(Exception):
    """The text that a mutant replaces is not there once."""


def copy_source(into: Path) -> Path:
    """Copy src to a folder and return the copy."""
    return Path(shutil.copytree(SOURCE, into / "src"))


def apply(mutant: Mutant, source: Path) -> None:
    """Change a copy of src; StaleMutant unless the old text is there exactly once."""
    file = source / "tinyllm" / mutant.file
    text = file.read_text()
    if text.count(mutant.old) != 1:
        raise StaleMutant(
            f"{mutant.name}: {mutant.file} has {text.count(mutant.old)} times\n{mutant.old}"
        )
    file.write_text(text.replace(mutant.old, mutant.new))


class Outcome:
    """What pytest said."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.output = done.stdout + done.stderr
        counts = {
            what: int(count)
            for count, what in re.findall(
                r"(\d+) (passed|failed|errors?)\b", done.stdout.splitlines()[-1]
            )
        }
        self.passed, self.failed = counts.get("passed", 0), counts.get("failed", 0)
        self.errors = counts.get("error", 0) + counts.get("errors", 0)

    @property
    def killed(self) -> bool:
        """Whether a test has failed. One that could not even begin has caught nothing."""
        return self.failed > 0 and not self.errors

    @property
    def clean(self) -> bool:
        """Whether all tests have passed."""
        return self.passed > 0 and not self.failed and not self.errors


def run_tests(source: Path, *tests: str, timeout: float = 0.0) -> Outcome:
    """Run tests (node ids below tests/) against a copy of src."""
    command = [sys.executable, "-m", "pytest", "-c", str(TESTS / "mutants" / "killers.ini")]
    command += ["--rootdir", str(TESTS.parent), "--confcutdir", str(TESTS)]
    command += ["-p", "pytest_timeout", f"--timeout={timeout:g}"]
    environ = {
        **os.environ,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": f"{source}{os.pathsep}{TESTS}",
    }
    environ.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(
        [*command, *(str(TESTS / test) for test in tests)],
        capture_output=True,
        text=True,
        env=environ,
        cwd=source,
        timeout=120,
    )
    return Outcome(done)
