"""One client of the `wire` server: its requests one after another, over any blocking streams.

A session reads a request, finds its route, writes the answer, and goes on if both sides keep the
connection. Errors of the parser and of the routes become answers here, and nowhere else. Time is
the streams' matter: the session only says how long the next reads may take.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from tinyllm.wire.errors import ClientGone, HttpError, RequestTimeout
from tinyllm.wire.jsontext import dump_json
from tinyllm.wire.message import Request
from tinyllm.wire.request import CONTINUE, ByteReader, read_request
from tinyllm.wire.response import ByteWriter, write_all, write_response, write_sse_head
from tinyllm.wire.routes import MethodNotAllowed, find_route
from tinyllm.wire.sse import sse_event

# The specification of this server knows three statuses for a broken request, the parser more.
WIRE_STATUS = {431: 413, 501: 400, 417: 400}

JSON = "application/json"


class Timeouts(NamedTuple):
    """How long a client may take, in seconds."""

    head: float = 10.0  # for a head, from the accept or from its first byte
    body: float = 30.0  # for the body after it
    idle: float = 75.0  # between two requests of a kept connection


DEFAULT_TIMEOUTS = Timeouts()


class PeekingReader(ByteReader, Protocol):
    """A reader that can wait for bytes without taking them, such as io.BufferedReader."""

    def peek(self, size: int, /) -> bytes:
        """Return what is buffered; if nothing is, wait for bytes; b"" at the end."""


class Session:
    """A connection's life between its accept and its close.

    `allow(seconds)` sets the time for all reads from then on; a read that takes longer raises
    RequestTimeout, one on a broken connection ClientGone.
    """

    def __init__(
        self,
        reader: PeekingReader,
        writer: ByteWriter,
        allow: Callable[[float], None],
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        keep_alive: bool = True,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._allow = allow
        self._timeouts = timeouts
        self._keep_alive = keep_alive

    def serve(self) -> None:
        """Answer requests until the client or an answer ends the connection."""
        self._allow(self._timeouts.head)
        while self._serve_request() and self._await_request():
            self._allow(self._timeouts.head)

    def _serve_request(self) -> bool:
        """Read and answer one request; return whether another may follow."""
        try:
            request = read_request(self._reader, self._before_body)
        except ClientGone:
            return False
        except HttpError as error:
            self.refuse(error)
            return False
        keep = self._keep_alive and request.wants_keep_alive
        try:
            answer = find_route(request)(request)
        except HttpError as error:
            self._write_error(error, keep, head_only=request.method == "HEAD")
            return keep
        if isinstance(answer, str):
            write_response(self._writer, 200, JSON, (), answer.encode(), connection=_option(keep))
            return keep
        write_sse_head(self._writer)
        for payload in answer:  # each event leaves before the next one is made
            write_all(self._writer, sse_event(payload).encode())
        return False

    def _before_body(self, request: Request) -> None:
        """Give the body its time; tell a client that waits to go on, or at once why not."""
        self._allow(self._timeouts.body)
        if request.expects_continue:
            find_route(request)
            write_all(self._writer, CONTINUE)

    def refuse(self, error: HttpError) -> None:
        """Answer what cannot be served; nothing may follow."""
        self._write_error(error, keep=False)

    def _write_error(self, error: HttpError, keep: bool, head_only: bool = False) -> None:
        write_response(
            self._writer,
            WIRE_STATUS.get(error.status, error.status),
            JSON,
            [("Allow", error.allowed)] if isinstance(error, MethodNotAllowed) else (),
            dump_json({"error": error.message}).encode(),
            connection=_option(keep),
            head_only=head_only,
        )

    def _await_request(self) -> bool:
        """Wait for the first byte of a kept connection's next request; False if none comes."""
        self._allow(self._timeouts.idle)
        try:
            return bool(self._reader.peek(1))
        except (RequestTimeout, ClientGone):
            return False


def _option(keep: bool) -> str:
    return "keep-alive" if keep else "close"
