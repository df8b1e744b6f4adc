"""No server can make the runner fail: it may only find rules broken.

A good engine whose every answer is damaged at random, and servers that are worse than that, are
graded by every case. Whatever a case meets must end as held, broken or skipped.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Callable

import pytest

from conformance.servers import scripted, settings
from tinyllm.conformance import client
from tinyllm.conformance.case import Profile, select
from tinyllm.conformance.evidence import Exchange
from tinyllm.conformance.runner import KEPT_BYTES, Outcome, Result, run_case
from tinyllm.conformance.selftest.engine import Engine
from tinyllm.conformance.selftest.run import serving
from tinyllm.conformance.selftest.stream import Stream

SPARE_PARTS = (
    *(b"\r", b"\n", b"\r\n\r\n", b"\x00", b"\xff", b"\xed\xa0\x80", b'"', b"\\ud800", b"{", b"]"),
    *(b"null", b"NaN", b"1e999", b"-1", b"9" * 5000, b"[" * 2000, b"data: ", b"data:[DONE]\n\n"),
    *(
        b"Content-Length: 7\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
    ),
)


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Return the bytes with up to three of: a part cut out, doubled, or put in."""
    for _ in range(chance.randrange(4)):
        start = chance.randrange(len(data) + 1)
        end = min(len(data), start + chance.choice((1, 3, 40)))
        part = chance.choice((b"", data[start:end] * 2, chance.choice(SPARE_PARTS)))
        data = data[:start] + part + data[end:]
    return data


@pytest.mark.parametrize("seed", range(4))
def test_damaged_answers_only_break_rules(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    write = Stream.write
    monkeypatch.setattr(Stream, "write", lambda self, data: write(self, damaged(data, chance)))
    with serving(Engine, traced=True) as quick:
        hasty = {"timeout": 0.02, "stall_seconds": 0.02, "samples": 3, "long_tokens": 40}
        graded = settings(quick.address, **{**vars_of(quick), **hasty})
        shared: dict[str, object] = {}
        cases = select(graded.suite, Profile.TINYLLM)
        results = [run_case(case, graded, shared) for case in cases]
    assert len(results) == len(cases)
    assert Outcome.BROKEN in {result.outcome for result in results}


def vars_of(found: object) -> dict[str, object]:
    names = ("suite", "health", "checkpoint", "collector", "slow", "pressure_bytes")
    return {name: getattr(found, name) for name in names}


def endless_fields(peer: socket.socket) -> None:
    peer.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        peer.sendall(b"X-More: and more\r\n" * 100)


def endless_interim(peer: socket.socket) -> None:
    while True:
        peer.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 50)


def endless_chunks(peer: socket.socket) -> None:
    peer.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        peer.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")


def endless_line(peer: socket.socket) -> None:
    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ")
    while True:
        peer.sendall(b"x" * 65536)


def a_length_of_a_terabyte(peer: socket.socket) -> None:
    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n{")
    peer.recv(65536)


@pytest.mark.parametrize(
    "script",
    [endless_fields, endless_interim, endless_chunks, endless_line, a_length_of_a_terabyte],
)
def test_what_has_no_end_is_given_up_and_not_kept(
    script: Callable[[socket.socket], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MAX_RECEIVED_BYTES", 1_000_000)
    with scripted(script) as address:
        graded = settings(address, timeout=2.0)
        for name in ("v0.plain.shape", "v0.stream.framing"):
            case = select(graded.suite, Profile.TINYLLM, [name])[0]
            result = run_case(case, graded, {})
            assert result.outcome is Outcome.BROKEN
            assert kept_bytes(result) <= 1_000_000 + client.READ_BYTES
            assert kept_bytes(result.slim()) <= 2 * KEPT_BYTES


def kept_bytes(result: Result) -> int:
    return sum(len(exchange.received) for exchange in result.exchanges)


def test_a_slim_result_shows_the_same_part() -> None:
    case = select(settings(client.Address("x", 1)).suite, Profile.TINYLLM, ["v0.seed"])[0]
    whole = Exchange("x", received=bytearray(b"a" * 500_000 + b"HERE" + b"b" * 500_000))
    level = case.levels[Profile.TINYLLM]
    mark = whole.mark(500_000, 500_004)
    result = Result(case, level, Outcome.BROKEN, 0.0, "no", mark, [whole]).slim()
    assert result.mark is not None
    assert bytes(result.mark.exchange.received[result.mark.start : result.mark.end]) == b"HERE"
    assert result.mark.exchange.dropped + result.mark.start == 500_000
    held = Result(case, level, Outcome.HELD, 0.0, exchanges=[whole]).slim()
    assert (held.mark, held.exchanges) == (None, ())
