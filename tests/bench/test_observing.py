"""Turns of a switched server are compared with those around them, where all were loaded."""

from __future__ import annotations

from benchmarks.serving.observing import Pair, Turn, _compared


def turn(name: str, requests: int, cpu: float = 1.0) -> Turn:
    return {"name": name, "seconds": 1.0, "requests": requests, "events": 0, "cpu": cpu}


def test_a_turn_is_compared_with_those_around_it() -> None:
    turns = [
        turn("off", 0),
        turn("log", 7),  # the load begins in it
        turn("off", 100),
        turn("tracing", 90, 1.8),
        turn("off", 120),
        turn("both", 60),
        turn("off", 80),
        turn("log", 80),  # and ends in it
        turn("off", 0),
    ]
    tracing, both = _compared(turns, "requests")
    assert tracing == Pair("tracing", 90 / 110, 50 / 110)
    assert both == Pair("both", 0.6, 0.6)
