"""The caller's place in a trace, read from two HTTP headers (W3C Trace Context).

`traceparent` says which span called us; `tracestate` is what the tracing systems on the way
want handed on. The rules, in the order they are checked:

- one `traceparent` header, or none counts: two of them give no way to know the true one;
- version 00 has exactly four fields; `ff` is invalid; a version above 00 is read by its first
  four fields, and what follows them after a dash is ignored (section 3.2.4);
- lower-case hex only, and neither id may be all zero;
- a broken `tracestate` never spoils a good `traceparent`: it is dropped alone (section 3.3).

Nothing here raises: a header that is no trace context is one that was never sent, and the
engine starts a trace of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

# Section 3.2: version "-" trace-id "-" parent-id "-" trace-flags, and for later versions a tail.
# Explicit classes, not \d or int(x, 16): those take other digits, signs, underscores and 0x.
_IDS_AND_FLAGS = "([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})"
_VERSION_00 = re.compile(f"00-{_IDS_AND_FLAGS}")
_LATER_VERSION = re.compile(f"(?!00|ff)[0-9a-f]{{2}}-{_IDS_AND_FLAGS}(?:-.*)?")
_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16

# Section 3.3.1.3: a simple key, or tenant@system; values are printable ASCII without "," and "=",
# and do not end in a space.
_KEY = r"[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13}"
_VALUE = r"[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
_MEMBER = re.compile(f"({_KEY})=({_VALUE})")

MAX_TRACESTATE_MEMBERS = 32  # section 3.3.1.1
MAX_TRACESTATE_LENGTH = 512  # section 3.3.1.5: what must be handed on; the rest we do not keep
LONG_MEMBER_LENGTH = 128  # section 3.3.1.5: members longer than this are the first to go


class TraceContext(NamedTuple):
    """Where a request comes from: the caller's span in the caller's trace."""

    trace_id: str  # 32 lower-case hex digits, not all zero
    span_id: str  # 16 of them: the span that called us
    flags: int = 1  # the caller's trace-flags, 0 to 255
    trace_state: str = ""  # what `tracestate` said, or ""

    @property
    def sampled(self) -> bool:
        """Whether the caller recorded its own span (bit 0 of the flags)."""
        return bool(self.flags & 1)


def parse_traceparent(value: str) -> tuple[str, str] | None:
    """Return (trace id, parent span id) of one `traceparent` value, or None if it is invalid.

    Surrounding white space is not taken off: the HTTP parser did that (RFC 9112, section 5.1).
    """
    fields = _fields(value)
    return None if fields is None else fields[:2]


def parse_tracestate(values: Sequence[str]) -> str:
    """Return the combined `tracestate` of all headers of that name, or "" if any rule is broken.

    Several headers are one list (RFC 9110, section 5.3); empty members are allowed and dropped.
    """
    members = [part.strip(" \t") for value in values for part in value.split(",")]
    members = [member for member in members if member]
    keys = {match[1] for member in members if (match := _MEMBER.fullmatch(member))}
    # A set of keys as large as the list: every member is well formed, and no key comes twice.
    if len(keys) != len(members) or len(members) > MAX_TRACESTATE_MEMBERS:
        return ""
    return _shorten(members)


def parent_from_headers(
    traceparents: Sequence[str], tracestates: Sequence[str] = ()
) -> TraceContext | None:
    """Return the caller's context from all values of the two headers, or None to start a trace."""
    if len(traceparents) != 1:
        return None
    fields = _fields(traceparents[0])
    if fields is None:
        return None
    trace_id, span_id, flags = fields
    trace_state = parse_tracestate(tracestates) if tracestates else ""
    return TraceContext(trace_id, span_id, int(flags, 16), trace_state)


def _fields(value: str) -> tuple[str, str, str] | None:
    """Return trace id, parent span id and flags as they stand in a valid `traceparent`."""
    match = _VERSION_00.fullmatch(value) or _LATER_VERSION.fullmatch(value)
    if match is None:
        return None
    trace_id, span_id, flags = match.groups()
    return None if trace_id == _NO_TRACE or span_id == _NO_SPAN else (trace_id, span_id, flags)


def _shorten(members: list[str]) -> str:
    """Join the members; over the limit, drop long ones first, then from the end."""
    text = ",".join(members)
    if len(text) > MAX_TRACESTATE_LENGTH:
        members = [member for member in members if len(member) <= LONG_MEMBER_LENGTH]
        while len(text := ",".join(members)) > MAX_TRACESTATE_LENGTH:
            members.pop()
    return text
