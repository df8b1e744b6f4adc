"""`make mutants`: run every mutant against its test, and print what caught what.

Exits with 1 when one survives, or when a test fails on the code as it is.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mutants.catalogue import MUTANTS, Mutant
from mutants.running import Outcome, apply, copy_source, run_tests


def run_one(mutant: Mutant) -> tuple[Mutant, Outcome, float]:
    """Return a mutant's outcome and the seconds it took."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        source = copy_source(Path(folder))
        apply(mutant, source)
        outcome = run_tests(source, mutant.killer, timeout=mutant.timeout)
    return mutant, outcome, time.monotonic() - started


def main() -> int:
    """Print the table; return the exit code."""
    started = time.monotonic()
    print("| pitfall (engine spec, section 5) | changed file | caught by | |")
    print("| --- | --- | --- | --- |")
    survived = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for mutant, outcome, seconds in pool.map(run_one, MUTANTS):
            said = f"caught, {seconds:.1f} s" if outcome.killed else "**survived**"
            test = mutant.killer.rpartition("::")[2]
            print(f"| {mutant.pitfall} | {mutant.file} | `{test}` | {said} |", flush=True)
            if not outcome.killed:
                survived.append(outcome)
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        tests = {mutant.killer for mutant in MUTANTS}
        unchanged = run_tests(copy_source(Path(folder)), *tests)
    print(f"\n{len(MUTANTS) - len(survived)} of {len(MUTANTS)} caught; the code as it is", end=" ")
    print(f"{'passes' if unchanged.clean else 'FAILS'}; {time.monotonic() - started:.0f} s")
    for outcome in [*survived, *([] if unchanged.clean else [unchanged])]:
        print(f"\n{outcome.output[-4000:]}")
    return 0 if unchanged.clean and not survived else 1


if __name__ == "__main__":
    sys.exit(main())
