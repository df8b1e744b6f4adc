"""Run every case against servers that are each broken in one place.

A case that cannot fail is worth nothing; a case that fails for another's fault misleads. So each
broken server must be found by the case that is named for it, and by no other than those that
stand on the same ground. The good servers come first: there, nothing may fail.
"""

from __future__ import annotations

import fnmatch
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Final, TextIO

from tinyllm.conformance.case import Case, Profile, Suite, select
from tinyllm.conformance.checkpoint import Checkpoint
from tinyllm.conformance.collector import Collector
from tinyllm.conformance.runner import Outcome, Result, run_case
from tinyllm.conformance.selftest.engine import Engine
from tinyllm.conformance.selftest.fault import Fault, all_faults
from tinyllm.conformance.selftest.httpd import HttpServer
from tinyllm.conformance.selftest.model import write_checkpoint
from tinyllm.conformance.selftest.wire import Wire
from tinyllm.conformance.session import Settings

QUICK: Final = 0.3  # seconds for one answer: a broken server that hangs is not waited for
PATIENT: Final = 5.0  # for a second try of what failed and should not have
TRIES: Final = 3
WORKERS: Final = 2

# How far a fault can reach: the subjects (files) of cases that those of a file cannot touch. They
# are not run against it, which keeps the self-test short. Deadlines and spans are waited for, and
# so are tried only where a fault is about them; the good servers are given every case.
_TEXT: Final = frozenset(("text", "sampling", "checkpoint"))
_TIME: Final = frozenset(("flow", "crowd", "deadlines", "wire_stream"))
_SPANS: Final = frozenset(("traces",))
OUT_OF_REACH: Final[dict[str, frozenset[str]]] = {
    **dict.fromkeys(("errors", "fields", "http", "rejects"), _TEXT | _TIME | _SPANS),
    **dict.fromkeys(("connections",), _TEXT | _SPANS | {"flow", "deadlines"}),
    **dict.fromkeys(("plain", "stream", "text"), _TIME | _SPANS),
    "traces": _TEXT | _TIME,
    "flow": _SPANS | {"deadlines"},
    "wire": frozenset(("deadlines",)),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a server did to the cases, as against what it should have."""

    name: str
    failed: dict[str, str]  # case: reason
    missed: tuple[str, ...] = ()  # should have failed and did not
    unexpected: tuple[str, ...] = ()  # failed and should not have
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """Whether exactly what should have failed did."""
        return not self.missed and not self.unexpected


@cache
def model() -> Checkpoint:
    """Return the self-test's model, read back from a model directory."""
    with tempfile.TemporaryDirectory() as directory:
        write_checkpoint(Path(directory))
        return Checkpoint.load(Path(directory))


@contextmanager
def serving(server: type[HttpServer], traced: bool) -> Iterator[Settings]:
    """Run a server, and a collector for what it exports; yield the settings that grade it."""
    engine = issubclass(server, Engine)
    collector = Collector() if traced and engine else None
    url = collector.url if collector is not None else None
    running = server(model(), url) if issubclass(server, Engine) else server()
    try:
        yield Settings(
            running.address,
            suite=Suite.ENGINE if engine else Suite.WIRE,
            health=replace(running.address, prefix="/healthz") if engine else None,
            timeout=QUICK,
            slow=True,
            checkpoint=model() if engine else None,
            collector=collector,
            samples=10,
            long_tokens=300,
            stall_seconds=1.2,
            pressure_bytes=300_000,
        )
    finally:
        running.stop()
        if collector is not None:
            collector.close()


def judge(server: type[HttpServer], fault: Fault | None = None) -> Verdict:
    """Run the whole suite against a server and compare what failed with what should have."""
    begun = time.monotonic()
    wanted = fault.caught_by if fault else ()
    allowed = {*wanted, *(fault.shared if fault else ())}
    traced = fault is None or any(name.startswith("v0.trace.") for name in fault.caught_by)
    with serving(server, traced) as settings:
        cases = _cases(settings.suite, fault)
        shared: dict[str, object] = {}
        brief = replace(settings, brief=fault is not None)
        results = [
            _run(case, settings if case.id in allowed else brief, shared, case.id in allowed)
            for case in cases
        ]
    failed = {r.case.id: r.reason for r in results if r.outcome is Outcome.BROKEN}
    missed = tuple(sorted(allowed - failed.keys()))
    unexpected = tuple(sorted(case for case in failed if not _may_fail(case, fault)))
    return Verdict(server.__name__, failed, missed, unexpected, time.monotonic() - begun)


def _cases(suite: Suite, fault: Fault | None) -> list[Case]:
    """Return the cases to run: all, less those that the fault cannot reach."""
    cases = select(suite, Profile.TINYLLM)
    if fault is None:
        return cases
    own, beyond = {*fault.caught_by, *fault.shared}, OUT_OF_REACH[fault.subject]
    return [case for case in cases if case.id in own or subject_of(case) not in beyond]


def subject_of(case: Case) -> str:
    """Return the file that defines a case."""
    return case.run.__module__.rpartition(".")[2]


def _may_fail(case: str, fault: Fault | None) -> bool:
    if fault is None:
        return False
    named = case in fault.caught_by or case in fault.shared
    return named or any(fnmatch.fnmatchcase(case, glob) for glob in fault.may)


def _run(case: Case, settings: Settings, shared: dict[str, object], expected: bool) -> Result:
    """Run a case; on a busy machine a fault in time may not show, or show where there is none.

    So an outcome that is not the expected one is given more tries, with more patience.
    """
    settings_then = settings
    for _ in range(TRIES):
        result = run_case(case, settings_then, shared)
        if (result.outcome is Outcome.BROKEN) is expected:
            break
        settings_then = settings if expected else replace(settings, timeout=PATIENT)
    return result


def judge_by_name(name: str) -> Verdict:
    """Judge one broken server, or a good one; for a process of its own."""
    if name in GOOD:
        return judge(GOOD[name])
    fault = next(fault for fault in all_faults() if fault.name == name)
    return judge(fault.server, fault)


GOOD: Final[dict[str, type[HttpServer]]] = {"Engine": Engine, "Wire": Wire}


def uncovered(faults: Sequence[Fault]) -> list[str]:
    """Return the cases that no broken server is for."""
    caught = {case for fault in faults for case in fault.caught_by}
    cases = [case for suite in Suite for case in select(suite, Profile.TINYLLM)]
    return [case.id for case in cases if case.id not in caught]


def run_self_test(out: TextIO) -> bool:
    """Judge every server, a line each; True if all is as it should be."""
    begun = time.monotonic()
    faults = all_faults()
    names = [*GOOD, *(fault.name for fault in faults)]
    verdicts = []
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        for verdict in pool.map(judge_by_name, names):
            verdicts.append(verdict)
            out.write(_line(verdict, faults) + "\n")
            out.flush()
    untested = uncovered(faults)
    for case in untested:
        out.write(f"✗ {case}: no broken server shows that this case can fail\n")
    good = sum(verdict.good for verdict in verdicts)
    seconds = time.monotonic() - begun
    out.write(f"\n{good} of {len(verdicts)} servers judged as expected, in {seconds:.1f} s\n")
    return good == len(verdicts) and not untested


def _line(verdict: Verdict, faults: Sequence[Fault]) -> str:
    fault = next((fault for fault in faults if fault.name == verdict.name), None)
    if verdict.good and fault is None:
        return f"✓ {verdict.name}: good, and no case fails"
    if verdict.good and fault is not None:
        return f"✓ {verdict.name} is caught by {', '.join(fault.caught_by)}"
    told = [f"✗ {verdict.name}"]
    told += [f"  not caught by {case}" for case in verdict.missed]
    told += [f"  also fails {case}: {verdict.failed[case]}" for case in verdict.unexpected]
    return "\n".join(told)
