"""Server-Sent Events in both directions, as the WHATWG HTML Standard defines them (section 9.2).

A stream is UTF-8 text in lines that end with CRLF, LF or CR; an event is a run of `field: value`
lines, and an empty line ends it. Nothing but CR and LF ends a line: `str.splitlines` would also
cut at U+2028 and others, so it is not used. CR and LF are never part of another UTF-8 character,
so the parser may find lines in the bytes and decode each line on its own.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_EVENT_BYTES = 16 * 1024 * 1024  # a stream cannot make its reader hold more

_LINE_END = re.compile(r"\r\n|\r|\n")
_LINE_END_BYTES = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"
_MAX_RETRY_DIGITS = 18  # of milliseconds; longer ones would outlive everyone, and int() has a limit


def sse_event(
    data: str, *, event: str | None = None, id: str | None = None, retry: int | None = None
) -> str:
    r"""Return one event: each line of `data` behind `data: `, and an empty line.

    `event` names its type, `id` is what a client sends back as Last-Event-ID, `retry` is the
    reconnection time in milliseconds. Raises ValueError for an `event` or `id` of more than one
    line, an `id` with NUL, which a client would ignore, and a negative `retry`.

    >>> sse_event('{"i":0}')
    'data: {"i":0}\n\n'
    >>> sse_event("a\nb", event="note", id="7")
    'event: note\nid: 7\ndata: a\ndata: b\n\n'
    """
    if "\n" in data or "\r" in data:
        data = "\ndata: ".join(_LINE_END.split(data))
    if event is None and id is None and retry is None:
        return f"data: {data}\n\n"
    return f"{_fields(event, id, retry)}data: {data}\n\n"


def sse_comment(text: str) -> str:
    r"""Return a comment, which clients skip: a server sends one to keep a connection alive.

    >>> sse_comment("still here")
    ': still here\n\n'
    """
    return ": " + "\n: ".join(_LINE_END.split(text)) + "\n\n"


def _fields(event: str | None, id: str | None, retry: int | None) -> str:
    lines = ""
    for name, value in (("event", event), ("id", id)):
        if value is None:
            continue
        if "\n" in value or "\r" in value:
            raise ValueError(f"{name} is one line: {value!r}")
        lines += f"{name}: {value}\n"
    if id is not None and "\0" in id:
        raise ValueError(f"an id with NUL is ignored by clients: {id!r}")
    if retry is not None:
        if retry < 0:
            raise ValueError(f"retry is a number of milliseconds: {retry}")
        lines += f"retry: {retry:d}\n"
    return lines


class SseEvent(NamedTuple):
    """One event, as a client dispatches it.

    `event` is its type ("message" when the stream named none), `id` the last event id at that
    point ("" when there was none), `retry` the last reconnection time seen, in milliseconds.
    """

    event: str
    data: str
    id: str
    retry: int | None


class SseError(ValueError):
    """The stream holds an event over the parser's cap."""


class SseParser:
    """Bytes in, events out, however they are cut.

    An event is returned by the `feed` that brings the end of its empty line. What follows the last
    empty line is no event: a stream that ends there was cut, and nothing is made of it.

    `last_event_id` is what a client sends when it reconnects, "" for nothing; `retry` is the
    reconnection time in milliseconds, None while the stream gave none.
    """

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.last_event_id = ""
        self.retry: int | None = None
        self._max_event_bytes = max_event_bytes
        self._line = bytearray()  # the line that has not ended yet
        self._at_start = True  # a byte order mark may still come
        self._after_cr = False  # an LF now belongs to the CR before it
        self._event = ""
        self._data: list[str] = []
        self._data_bytes = 0
        self._id = ""  # becomes the last event id at the next empty line

    def feed(self, data: bytes) -> list[SseEvent]:
        """Take the next bytes of the stream and return the events that they complete.

        Raises SseError when an unfinished event is over the cap.
        """
        if not data:
            return []
        if self._after_cr:
            data = data.removeprefix(b"\n")
        self._after_cr = data.endswith(b"\r")
        *lines, rest = _LINE_END_BYTES.split(data)
        if lines and self._line:
            lines[0] = bytes(self._line + lines[0])
            self._line.clear()
        events = [event for line in lines if (event := self._take_line(line)) is not None]
        self._line += rest
        if len(self._line) + self._data_bytes > self._max_event_bytes:
            raise SseError(f"an event is over {self._max_event_bytes} bytes")
        return events

    def _take_line(self, line: bytes) -> SseEvent | None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BOM)
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")  # a comment is a line without a name
        self._take_field(name, value.removeprefix(b" "))
        return None

    def _take_field(self, name: bytes, value: bytes) -> None:
        """HTML Standard, section 9.2.6; a field of another name is ignored."""
        if name == b"data":
            self._data.append(value.decode("utf-8", "replace"))
            self._data_bytes += len(value) + 1
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit():  # of bytes: ASCII digits only, at least one
            digits = value.lstrip(b"0")
            if len(digits) <= _MAX_RETRY_DIGITS:
                self.retry = int(digits or b"0")

    def _dispatch(self) -> SseEvent | None:
        """End the event at an empty line; without a data field there is none to return."""
        self.last_event_id = self._id
        event, data = self._event or "message", self._data
        self._event, self._data, self._data_bytes = "", [], 0
        if not data:
            return None
        return SseEvent(event, "\n".join(data), self.last_event_id, self.retry)
