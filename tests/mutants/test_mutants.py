"""The pitfalls of the specification are caught: each by the test that it names for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutants.catalogue import MUTANTS, Mutant
from mutants.running import StaleMutant, apply, copy_source, run_tests


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_pitfall_is_caught_by_its_test(mutant: Mutant, tmp_path: Path) -> None:
    source = copy_source(tmp_path)
    apply(mutant, source)
    outcome = run_tests(source, mutant.killer, timeout=mutant.timeout)
    assert outcome.killed, outcome.output


def test_the_code_as_it_is_passes_them_all(tmp_path: Path) -> None:
    outcome = run_tests(copy_source(tmp_path), *{mutant.killer for mutant in MUTANTS})
    assert outcome.clean, outcome.output


def test_a_mutant_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    source = copy_source(tmp_path)
    apply(MUTANTS[0], source)
    with pytest.raises(StaleMutant):
        apply(MUTANTS[0], source)
