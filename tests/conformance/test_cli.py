"""The command: exit codes, the choice of cases, the reports, and servers that are not there."""

from __future__ import annotations

import json
import socket
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.servers import says_nothing, scripted, sends
from tinyllm.__main__ import main
from tinyllm.conformance.cli import UsageError, parse_url
from tinyllm.conformance.client import Address
from tinyllm.conformance.record import Recorder
from tinyllm.conformance.runner import Result
from tinyllm.conformance.selftest.faults.wire import HealthWithSpace
from tinyllm.conformance.selftest.wire import Wire

WIRE = "wire"
ENGINE = "openapi:v0:engine"


@pytest.fixture
def good() -> Iterator[str]:
    server = Wire()
    yield f"http://{server.address.authority}"
    server.stop()


@pytest.fixture
def broken() -> Iterator[str]:
    server = HealthWithSpace()
    yield f"http://{server.address.authority}"
    server.stop()


def conform(*arguments: str) -> int:
    return main(["conform", *arguments])


def test_0_when_every_required_case_holds(good: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert conform(WIRE, "--base-url", good, "--case", "wire.echo.*") == 0
    out = capsys.readouterr().out
    assert "✓ wire.echo.text\n" in out
    assert "6 held, 0 broken, 0 skipped" in out
    assert "\x1b" not in out


def test_1_and_the_bytes_when_one_is_broken(
    broken: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert conform(WIRE, "--base-url", broken, "--case", "wire.health.bytes") == 1
    out = capsys.readouterr().out
    assert "✗ wire.health.bytes [required]: not b'HTTP/1.1 200 OK" in out
    assert "  rule   Wire specification, section 3" in out
    assert "  why    Every client relies on" in out
    assert "  sent   GET /health HTTP/1.1\\r\\n\n" in out
    assert "         Content-Length: 12\\r\\n\n" in out
    underlined = out.splitlines().index(r"         Content-Length: 12\r\n") + 1
    assert out.splitlines()[underlined].strip().startswith("^")
    assert "0 held, 1 broken (1 required), 0 skipped" in out


def test_a_recommendation_that_is_not_kept_is_told_and_does_not_fail_the_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    with scripted(sends(answer)) as address:
        arguments = ("--profile", "openai", "--case", "v0.errors.method")
        code = conform(ENGINE, "--base-url", f"http://{address.authority}", *arguments)
    assert code == 0
    assert "1 broken (1 recommended)" in capsys.readouterr().out


USAGE = {
    "no suite": ((), "name a suite"),
    "no URL": ((WIRE,), "--base-url is needed"),
    "https": ((WIRE, "--base-url", "https://127.0.0.1"), "not an http:// URL"),
    "no scheme": ((WIRE, "--base-url", "127.0.0.1:8000"), "not an http:// URL"),
    "port of letters": ((WIRE, "--base-url", "http://h:x"), "http://h:x"),
    "a query": ((WIRE, "--base-url", "http://h/?a=1"), "only host, port and path"),
    "no such case": ((WIRE, "--base-url", "http://h", "--case", "v0.*"), "no case is left"),
    "all skipped": ((WIRE, "--base-url", "http://h", "--skip", "*"), "no case is left"),
    "no time": ((WIRE, "--base-url", "http://h", "--timeout", "0"), "must be above 0"),
    "no model": (
        (ENGINE, "--base-url", "http://h", "--checkpoint", "/missing"),
        "/missing: FileNotFoundError",
    ),
}


@pytest.mark.parametrize(("arguments", "reason"), USAGE.values(), ids=USAGE)
def test_2_for_arguments_that_make_no_run(
    arguments: tuple[str, ...], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert conform(*arguments) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("tinyllm conform: ")
    assert reason in printed.err
    assert (printed.err.count("\n"), printed.out) == (1, "")


def test_3_when_nobody_listens(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert conform(WIRE, "--base-url", f"http://127.0.0.1:{port}") == 3
    assert f"cannot connect to 127.0.0.1:{port}" in capsys.readouterr().err


def test_a_server_that_answers_nothing_is_given_up_after_its_first_case(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with scripted(says_nothing) as address:
        url = f"http://{address.authority}"
        code = conform(WIRE, "--base-url", url, "--timeout", "0.05", "--case", "wire.echo.*")
    out = capsys.readouterr().out
    assert code == 1  # the first case was a required one
    assert "stopped: no answer any more since wire.echo.text" in out
    assert "0 held, 1 broken (1 required), 0 skipped" in out


def test_the_list_is_that_of_the_profile_and_needs_no_server(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert conform(ENGINE, "--list", "--profile", "openai", "--case", "v0.usage.*") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["v0.usage.adds_up", "required"],
        ["v0.usage.max_tokens", "required"],
    ]


def test_the_json_report_holds_the_bytes_and_the_mark(
    broken: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = ("--case", "wire.health.bytes", "--case", "wire.echo.members")
    assert conform(WIRE, "--base-url", broken, "--report", "json", *cases) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["suite"] == "wire"
    assert report["summary"]["broken"] == {"required": 1, "recommended": 0, "informative": 0}
    health, echo = report["cases"]
    assert (echo["id"], echo["outcome"]) == ("wire.echo.members", "held")
    assert health["received"].startswith(r"HTTP/1.1 200 OK\r\n")
    assert health["sent"] == r"GET /health HTTP/1.1\r\nHost: test\r\n\r\n"
    received = health["received"].replace(r"\r\n", "\r\n")
    assert received[slice(*health["mark"])].startswith("2\r\nConnection: close")


def test_the_junit_report_counts_as_the_exit_code_does(
    broken: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert conform(WIRE, "--base-url", broken, "--report", "junit") == 1
    declaration, _, document = capsys.readouterr().out.partition("\n")
    assert declaration == '<?xml version="1.0" encoding="UTF-8"?>'
    suite = ET.fromstring(document)
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0")
    names = [case.get("name") for case in suite if case.find("failure") is not None]
    assert names == ["health.bytes"]
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.text is not None
    assert r"Content-Length: 12\r\n" in failure.text
    assert suite.get("skipped") == "2"  # the two that need --slow


def test_raw_exchanges_are_kept(good: str, tmp_path: Path) -> None:
    arguments = ("--case", "wire.health.bytes", "--record", str(tmp_path / "kept"))
    assert conform(WIRE, "--base-url", good, *arguments) == 0
    folder = tmp_path / "kept" / "wire.health.bytes"
    assert sorted(path.name for path in folder.iterdir()) == [
        "001.received",
        "001.sent",
        "001.times",
    ]
    assert (folder / "001.sent").read_bytes() == b"GET /health HTTP/1.1\r\nHost: test\r\n\r\n"
    assert (folder / "001.received").read_bytes().endswith(b'{"ok":true}')
    times = (folder / "001.times").read_text().splitlines()
    assert times[0] == "0.000000 sent 36"
    assert times[-1] == "end: closed by the server"


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://127.0.0.1:8000", Address("127.0.0.1", 8000)),
        ("http://example.test", Address("example.test", 80)),
        ("http://[::1]:9/prefix", Address("::1", 9, "/prefix")),
    ],
)
def test_a_url_is_host_port_and_prefix(url: str, address: Address) -> None:
    assert parse_url(url) == address


def test_a_url_with_a_password_is_refused() -> None:
    with pytest.raises(UsageError, match="only host, port and path"):
        parse_url("http://user:secret@h")


def test_a_base_url_may_end_in_v1_as_official_clients_have_it(
    good: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert conform(WIRE, "--base-url", f"{good}/v1/", "--case", "wire.health.bytes") == 0
    assert f"wire at {good}, profile" in capsys.readouterr().out


def test_a_run_that_is_interrupted_reports_what_it_has(
    good: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: Recorder, result: Result) -> None:
        if result.case.id == "wire.echo.escapes":
            raise KeyboardInterrupt

    monkeypatch.setattr(Recorder, "keep", interrupt)
    arguments = ("--case", "wire.echo.*", "--record", "unused")
    monkeypatch.setattr(Recorder, "__init__", lambda self, directory: None)
    assert conform(WIRE, "--base-url", good, *arguments) == 3
    out = capsys.readouterr().out
    assert "✓ wire.echo.text\n" in out
    assert "1 held, 0 broken, 0 skipped" in out
    assert out.endswith("stopped: interrupted\n")
