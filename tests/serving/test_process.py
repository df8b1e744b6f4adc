"""What a server does to its own process: here without one, over a kernel's answers made up."""

from __future__ import annotations

import resource

import pytest

from tinyllm.serving.process import OTHER_DESCRIPTORS, make_room_for

ENDLESS = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "fit", "asked_for"),
    [
        (1_000_000, 1_000_000, 4096, 4096, None),
        (ENDLESS, ENDLESS, 4096, 4096, None),
        (1024, ENDLESS, 4096, 4096, 4096 + OTHER_DESCRIPTORS),
        (1024, 524_288, 4096, 4096, 4096 + OTHER_DESCRIPTORS),
        (1024, 4096 + OTHER_DESCRIPTORS, 4096, 4096, 4096 + OTHER_DESCRIPTORS),
        (1024, 4096, 4096, 3072, 4096),
        (1024, 1024, 4096, 768, 1024),
        (256, 256, 4096, 192, 256),
        (256, 256, 100, 100, 256),
    ],
)
def test_the_limit_of_open_files_follows_the_connections(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    soft: int,
    hard: int,
    wanted: int,
    fit: int,
    asked_for: int | None,
) -> None:
    calls: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: calls.append(limits))
    assert make_room_for(wanted) == fit
    assert calls == ([] if asked_for is None else [(asked_for, hard)])
    assert bool(caplog.records) is (fit < wanted)
