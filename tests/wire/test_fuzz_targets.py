"""The fuzz targets hold for their seeds and for what they found, so that they cannot rot."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

FUZZ = Path(__file__).parent.parent.parent / "fuzz"

# What the fuzzers found, each with the rule that it broke.
FOUND = {
    "request": [
        # A CR behind the last LF was judged at once, or at the next LF, as the bytes were cut.
        b"\x00\r\n\x06\r" + b"\xff" * 70 + b"\x15",
    ],
}


@pytest.fixture
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.syspath_prepend(str(FUZZ))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    name: str = request.param
    return name


@pytest.mark.parametrize("target", ["request", "response", "json", "sse"], indirect=True)
def test_target_holds_for_its_seeds_and_findings(target: str) -> None:
    check: Callable[[bytes], None] = import_module(f"fuzz_{target}").check
    inputs = [b"", *import_module("seeds").seeds(target), *FOUND.get(target, [])]
    for data in inputs:
        check(data)
    assert len(inputs) > 1


@pytest.mark.parametrize("target", ["request", "response", "json", "sse"], indirect=True)
def test_target_notices_a_fault(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module(f"fuzz_{target}")
    broken = {
        "request": ("read_request", lambda reader: reader.read()),
        "response": ("response_bytes", lambda *given: b"HTTP/1.1 200 OK\r\n\r\n"),
        "json": ("parse_json", lambda data, **given: None),
        "sse": ("sse_event", lambda data, **given: f"data: {data}\n"),
    }
    monkeypatch.setattr(module, *broken[target])
    with pytest.raises(AssertionError):  # noqa: PT012  (any of them may be the one)
        for data in import_module("seeds").seeds(target):
            module.check(data)
