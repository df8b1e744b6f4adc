"""Our own servers, as processes, keep every rule: with one process and with two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from support.processes import TlServe
from support.wireserver import WireServer
from tinyllm.conformance.case import Case, Need, Profile, Suite, select
from tinyllm.conformance.checkpoint import Checkpoint
from tinyllm.conformance.client import Address
from tinyllm.conformance.collector import Collector
from tinyllm.conformance.runner import Outcome, run_cases
from tinyllm.conformance.selftest.model import write_checkpoint
from tinyllm.conformance.session import Settings

DEADLINES = ("--head-timeout", "0.5", "--body-timeout", "0.5")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("model")
    write_checkpoint(directory)
    return directory


@contextmanager
def engine(model: Path, *arguments: str) -> Iterator[Settings]:
    """Run tl-serve with a collector; yield the settings that grade all it promises."""
    collector = Collector()
    environ = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_BSP_SCHEDULE_DELAY": "50",
    }
    try:
        with TlServe(model, "--no-access-log", *arguments, environ=environ) as server:
            yield Settings(
                Address(*server.address),
                health=Address(*server.health_address, "/healthz"),
                timeout=20,
                checkpoint=Checkpoint.load(model),
                collector=collector,
            )
    finally:
        collector.close()


def cases(suite: Suite, *, slow: bool = False) -> list[Case]:
    found = select(suite, Profile.TINYLLM)
    return [case for case in found if (case.need is Need.SLOW) is slow]


def not_held(chosen: Sequence[Case], settings: Settings) -> dict[str, str]:
    """Return the cases that do not hold, with the reason."""
    results = run_cases(chosen, settings)
    return {r.case.id: r.reason for r in results if r.outcome is not Outcome.HELD}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_engine_keeps_every_rule(model: Path, workers: str) -> None:
    with engine(model, "--workers", workers) as settings:
        assert not_held(cases(Suite.ENGINE), settings) == {}


def test_the_engine_keeps_its_deadlines(model: Path) -> None:
    with engine(model, *DEADLINES) as settings:
        patient = replace(settings, slow=True, stall_seconds=20)
        assert not_held(cases(Suite.ENGINE, slow=True), patient) == {}


def test_the_wire_server_keeps_every_rule() -> None:
    with WireServer() as server:
        settings = Settings(Address(*server.address), suite=Suite.WIRE, timeout=20)
        assert not_held(cases(Suite.WIRE), settings) == {}


def test_the_wire_server_keeps_its_deadlines() -> None:
    with WireServer(*DEADLINES) as server:
        settings = Settings(
            Address(*server.address), suite=Suite.WIRE, slow=True, stall_seconds=20, timeout=20
        )
        assert not_held(cases(Suite.WIRE, slow=True), settings) == {}
