"""Read an event stream as the HTML standard does, and know when each event arrived.

Two views of one stream. `events` is the standard's: a blank line dispatches, several `data:`
lines join. `payloads` is a lenient one that content checks use: were the events run together for
want of a blank line, each `data:` line still counts as one payload, so that one fault in the
framing fails the framing's case and not all of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from tinyllm.conformance.evidence import CheckFailed, Mark
from tinyllm.conformance.response import Response
from tinyllm.conformance.strictjson import JsonBroken, read_json

DONE: Final = "[DONE]"
LINE_END: Final = re.compile(rb"\r\n|\n|\r")


@dataclass(slots=True)
class Event:
    """One dispatched event: its data lines, where it lies in the body, and when it was whole."""

    lines: list[tuple[str, int, int]] = field(default_factory=list)  # data, start, end in body
    others: list[str] = field(default_factory=list)  # names of fields that are not data
    end: int = 0  # offset in the body after the blank line
    time: float = 0.0

    @property
    def data(self) -> str:
        """The event's data: its lines joined with LF (HTML standard, 9.2.6)."""
        return "\n".join(line for line, _, _ in self.lines)


@dataclass(frozen=True, slots=True)
class Payload:
    """What one event carries, where, and when it had arrived."""

    text: str
    mark: Mark
    time: float

    def json(self) -> object:
        """Return the payload as a JSON value; a payload that is none breaks the case."""
        try:
            return read_json(self.text.encode("utf-8", "surrogatepass"))
        except JsonBroken as error:
            message = f"an event's data is not JSON: {error.reason}"
            raise CheckFailed(message, self.mark) from None


class EventStream:
    """The events of one response, whole or still growing."""

    def __init__(self, response: Response) -> None:
        self.response = response
        self.events: list[Event] = []
        self.comments = 0
        self._next = Event()
        self._scanned = 0  # offset in the body up to which lines were taken
        self._searched = 0  # and up to which no line's end was found

    def update(self) -> None:
        """Take the lines that have become whole in the response's body."""
        body = self.response.body
        while found := LINE_END.search(body, max(self._scanned, self._searched)):
            if found.group() == b"\r" and found.end() == len(body):
                self._searched = found.start()
                return  # its LF may still come
            self._line(bytes(body[self._scanned : found.start()]), self._scanned, found.end())
            self._scanned = found.end()
        self._searched = len(body)

    @property
    def rest(self) -> Mark | None:
        """What follows the last blank line: an event that no client would dispatch; or None."""
        if not self._next.lines and self._scanned == len(self.response.body):
            return None
        return self.response.body_mark(self.events[-1].end if self.events else 0)

    @property
    def payloads(self) -> list[Payload]:
        """Return what the stream carries, one per event (see the module's docstring)."""
        pending = [self._next] if self._next.lines else []
        return [payload for event in [*self.events, *pending] for payload in self._split(event)]

    @property
    def chunks(self) -> list[Payload]:
        """Return the payloads that are not [DONE]."""
        return [payload for payload in self.payloads if payload.text != DONE]

    def _line(self, raw: bytes, start: int, end: int) -> None:
        """Process one line (HTML standard, 9.2.6: interpreting an event stream)."""
        if raw == b"":
            self._dispatch(end)
            return
        if raw.startswith(b":"):
            self.comments += 1
            return
        text = self._decode(raw.removeprefix(b"\xef\xbb\xbf") if start == 0 else raw, start)
        name, _, value = text.partition(":")
        if name == "data":
            self._next.lines.append((value.removeprefix(" "), start, start + len(raw)))
        else:
            self._next.others.append(name)

    def _dispatch(self, end: int) -> None:
        event, self._next = self._next, Event()
        if event.lines:  # without data nothing is dispatched
            event.end = end
            event.time = self.response.exchange.arrival(self.response.raw_offset(end - 1))
            self.events.append(event)

    def _decode(self, raw: bytes, start: int) -> str:
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            at = start + error.start
            mark = self.response.body_mark(at, at + 1)
            raise CheckFailed("the stream is not UTF-8", mark) from None

    def _split(self, event: Event) -> list[Payload]:
        lines = event.lines
        joined = len(lines) > 1 and not all(_stands_alone(line) for line, _, _ in lines)
        if joined:
            lines = [(event.data, lines[0][1], lines[-1][2])]
        return [self._payload(text, start, end) for text, start, end in lines]

    def _payload(self, text: str, start: int, end: int) -> Payload:
        time = self.response.exchange.arrival(self.response.raw_offset(end - 1))
        return Payload(text, self.response.body_mark(start, end), time)


def _stands_alone(line: str) -> bool:
    return line == DONE or (line.startswith("{") and line.endswith("}"))
