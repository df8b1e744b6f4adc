"""The report for a CI system: JUnit's XML, which most of them read.

Only what makes the run fail is a <failure>, so that the counts agree with the exit code; a broken
case of a lower level is <skipped> with its reason.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Final, TextIO

from tinyllm.conformance.case import Case
from tinyllm.conformance.render import show_bytes
from tinyllm.conformance.runner import Outcome, Result
from tinyllm.conformance.session import Settings

# XML 1.0, section 2.2: what is no Char cannot be written, not even as a reference.
NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class JunitReport:
    """Writes one <testsuite> to a stream at the end."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._name = ""

    def begin(self, settings: Settings, cases: Sequence[Case]) -> None:
        """Note what is graded."""
        self._name = f"{settings.suite.value} ({settings.profile.value})"

    def started(self, case: Case) -> None:
        """Nothing is said before the end."""

    def finished(self, result: Result) -> None:
        """Nothing is said before the end."""

    def end(self, results: Sequence[Result], stopped: str | None) -> None:
        """Write the document."""
        elements = [_case(result) for result in results]
        suite = ET.Element(
            "testsuite",
            name=self._name,
            tests=str(len(results)),
            failures=str(sum(result.fails for result in results)),
            errors=str(int(stopped is not None)),
            skipped=str(sum(element.find("skipped") is not None for element in elements)),
            time=f"{sum(result.seconds for result in results):.3f}",
        )
        suite.extend(elements)
        if stopped is not None:
            last = ET.SubElement(suite, "testcase", classname="run", name="server answers")
            ET.SubElement(last, "error", message=_text(stopped))
        ET.indent(suite)
        self._out.write('<?xml version="1.0" encoding="UTF-8"?>\n')
        self._out.write(ET.tostring(suite, encoding="unicode") + "\n")


def _case(result: Result) -> ET.Element:
    suite, _, name = result.case.id.partition(".")
    seconds = f"{result.seconds:.3f}"
    element = ET.Element("testcase", classname=suite, name=name, time=seconds)
    if result.fails:
        message = _text(result.reason)
        ET.SubElement(element, "failure", message=message, type="broken").text = _evidence(result)
    elif result.outcome is Outcome.BROKEN:
        message = f"{result.level.value}, broken: {_text(result.reason)}"
        ET.SubElement(element, "skipped", message=message)
    elif result.outcome is Outcome.SKIPPED:
        ET.SubElement(element, "skipped", message=_text(result.reason))
    return element


def _evidence(result: Result) -> str:
    lines = [f"rule: {result.case.rule}", f"why: {result.case.why}"]
    if (exchange := result.exchange) is not None:
        mark = (result.mark.start, result.mark.end) if result.mark is not None else None
        lines += ["sent:", *show_bytes(bytes(exchange.sent))]
        lines += ["got:", *show_bytes(bytes(exchange.received), mark)]
    return _text("\n".join(lines))


def _text(value: str) -> str:
    """Return the text with what XML cannot hold shown as escapes."""
    return NOT_XML.sub(lambda found: ascii(found.group())[1:-1], value)
