"""One line per request, as text or JSON.

The loop only formats a line, a few microseconds; lines.py writes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from tinyllm.serving.exchange import Exchange
from tinyllm.serving.lines import LineWriter
from tinyllm.tracing import random_hex
from tinyllm.wire import Json, dump_json, json_string

SECOND: Final = 1_000_000_000  # nanoseconds
MILLISECOND: Final = 1_000_000
MICROSECOND: Final = 1_000
SHOWN_CHARACTERS: Final = 200  # of a method or a path: many lines wait in memory

Format = Callable[[Exchange], str]


class Clock:
    """Turns Unix nanoseconds into an ISO 8601 time.

    The text of a second is made once, and of it that of a millisecond: to make a date takes 5 us,
    and three times that among the work of requests.
    """

    def __init__(self) -> None:
        self._second = -1
        self._begins = self._ends = 0  # the millisecond of `_text`
        self._date = self._text = ""

    def text(self, unix_nano: int) -> str:
        """Return e.g. 2026-11-30T12:00:00.123Z."""
        if not self._begins <= unix_nano < self._ends:
            second, millisecond = divmod(unix_nano // MILLISECOND, 1000)
            if second != self._second:
                self._second = second
                self._date = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
            self._text = f"{self._date}.{millisecond:03d}Z"
            self._begins = second * SECOND + millisecond * MILLISECOND
            self._ends = self._begins + MILLISECOND
        return self._text


_CLOCK = Clock()


def log_id(exchange: Exchange) -> str:
    """Return what names the request in the log: the caller's id, the completion's, or a new one."""
    known = exchange.request_id or exchange.log_id or exchange.completion_id
    if known is None:
        known = exchange.log_id = random_hex(8)
    return known


def _shown(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."


@lru_cache(64)  # most requests are of one kind
def _quoted(method: str, path: str) -> str:
    """Return method and path in quotes, escaped: they are the client's own bytes."""
    return json_string(f"{_shown(method) or '-'} {_shown(path) or '-'}")


def _client(peer: object) -> str:
    """Return a socket's address and port as text, an IPv6 address in brackets."""
    if not isinstance(peer, tuple):
        return "-"
    if len(peer) == 2:  # IPv4; of IPv6 there are four
        return f"{peer[0]}:{peer[1]}"
    return f"[{peer[0]}]:{peer[1]}"


def text_line(exchange: Exchange) -> str:
    """Return a line for people.

    Whole microseconds: as milliseconds with a fraction the two times were a third of the line's
    cost, and a float's text is slow beside an int's.
    """
    first = exchange.first_token_ns
    ttft = "-" if first is None else f"{first // MICROSECOND}us"
    known = exchange.request_id or exchange.log_id or exchange.completion_id or log_id(exchange)
    return (
        f"{_CLOCK.text(exchange.started_unix_nano)} {known} {_client(exchange.peer)} "
        f"{_quoted(exchange.method, exchange.path)} {exchange.status} {exchange.bytes_sent}B "
        f"prompt={exchange.prompt_tokens} completion={exchange.completion_tokens} "
        f"ttft={ttft} duration={exchange.duration_ns // MICROSECOND}us {exchange.ended!s}\n"
    )


def json_line(exchange: Exchange) -> str:
    """Return a line for programs: one JSON object; times are in seconds."""
    first = exchange.first_token_ns
    fields: dict[str, Json] = {
        "time": _CLOCK.text(exchange.started_unix_nano),
        "request_id": log_id(exchange),
        "client": _client(exchange.peer),
        "method": _shown(exchange.method),
        "path": _shown(exchange.path),
        "status": exchange.status,
        "bytes": exchange.bytes_sent,
        "prompt_tokens": exchange.prompt_tokens,
        "completion_tokens": exchange.completion_tokens,
        "time_to_first_token": None if first is None else first / SECOND,
        "duration": exchange.duration_ns / SECOND,
        "ended": str(exchange.ended),
    }
    return f"{dump_json(fields)}\n"


class AccessLog:
    """Tells a file, given as its descriptor, of every exchange that is over."""

    def __init__(self, descriptor: int, line: Format = text_line) -> None:
        self._writer = LineWriter(descriptor, "access log")
        self._line = line

    def lines(self, exchanges: Sequence[Exchange]) -> list[str]:
        """Return a line for each exchange."""
        return list(map(self._line, exchanges))

    def write(self, *lines: str) -> None:
        """Leave lines for the writer's thread."""
        self._writer.write(*lines)

    def close(self, timeout: float) -> None:
        """Write what is left, but wait no longer than `timeout` seconds for a stuck reader."""
        self._writer.close(timeout)
