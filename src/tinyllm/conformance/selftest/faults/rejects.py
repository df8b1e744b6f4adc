"""Leniences: a server for each rule of the head, strict about all the others."""

from __future__ import annotations

from tinyllm.conformance.selftest.fault import caught_on_both
from tinyllm.conformance.selftest.httpd import HttpServer

RULES = (
    ("bare_lf", "A line may end with LF alone."),
    ("bare_cr", "A CR inside a line is let pass."),
    ("nul", "A NUL is let pass."),
    ("control", "Control characters in a value are let pass."),
    ("line_folding", "A field may go on in the next line."),
    ("first_field_space", "White space before the first field is let pass."),
    ("space_before_colon", "White space before the colon is let pass."),
    ("field_name", "Any characters make a name."),
    ("no_colon", "A line without a colon is skipped."),
    ("version", "Any version is taken for HTTP/1.1."),
    ("request_line", "Words are cut out of the request line wherever they are."),
    ("target", "Any target is looked up."),
    ("host_missing", "Host may be missing."),
    ("host_repeated", "Host may come twice."),
    ("lengths_differ", "Of two lengths the first counts."),
    ("length_form", "A length is whatever Python reads as a number."),
    ("length_and_coding", "A length beside a transfer coding is let pass."),
)


def _lenient(rule: str, summary: str) -> None:
    name = "Lenient" + "".join(word.title() for word in rule.split("_"))
    body = {"__doc__": summary, "lenient": frozenset({rule})}
    caught_on_both(f"reject.{rule}")(type(name, (HttpServer,), body))


for _rule, _summary in RULES:
    _lenient(_rule, _summary)
