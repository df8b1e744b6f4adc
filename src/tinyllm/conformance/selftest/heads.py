"""Read a request's head, each rule under the name of the case that tries it.

A server of the self-test can be lenient about one rule, which is then its one fault; everything
else stays strict. The names are those of the `reject` cases.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
DIGITS = re.compile(rb"[0-9]+")
TARGET = re.compile(rb"(?:https?://[^/\x00-\x20\x7f]+)?(/[\x21-\x7e\x80-\xff]*)")

Rules = frozenset[str]


class BrokenHead(Exception):
    """The head breaks a rule."""


@dataclass(slots=True)
class Request:
    """One request; names in lower case, values as latin-1 text."""

    method: str = ""
    path: str = ""
    query: str = ""
    version: str = "1.1"
    fields: list[tuple[str, str]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # as they were spelled
    body: bytes = b""

    def header(self, name: str) -> str | None:
        """Return the first field of this name (in lower case), or None."""
        return next((value for key, value in self.fields if key == name), None)

    def values(self, name: str) -> list[str]:
        """Return all values of a field."""
        return [value for key, value in self.fields if key == name]


def parse_head(head: bytes, lenient: Rules = frozenset()) -> Request:
    """Return the request of a head (its last empty line removed). Raises BrokenHead."""

    def rule(name: str, broken: bool) -> None:
        if broken and name not in lenient:
            raise BrokenHead(name)

    rule("bare_lf", re.search(rb"(?<!\r)\n", head) is not None)
    rule("bare_cr", re.search(rb"\r(?!\n)", head) is not None)
    rule("nul", b"\x00" in head)
    first, *lines = re.split(rb"\r\n|\n", head)
    request = _request_line(first, lenient)
    rule("control", any(re.search(rb"[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]", line) for line in lines))
    rule("first_field_space", bool(lines) and lines[0][:1] in (b" ", b"\t"))
    for number, line in enumerate(lines):
        folded = line[:1] in (b" ", b"\t")
        if number == 0:  # let pass above, if it is folded
            line, folded = line.lstrip(b" \t"), False
        rule("line_folding", folded)
        if not folded:
            _field(request, line, lenient)
    hosts = request.values("host")
    rule("host_missing", not hosts and request.version == "1.1")
    rule("host_repeated", len(hosts) > 1)
    return request


def _request_line(line: bytes, lenient: Rules) -> Request:
    form = re.fullmatch(rb"([^ ]+) ([^ ]+) ([^ ]+)", line)
    if form is None or TOKEN.fullmatch(form[1]) is None:
        if "request_line" in lenient and len(words := line.split()) >= 2:
            return Request(words[0].decode("latin-1"), words[1].decode("latin-1"))
        raise BrokenHead("request_line")
    method, target, version = form.groups()
    if version not in (b"HTTP/1.1", b"HTTP/1.0") and "version" not in lenient:
        raise BrokenHead("version")
    found = TARGET.fullmatch(target)
    if found is None and "target" not in lenient and not (b"\x00" in target and "nul" in lenient):
        raise BrokenHead("target")
    path, _, query = (found[1] if found else target).decode("latin-1").partition("?")
    number = "1.0" if version == b"HTTP/1.0" else "1.1"
    return Request(method.decode("ascii"), path, query, number)


def _field(request: Request, line: bytes, lenient: Rules) -> None:
    name, colon, value = line.partition(b":")
    if not colon:
        if "no_colon" in lenient:
            return
        raise BrokenHead("no_colon")
    if name != name.rstrip(b" \t"):
        if "space_before_colon" not in lenient:
            raise BrokenHead("space_before_colon")
        name = name.rstrip(b" \t")
    if TOKEN.fullmatch(name) is None and "field_name" not in lenient:
        raise BrokenHead("field_name")
    spelled = name.decode("latin-1")
    request.names.append(spelled)
    request.fields.append((spelled.lower(), value.strip(b" \t").decode("latin-1")))


def body_length(request: Request, lenient: Rules = frozenset()) -> int | None:
    """Return Content-Length's value, None without one. Raises BrokenHead."""
    values = [part.strip(" \t") for v in request.values("content-length") for part in v.split(",")]
    if not values:
        return None
    if request.header("transfer-encoding") is not None and "length_and_coding" not in lenient:
        raise BrokenHead("length_and_coding")
    if len(set(values)) > 1 and "lengths_differ" not in lenient:
        raise BrokenHead("lengths_differ")
    if DIGITS.fullmatch(values[0].encode("latin-1")) is None:
        if "length_form" not in lenient:
            raise BrokenHead("length_form")
        return _as_python_reads_it(values[0])
    return int(values[0])


def _as_python_reads_it(value: str) -> int:
    try:
        return abs(int(value.encode("latin-1").decode("utf-8"), 0))
    except ValueError:
        return 0
