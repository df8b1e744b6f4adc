"""Selection, sessions and the run: what a case is given, and when a run gives up."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from conformance.servers import scripted, sends, settings
from tinyllm.conformance import case as registry
from tinyllm.conformance.case import Case, Level, Profile, Suite, all_cases, select
from tinyllm.conformance.client import Address
from tinyllm.conformance.evidence import CaseSkipped, CheckFailed
from tinyllm.conformance.runner import LATE_IN_A_ROW, Outcome, Unreachable, run_case, run_cases
from tinyllm.conformance.session import OMIT, Session

SOMEWHERE = Address("127.0.0.1", 8000, "/api")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


def made(run: Callable[[Session], object]) -> Case:
    levels = {Profile.TINYLLM: Level.REQUIRED}
    return Case("v0.made", "a rule", "a reason", lambda s: void(run(s)), "Tried.", levels)


def void(_: object) -> None:
    """Return nothing, whatever a lambda returned."""


def test_ids_are_unique_and_say_their_suite() -> None:
    cases = all_cases()
    assert len({case.id for case in cases}) == len(cases)
    assert {case.id.partition(".")[0] for case in cases} == {"v0", "wire"}
    with pytest.raises(ValueError, match=r"two cases are called v0\.seed"):
        registry.register(next(case for case in cases if case.id == "v0.seed"))


def test_every_case_says_what_it_tries_its_rule_and_why() -> None:
    for case in all_cases():
        assert case.summary.endswith(".") or case.summary.endswith(")."), case.id
        assert case.rule, case.id
        assert case.why.endswith("."), case.id


def test_the_openai_profile_is_a_part_of_the_other() -> None:
    full = {case.id for case in select(Suite.ENGINE, Profile.TINYLLM)}
    fair = {case.id for case in select(Suite.ENGINE, Profile.OPENAI)}
    assert fair < full
    assert not any(case.id.startswith("v0.checkpoint") for case in all_cases() if case.id in fair)


def test_globs_choose_and_skip() -> None:
    chosen = select(Suite.ENGINE, Profile.TINYLLM, ["v0.seed*", "v0.usage.*"], ["*.absent"])
    assert [case.id for case in chosen][-1] == "v0.seed"
    assert {case.id.rpartition(".")[0] for case in chosen} == {"v0", "v0.usage"}


def test_a_request_has_the_fields_that_a_client_of_this_server_sends() -> None:
    session = Session(settings(SOMEWHERE, api_key="sk-1"))
    assert session.request("POST", "/v1/x", b"{}", [("X-A", "b")]) == (
        b"POST /api/v1/x HTTP/1.1\r\n"
        b"Host: 127.0.0.1:8000\r\n"
        b"Content-Type: application/json\r\n"
        b"Content-Length: 2\r\n"
        b"Authorization: Bearer sk-1\r\n"
        b"Connection: close\r\n"
        b"X-A: b\r\n"
        b"\r\n"
        b"{}"
    )


def test_the_api_key_is_sent_and_never_shown() -> None:
    heard: list[bytes] = []

    def echo(peer: socket.socket) -> None:
        heard.append(peer.recv(65536))
        peer.sendall(b"HTTP/1.1 401 No\r\nContent-Length: 11\r\n\r\nno: sk-1234")

    with scripted(echo) as address:
        graded = settings(address, api_key="sk-1234")
        result = run_case(made(lambda session: session.get("/")), graded, {})
    assert b"Authorization: Bearer sk-1234\r\n" in heard[0]
    (exchange,) = result.exchanges
    assert b"Authorization: Bearer *******\r\n" in exchange.sent
    assert exchange.received.endswith(b"\r\nno: *******")


def test_a_body_can_leave_a_field_out_or_send_null() -> None:
    session = Session(settings(SOMEWHERE, model="m"))
    assert session.completion_body(model=OMIT, seed=None) == b'{"prompt": "a", "seed": null}'
    assert session.completion_body(prompt="é") == '{"model": "m", "prompt": "é"}'.encode()


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (None, Outcome.HELD),
        (CheckFailed("no"), Outcome.BROKEN),
        (CaseSkipped("not here"), Outcome.SKIPPED),
    ],
)
def test_how_a_case_ends(error: Exception | None, outcome: Outcome) -> None:
    def run(_: Session) -> None:
        if error is not None:
            raise error

    result = run_case(made(run), settings(SOMEWHERE), {})
    assert (result.outcome, result.reason) == (outcome, str(error or ""))
    assert result.fails is (outcome is Outcome.BROKEN)


def test_what_a_case_leaves_open_is_closed() -> None:
    with scripted(sends(OK)) as address:
        result = run_case(made(lambda session: session.connect().send(b"x")), settings(address), {})
    assert [exchange.end for exchange in result.exchanges] == ["closed by the runner"]


def test_a_case_has_a_deadline_of_its_own() -> None:
    def run(session: Session) -> None:
        while True:
            session.get("/")

    with scripted(sends(OK)) as address:
        result = run_case(made(run), settings(address, timeout=0.02), {})
    assert result.outcome is Outcome.BROKEN
    assert "the case took longer than 0.12 s" in result.reason or "no answer" in result.reason


def test_a_run_stops_when_the_server_is_gone() -> None:
    with scripted(sends(b"")) as address:
        cases = select(Suite.WIRE, Profile.TINYLLM, ["wire.echo.*"])
        results = run_cases(cases, settings(address, suite=Suite.WIRE))
        assert next(results).outcome is Outcome.BROKEN
        with pytest.raises(Unreachable, match=r"closed without an answer since wire\.echo\.text"):
            next(results)


def test_a_run_goes_on_when_the_server_only_refuses() -> None:
    refusal = b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    with scripted(sends(refusal)) as address:
        cases = select(Suite.WIRE, Profile.TINYLLM, ["wire.echo.*"])
        results = list(run_cases(cases, settings(address, suite=Suite.WIRE)))
    assert [result.outcome for result in results] == [Outcome.BROKEN] * len(cases)


def test_a_run_stops_when_the_server_is_late_again_and_again() -> None:
    def half(peer: socket.socket) -> None:
        peer.recv(65536)
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
        while peer.recv(65536):
            pass

    with scripted(half) as address:
        cases = select(Suite.WIRE, Profile.TINYLLM, ["wire.echo.*", "wire.reject.*"])
        results = run_cases(cases, settings(address, suite=Suite.WIRE, timeout=0.02))
        late = [next(results) for _ in range(LATE_IN_A_ROW)]
        assert all(result.timed_out for result in late)
        with pytest.raises(Unreachable, match=r"5 cases in a row took too long, the last wire\."):
            next(results)
