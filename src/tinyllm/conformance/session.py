"""What a case is given: requests to send, answers checked as far as every case needs it.

A session belongs to one run of one case. It keeps every exchange, closes what the case leaves
open, and holds the case to a deadline of its own, so that neither a case nor a server can hang
the run. `complete` and `stream` speak the v0 API; `send` and `connect` send any bytes at all.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from tinyllm.conformance.case import Profile, Suite
from tinyllm.conformance.client import Address, Connection
from tinyllm.conformance.events import EventStream
from tinyllm.conformance.evidence import CheckFailed, Exchange, check, fail
from tinyllm.conformance.response import Response, body_pieces, read_head, read_response

if TYPE_CHECKING:
    from tinyllm.conformance.checkpoint import Checkpoint
    from tinyllm.conformance.collector import Collector

COMPLETIONS = "/v1/completions"
BRIEF_ROWS = 1
CASE_TIMEOUTS = 6  # a case may take this many times the time that one answer may take

Fields = Sequence[tuple[str, str]]
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Settings:
    """One run's server, and how it is graded."""

    address: Address
    suite: Suite = Suite.ENGINE
    profile: Profile = Profile.TINYLLM
    health: Address | None = None  # whose prefix is the whole path
    model: str = "conform"
    api_key: str | None = None
    timeout: float = 10.0  # seconds that one connection may take, from connect to its last byte
    slow: bool = False
    checkpoint: Checkpoint | None = None
    collector: Collector | None = None
    samples: int = 24  # how many seeds a statistical case tries
    brief: bool = False  # try only the first rows of a case's table (the self-test's controls)
    long_tokens: int | None = None  # length of a long stream; None: as many as fill a second
    stall_seconds: float = 40.0  # how long a stalled connection may stay open (--slow)
    pressure_bytes: int = 5_000_000  # a stream of this length fills the kernel's buffers


@dataclass(slots=True)
class Session:
    """The requests of one case."""

    settings: Settings
    shared: dict[str, Any] = field(default_factory=dict)  # what one run measures once
    exchanges: list[Exchange] = field(default_factory=list)
    _open: list[Connection] = field(default_factory=list)
    _deadline: float = 0.0

    def __post_init__(self) -> None:
        self._deadline = time.monotonic() + CASE_TIMEOUTS * self.settings.timeout

    # Connections and bytes

    def connect(self, address: Address | None = None, timeout: float | None = None) -> Connection:
        """Open a connection; it is closed when the case ends."""
        wait = self.settings.timeout if timeout is None else timeout
        if timeout is None:
            wait = min(wait, self._deadline - time.monotonic())
        if wait <= 0:
            fail(f"the case took longer than {CASE_TIMEOUTS * self.settings.timeout:g} s")
        connection = Connection(address or self.settings.address, time.monotonic() + wait)
        self.exchanges.append(connection.exchange)
        self._open.append(connection)
        return connection

    def send(self, raw: bytes, method: str = "POST", address: Address | None = None) -> Response:
        """Send these bytes on a new connection and return the response, read whole."""
        connection = self.connect(address)
        connection.send(raw)
        response = read_response(connection, method)
        connection.close()
        return response

    def close(self) -> None:
        """Close what the case left open."""
        for connection in self._open:
            connection.close()

    # Requests as bytes

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        fields: Fields = (),
        connection: str | None = "close",
    ) -> bytes:
        """Return a request's bytes, with the fields that a client of this server sends.

        `connection` is the Connection field's value; None sends none.
        """
        return self.head(method, path, self.fields(body, fields, connection)) + (body or b"")

    def fields(
        self, body: bytes | None = None, extra: Fields = (), connection: str | None = "close"
    ) -> list[tuple[str, str]]:
        """Return the fields of `request`, for cases that change one of them."""
        fields = [("Host", self.settings.address.authority)]
        if body is not None:
            fields += [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        if self.settings.api_key is not None:
            fields.append(("Authorization", f"Bearer {self.settings.api_key}"))
        if connection is not None:
            fields.append(("Connection", connection))
        return [*fields, *extra]

    def head(self, method: str, path: str, fields: Fields, version: str = "HTTP/1.1") -> bytes:
        """Return request line and fields as bytes; latin-1, so that any byte can be sent."""
        target = self.settings.address.prefix + path
        lines = [f"{method} {target} {version}", *(f"{name}: {value}" for name, value in fields)]
        return "".join(f"{line}\r\n" for line in [*lines, ""]).encode("latin-1")

    # The v0 API

    def completion_body(self, **fields: object) -> bytes:
        """Return a completion request's body; `model` is the run's unless given, None omits."""
        merged: Mapping[str, object] = {"model": self.settings.model, "prompt": "a", **fields}
        chosen = {name: value for name, value in merged.items() if value is not OMIT}
        return json.dumps(chosen, ensure_ascii=False).encode("utf-8")

    def post(self, body: bytes, fields: Fields = ()) -> Response:
        """POST a body to the completions endpoint and return the response."""
        return self.send(self.request("POST", COMPLETIONS, body, fields))

    def get(self, path: str) -> Response:
        """GET a path of the API and return the response."""
        return self.send(self.request("GET", path), "GET")

    def complete(self, **fields: object) -> Completion:
        """Return a plain completion. Breaks the case unless it is a 200 of the right kind."""
        return read_completion(self.post(self.completion_body(**fields)))

    def stream(self, **fields: object) -> EventStream:
        """Return a whole streamed completion. Breaks the case unless it is a 200 stream."""
        stream = self.open_stream(**fields)
        stream.read_on()
        return stream.events

    def open_stream(self, **fields: object) -> OpenStream:
        """Ask for a stream and return it once its head has come."""
        body = self.completion_body(**fields, stream=True)
        connection = self.connect()
        connection.send(self.request("POST", COMPLETIONS, body))
        response = read_head(connection, "POST")
        if response.status != 200:
            for _ in body_pieces(connection, response):
                pass
            fail(f"status {response.status} for a stream, not 200", response.status_line)
        return OpenStream(connection, EventStream(response))

    def long_tokens(self) -> int:
        """Return how many tokens make a stream of about a second, 32 to 4096; measured once."""
        if self.settings.long_tokens is not None:
            return self.settings.long_tokens
        if "long_tokens" not in self.shared:
            begun = time.monotonic()
            self.complete(max_tokens=16, temperature=0)
            per_token = (time.monotonic() - begun) / 16
            self.shared["long_tokens"] = max(32, min(4096, int(1.0 / per_token)))
        return int(self.shared["long_tokens"])

    @property
    def repeats_itself(self) -> bool:
        """Whether greedy text must be the same each time: elsewhere, other requests in the same
        batch may change its last bits, and so in time its text.
        """
        return self.settings.profile is Profile.TINYLLM

    def rows(self, table: Iterable[Row]) -> list[Row]:
        """Return what a case tries in turn: the whole table, unless the run is a brief one."""
        found = list(table)
        return found[:BRIEF_ROWS] if self.settings.brief else found

    def times(self, count: int) -> range:
        """Return how often a case repeats itself: as often as it says, or twice in a brief run."""
        return range(2 if self.settings.brief else count)

    def heavy_stream(self) -> dict[str, object]:
        """Return the fields of a stream too long for the kernel's buffers, if it can be made so.

        The v0 contract echoes any model's name in each chunk; other servers are not asked for a
        model that they may not have.
        """
        fields: dict[str, object] = {"prompt": "Once", "temperature": 0}
        fields["max_tokens"] = count = self.long_tokens()
        if self.settings.profile is Profile.TINYLLM:
            fields["model"] = "m" * (self.settings.pressure_bytes // count)
        return fields


class _Omit:
    """Stands for "leave this field out of the body"."""


OMIT = _Omit()


@dataclass(frozen=True, slots=True)
class OpenStream:
    """A stream whose head has come, with the connection that it comes on."""

    connection: Connection
    events: EventStream

    def live(self) -> Iterator[EventStream]:
        """Read on, and yield the events so far after each read that brought some."""
        for _ in body_pieces(self.connection, self.events.response):
            self.events.update()
            yield self.events

    def read_on(self) -> None:
        """Read to the end."""
        for _ in self.live():
            pass

    def first_event(self) -> None:
        """Read until the first event is whole."""
        for events in self.live():
            if events.events:
                return
        fail("the stream ended without an event", self.events.response.body_mark())


@dataclass(frozen=True, slots=True)
class Completion:
    """A plain completion's response and the parts of it that every case uses."""

    response: Response
    value: dict[str, Any]
    text: str
    finish_reason: object

    @property
    def usage(self) -> dict[str, Any]:
        """The usage object; a body without one breaks the case."""
        usage = self.value.get("usage")
        if not isinstance(usage, dict):
            fail("no usage object", self.response.body_mark())
        return usage


def read_completion(response: Response) -> Completion:
    """Return the completion in a response, or break the case with what is missing."""
    check(response.status == 200, f"status {response.status}, not 200", response.status_line)
    value = response.json()
    if not isinstance(value, dict):
        fail("the body is not a JSON object", response.body_mark())
    match value.get("choices"):
        case [{"text": str(text), **choice}]:
            return Completion(response, value, text, choice.get("finish_reason"))
    raise CheckFailed("no choices with one object that holds a text", response.body_mark())
