"""Every case fails on a server that breaks its rule, and on no other.

The good servers pass everything; each broken one fails the cases that are named for it and those
that stand on the same ground.
"""

from __future__ import annotations

import io

import pytest

from tinyllm.conformance.case import Suite, all_cases
from tinyllm.conformance.selftest import run as selftest
from tinyllm.conformance.selftest.fault import Fault, all_faults
from tinyllm.conformance.selftest.run import GOOD, Verdict, judge, judge_by_name, uncovered

FAULTS = all_faults()

# Faults of the edge are in code that both servers share, and their cases are one function: here
# they are tried on the engine; `tinyllm conform --self-test` tries them on both.
TRIED = [fault for fault in FAULTS if fault.suite is Suite.ENGINE or fault.subject == "wire"]


def told(verdict: Verdict) -> str:
    unexpected = {case: verdict.failed[case] for case in verdict.unexpected}
    return f"not caught by {verdict.missed}; also fails {unexpected}"


@pytest.mark.parametrize("name", GOOD)
def test_nothing_fails_on_a_good_server(name: str) -> None:
    verdict = judge_by_name(name)
    assert verdict.good, told(verdict)


@pytest.mark.parametrize("fault", TRIED, ids=lambda fault: str(fault.name))
def test_a_broken_server_fails_its_cases_and_no_others(fault: Fault) -> None:
    verdict = judge(fault.server, fault)
    assert verdict.good, told(verdict)


def test_every_case_has_a_server_on_which_it_fails() -> None:
    assert uncovered(FAULTS) == []


def test_what_a_fault_names_are_cases() -> None:
    known = {case.id for case in all_cases()}
    named = {case for fault in FAULTS for case in (*fault.caught_by, *fault.shared)}
    assert named <= known


def test_each_fault_says_what_is_wrong() -> None:
    assert [fault.name for fault in FAULTS if not fault.summary.endswith((".", ")."))] == []
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_every_subject_says_how_far_its_faults_reach() -> None:
    assert {fault.subject for fault in FAULTS} == set(selftest.OUT_OF_REACH)
    subjects = {selftest.subject_of(case) for case in all_cases()}
    assert {name for beyond in selftest.OUT_OF_REACH.values() for name in beyond} <= subjects


def test_the_self_test_tells_a_case_that_cannot_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = [fault for fault in FAULTS if "v0.seed" not in fault.caught_by]
    assert uncovered(seeds) == ["v0.seed"]
    monkeypatch.setattr(selftest, "all_faults", list)
    monkeypatch.setattr(selftest, "GOOD", {})
    out = io.StringIO()
    assert selftest.run_self_test(out) is False
    assert "✗ v0.seed: no broken server shows that this case can fail\n" in out.getvalue()
