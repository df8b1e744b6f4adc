"""Reports of what only a hostile server sends, and the live line of a terminal."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET

from conformance.servers import settings
from tinyllm.conformance.case import Level, select
from tinyllm.conformance.client import Address
from tinyllm.conformance.evidence import Exchange
from tinyllm.conformance.reports.junit import JunitReport
from tinyllm.conformance.reports.text import TextReport
from tinyllm.conformance.runner import Outcome, Result

SETTINGS = settings(Address("127.0.0.1", 1))
CASE = select(SETTINGS.suite, SETTINGS.profile, ["v0.seed"])[0]


def broken(reason: str, received: bytes, level: Level = Level.REQUIRED) -> Result:
    exchange = Exchange("x", sent=bytearray(b"\x00\xff"), received=bytearray(received))
    return Result(CASE, level, Outcome.BROKEN, 0.5, reason, exchange.mark(0, 1), [exchange])


def junit(*results: Result, stopped: str | None = None) -> ET.Element:
    out = io.StringIO()
    report = JunitReport(out)
    report.begin(SETTINGS, [CASE])
    report.end(results, stopped)
    return ET.fromstring(out.getvalue().partition("\n")[2])


def test_xml_is_valid_whatever_the_server_sent() -> None:
    everything = bytes(range(256))
    suite = junit(broken("said '\x00\x1b\ud800\uffff' & <b>\"", everything))
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == "said '\\x00\\x1b\\ud800\\uffff' & <b>\""


def test_only_required_cases_are_failures() -> None:
    results = [broken("a", b"x"), broken("b", b"x", Level.RECOMMENDED)]
    suite = junit(*results)
    assert [suite.get(name) for name in ("tests", "failures", "skipped")] == ["2", "1", "1"]
    skipped = suite.find("testcase/skipped")
    assert skipped is not None
    assert skipped.get("message") == "recommended, broken: b"


def test_a_run_that_stopped_is_an_error() -> None:
    suite = junit(stopped="the server went away")
    assert suite.get("errors") == "1"
    error = suite.find("testcase/error")
    assert error is not None
    assert error.get("message") == "the server went away"


def test_a_terminal_sees_the_case_that_runs_and_then_how_it_ended() -> None:
    out = io.StringIO()
    report = TextReport(out, terminal=True)
    report.begin(SETTINGS, [CASE])
    report.started(CASE)
    assert out.getvalue().endswith("\r\x1b[K… v0.seed")
    report.finished(broken("no", b"x"))
    assert out.getvalue().endswith("\r\x1b[K\x1b[31m✗ v0.seed [required]: no\x1b[0m\n")


def test_a_reason_of_many_lines_is_one_line_in_the_list() -> None:
    out = io.StringIO()
    report = TextReport(out, terminal=False)
    report.finished(broken("first\nsecond " + "x" * 500, b"x"))
    (line,) = out.getvalue().splitlines()
    assert line.startswith("✗ v0.seed [required]: first second xxx")
    assert line.endswith("...")
