"""Reading OTEL_ variables as OpenTelemetry's "Environment Variable Specification" says.

An empty value is no value. A value that cannot be used is said in the log, with the variable's
name and what is taken instead, and never stops the program. Where several names are given, the
first that is set counts: the one for traces goes before the general one.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

log = logging.getLogger("tinyllm.tracing")


class Environment:
    """The environment's OTEL_ variables, read one kind of value at a time."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    def find(self, *names: str) -> tuple[str, str] | None:
        """Return (name, value) of the first variable that is set and not empty."""
        for name in names:
            if value := self._variables.get(name, "").strip():
                # Bytes that are no UTF-8 (os.environ makes lone surrogates of them) have no JSON.
                return name, value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        return None

    def text(self, *names: str) -> str | None:
        """Return the first value that is set, or None."""
        found = self.find(*names)
        return None if found is None else found[1]

    def boolean(self, name: str) -> bool:
        """Return True for `true` in any case; everything else is false, and said if it is odd."""
        value = (self.text(name) or "false").lower()
        if value not in ("true", "false"):
            log.warning("%s is neither true nor false: taken as false", name)
        return value == "true"

    def choice(self, options: Collection[str], default: str, *names: str) -> str:
        """Return the value in lower case if it is one of the options, else the default."""
        found = self.find(*names)
        if found is None or found[1].lower() in options:
            return default if found is None else found[1].lower()
        known = ", ".join(options)
        log.warning("%s=%s is none of %s: %s is used", *found, known, default)
        return default

    def seconds(self, default: float, *names: str) -> float:
        """Return a duration, which the variable gives in whole milliseconds, in seconds."""
        found = self.find(*names)
        if found is None:
            return default
        milliseconds = _whole_number(found[1])
        if milliseconds is None:
            message = "%s=%s is no number of milliseconds, 0 or more: %d is used"
            log.warning(message, *found, default * 1000)
            return default
        return milliseconds / 1000

    def count(self, default: int, name: str) -> int:
        """Return a number, 1 or more."""
        found = self.find(name)
        if found is None:
            return default
        number = _whole_number(found[1])
        if not number:
            log.warning("%s=%s is no number, 1 or more: %d is used", *found, default)
            return default
        return number

    def fraction(self, default: float, name: str) -> float:
        """Return a number from 0 to 1."""
        found = self.find(name)
        if found is None:
            return default
        try:
            number = float(found[1])
        except ValueError:
            number = -1.0
        if not 0 <= number <= 1:  # also not a number
            log.warning("%s=%s is no number from 0 to 1: %g is used", *found, default)
            return default
        return number

    def pairs(self, *names: str) -> tuple[str, dict[str, str]]:
        """Return the name and the pairs of a `key1=value1,key2=value2` list.

        Keys and values are percent-decoded. Raises ValueError, which tells the place and not
        the text: values may be secrets.
        """
        found = self.find(*names)
        if found is None:
            return names[0], {}
        from urllib.parse import unquote  # a few ms that an engine without export does not pay

        pairs = {}
        for number, member in enumerate(found[1].split(","), start=1):
            key, equals, value = member.partition("=")
            if not member.strip():
                continue
            if not equals or not key.strip():
                raise ValueError(f"member {number} of {found[0]} is not key=value")
            try:
                decoded = unquote(value.strip(), errors="strict")
                pairs[unquote(key.strip(), errors="strict")] = decoded
            except UnicodeDecodeError:
                message = f"member {number} of {found[0]} is not percent-encoded UTF-8"
                raise ValueError(message) from None
        return found[0], pairs


def _whole_number(text: str) -> int | None:
    """Return the value of ASCII digits; more than 15 of them are no time and no count."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 15 else None
