"""One TCP connection: bytes in, requests out, answers back. The only file that touches a transport.

    data_received -> RequestParser -> Edge.dispatch -> one write, or the engine's sink

A connection is in one phase at a time:

    READING    a request is awaited or half there; its deadline is the state's (CONTRACT, point 8)
    ANSWERING  a generation writes the answer; what the client sends meanwhile waits
    LINGERING  the last answer has left, input may still be under way: it is read and dropped, so
               that the client gets the answer and not a reset (CONTRACT, point 5)
    CLOSING    only the transport's own buffer is left to send

Backpressure is the transport's: when its buffer is above the high-water mark the generation
pauses, so a client that stops reading costs one buffer and one slice, whatever it asked for.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from typing import TYPE_CHECKING, Final, cast

from tinyllm.engine import Task
from tinyllm.serving.errors import ApiError
from tinyllm.serving.exchange import COMPLETED, Ended, Exchange
from tinyllm.serving.responses import Pending, Response, api_error
from tinyllm.serving.transport import SMALL_BYTES, SocketTransport
from tinyllm.tracing import random_hex
from tinyllm.wire import CONTINUE, HttpError, ParserState, Request, RequestParser, RequestTimeout

if TYPE_CHECKING:
    from tinyllm.serving.edge import Edge

# Pipelined requests answered before other connections get their turn.
REQUESTS_PER_TURN: Final = 16
# Bytes of further requests held while one is answered; beyond, reading stops until it is done.
PIPELINE_BYTES: Final = 64 * 1024
# After a final answer: how much is read and dropped, and for how long, before the close.
LINGER_BYTES: Final = 4 * 1024 * 1024
LINGER_SECONDS: Final = 2.0

logger = logging.getLogger("tinyllm.serving")


class Phase(enum.Enum):
    """What a connection is doing (see the head of this file)."""

    READING = enum.auto()
    ANSWERING = enum.auto()
    LINGERING = enum.auto()
    CLOSING = enum.auto()


# The names of an enum's members take 0.07 us each to look up in CPython 3.11, and a plain request
# asks a dozen times.
READING: Final = Phase.READING
ANSWERING: Final = Phase.ANSWERING
LINGERING: Final = Phase.LINGERING
CLOSING: Final = Phase.CLOSING
CLIENT_GONE: Final = Ended.CLIENT_GONE
IDLE: Final = ParserState.IDLE
HEAD: Final = ParserState.HEAD


class Connection(asyncio.Protocol):
    """The protocol of one accepted connection; an `Edge` makes it, owns it and watches its time."""

    __slots__ = (
        "_continued",
        "_dropped",
        "_edge",
        "_exchange",
        "_keep",
        "_parser",
        "_paused",
        "_peer",
        "_pending",
        "_reading_paused",
        "_task",
        "_transport",
        "_turn_due",
        "_unsent",
        "_waiting_in",
        "deadline",
        "phase",
    )

    def __init__(self, edge: Edge) -> None:
        self._edge = edge
        self._parser = RequestParser(
            max_head_bytes=edge.limits.max_head_bytes, max_body_bytes=edge.limits.max_body_bytes
        )
        self._transport = cast(SocketTransport, None)  # until connection_made
        self._peer: object = None  # the client's address, likewise
        self._exchange: Exchange | None = None  # of the request being read or answered
        self._pending: Pending | None = None
        self._task: Task | None = None
        self._paused = False  # the transport's buffer is full
        self._reading_paused = False
        self._turn_due = False  # `_read_requests` was asked to go on in the loop's next round
        self._continued = False  # 100 Continue was sent for this request
        self._keep = False  # the connection outlives the answer under way
        # What the client owes, and its deadline. A new client owes a head; None: nothing.
        self._waiting_in: ParserState | None = HEAD
        self._unsent = 0  # bytes in the transport's buffer when the client's patience was set
        self._dropped = 0
        self.phase = READING
        self.deadline = edge.now() + edge.limits.head_timeout

    # The transport's calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport; beyond the edge's capacity, say so and close."""
        self._transport = cast(SocketTransport, transport)
        self._peer = transport.get_extra_info("peername")
        if not self._edge.admit(self) and self.phase is READING:
            self._refuse(ApiError.unavailable("too many connections"))

    def data_received(self, data: bytes) -> None:
        """Feed the parser and answer what is whole."""
        if self.phase is LINGERING or self.phase is CLOSING:
            self._drop(len(data))
            return
        if self._exchange is None:
            self._exchange = Exchange(self._peer)
        self._parser.feed(data)
        if not self._is_behind():
            self._read_requests()
        elif self._parser.buffered > PIPELINE_BYTES:
            self._pause_reading()

    def eof_received(self) -> bool:
        """Let an answer under way reach a client that only closed its sending side."""
        if self.phase is LINGERING or self.phase is CLOSING:
            return False
        self._parser.feed(b"")
        if not self._is_behind():
            self._read_requests()
        return self.phase is ANSWERING or self.phase is READING

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget everything; a request or a generation under way ends here."""
        self._end(CLIENT_GONE)
        self.phase = CLOSING
        self._edge.forget(self)

    def pause_writing(self) -> None:
        """Stop generating: the client reads more slowly than we write."""
        self._paused = True
        self._await_reader()
        if self._task is not None:
            self._edge.engine.pause(self._task)

    def resume_writing(self) -> None:
        """Go on: the buffer has drained."""
        self._paused = False
        if self._task is not None:
            self._edge.engine.resume(self._task)
        elif self.phase is READING:
            self._read_soon()

    # Requests

    def _is_behind(self) -> bool:
        """Whether bytes that came earlier are still to be looked at, so that new ones wait."""
        return self._turn_due or self._paused or self.phase is ANSWERING

    def _read_requests(self) -> None:
        """Answer the whole requests that the parser holds, then wait for more bytes."""
        for _ in range(REQUESTS_PER_TURN):
            if self.phase is not READING or self._paused:
                return
            try:
                request = self._parser.next_request()
            except HttpError as error:
                self._reject(error.with_traceback(None))  # the parser keeps it; its frames keep us
                return
            except Exception as error:  # noqa: BLE001 - as in `_answer`
                self._refuse(self._explain(error), Ended.FAILED)
                return
            if request is None:
                self._await_more()
                return
            self._answer(request)
        self._read_soon()

    def _read_soon(self) -> None:
        """Go on in the loop's next round, when other connections have had their turn."""
        if not self._turn_due:
            self._turn_due = True
            self._edge.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._turn_due = False
        self._read_requests()

    def _await_more(self) -> None:
        """Set the deadline of what is missing, and tell a waiting client to go on."""
        state = self._parser.state
        if state is IDLE and self._waiting_in is HEAD:
            state = HEAD  # an empty line is no request: a new client still owes one
        if state is not self._waiting_in:
            self._waiting_in = state
            self.deadline = self._edge.now() + self._edge.limits.patience(state)
        if state is IDLE:
            self._exchange = None
            if self._edge.draining:
                self.close_if_idle()
                return
        elif self._parser.expects_continue and not self._continued:
            self._continued = True
            self._transport.write(CONTINUE)
        self._resume_reading()

    def _answer(self, request: Request) -> None:
        exchange = self._exchange or Exchange(self._peer)
        self._exchange = exchange
        self._continued = False
        self._waiting_in = None
        keep = request.wants_keep_alive and self._edge.keeps_connections
        try:
            answer = self._edge.dispatch(request, exchange)
        except Exception as error:  # noqa: BLE001 - a fault of ours is a 500, never a dropped client
            answer = Response.from_error(self._explain(error), exchange.echoed)
        if isinstance(answer, Response):
            connection = "keep-alive" if keep else "close"
            data = answer.encode(connection, head_only=request.method == "HEAD")
            self._send_whole(exchange, answer.status, data, keep)
        else:
            self._pending = answer
            self.phase = ANSWERING
            self._keep = keep and answer.keeps_connection
            if not answer.keeps_connection:
                # Its writes tell when the client has gone, and input is looked for at its end. To
                # watch the socket beside them is an eighth of what 256 tokens cost.
                self._pause_reading()
            self._task = self._edge.engine.submit(answer.generation, self, answer.slice_tokens)

    def _send_whole(self, exchange: Exchange, status: int, data: bytes, keep: bool) -> None:
        """Write a whole answer, hand its exchange on, and close unless the client stays."""
        self._write_last(data, keep)
        exchange.status = status
        exchange.bytes_sent = len(data)
        self._exchange = None
        exchange.end(COMPLETED if status < 500 else Ended.FAILED)
        self._edge.finished(exchange)

    def _write_last(self, data: bytes, keep: bool) -> None:
        """Write the end of an answer, and close unless the client stays."""
        # A small piece waits for the close, and leaves with it (transport.py).
        corked = not keep and len(data) <= SMALL_BYTES and self._transport.cork()
        self._transport.write(data)
        if not keep:
            self._close()
        if corked:
            self._transport.uncork()

    def _reject(self, error: HttpError) -> None:
        """Answer broken HTTP with its status, or close when nobody is left to answer."""
        if error.status:
            self._refuse(ApiError.from_http(error))
        else:
            self._end(CLIENT_GONE)
            self._shut()

    def _refuse(self, error: ApiError, ended: Ended = COMPLETED) -> None:
        """Answer without a request to answer to; whatever the client still sends is dropped."""
        exchange = self._exchange or Exchange(self._peer)
        self._exchange = None
        data = Response.from_error(error).encode("close")
        self._transport.write(data)
        exchange.status = error.status
        exchange.bytes_sent = len(data)
        exchange.end(ended)
        self._edge.finished(exchange)
        self._linger()

    def _explain(self, error: Exception) -> ApiError:
        """Return what the client is told; what is our fault goes to the log with its traceback."""
        if isinstance(error, ApiError):
            return error
        exchange = self._exchange
        log_id = "-"
        if exchange is not None:
            log_id = exchange.request_id or random_hex(8)
            exchange.log_id = log_id
            exchange.error_type = type(error).__name__
        logger.error("request %s failed", log_id, exc_info=error)
        return api_error(error, log_id)

    # The engine's calls (its Sink)

    def receive(self, ids: list[int], finished: bool) -> None:
        """Write what new tokens make ready; with the last ones, end the answer."""
        exchange, pending = self._exchange, self._pending
        assert exchange is not None, "an answer under way has its exchange"
        assert pending is not None, "and what is to be written"
        exchange.mark_first_token()
        exchange.completion_tokens += len(ids)
        self._keep = self._keep and self._edge.keeps_connections  # a drain may have begun
        data = pending.feed(ids, finished, "keep-alive" if self._keep else "close")
        if data:
            exchange.status = 200
            exchange.bytes_sent += len(data)
        if finished:
            self._write_last(data, self._keep)
            self._end(COMPLETED)
            if self._keep:
                self._await_next()
        elif data:
            self._transport.write(data)

    def fail(self, error: Exception) -> None:
        """End the answer with an error: a status if nothing has left, else an event."""
        exchange, pending = self._exchange, self._pending
        assert exchange is not None, "an answer under way has its exchange"
        assert pending is not None, "and what is to be written"
        explained = self._explain(error)
        exchange.status = exchange.status or explained.status
        data = pending.fail(explained)
        exchange.bytes_sent += len(data)
        self._transport.write(data)
        self._end(Ended.FAILED)
        self._close()

    def _end(self, ended: Ended) -> None:
        """Let go of the generation, if there is one, and hand the exchange on."""
        exchange, task = self._exchange, self._task
        self._exchange = self._task = self._pending = None
        if task is not None:
            self._edge.engine.cancel(task)
        if exchange is not None:
            exchange.end(ended)
            self._edge.finished(exchange)

    def _await_next(self) -> None:
        """Go on with the next request, which may be here already."""
        self.phase = READING
        if self._parser.buffered:
            self._exchange = Exchange(self._peer)
        self._read_soon()

    # Time, called by the edge

    def expire(self) -> None:
        """Do what a passed deadline asks for."""
        if self.phase is LINGERING:
            self._shut()
        elif self._paused or self.phase is CLOSING:
            if self._transport.get_write_buffer_size() < self._unsent:
                self._await_reader()  # slow, but there
            else:
                self.stop(Ended.STALLED)
        elif self.phase is READING and self._waiting_in is IDLE:
            self._shut()  # a kept-alive client that has nothing more to ask
        elif self.phase is READING and self._waiting_in is not None:
            missing = "body" if self._waiting_in is ParserState.BODY else "head"
            error = RequestTimeout(f"the request's {missing} did not arrive in time")
            self._refuse(ApiError.from_http(error), Ended.TIMED_OUT)

    def stop(self, ended: Ended) -> None:
        """Break off at once, whatever is under way."""
        self._end(ended)
        self.phase = CLOSING
        self._transport.abort()

    def close_if_idle(self) -> None:
        """Close a kept-alive connection between two requests; a new one must hurry with its first.

        For it a request may be on its way, but it is no answer that a shutdown has to wait for.
        """
        if self.phase is not READING:
            return
        if self._waiting_in is IDLE:
            self._shut()
        elif self._exchange is None:
            self.deadline = min(self.deadline, self._edge.now() + LINGER_SECONDS)

    # The end

    def _close(self) -> None:
        """Close after the last answer; linger if the client may still be sending."""
        if self._parser.buffered or (self._reading_paused and self._transport.has_unread()):
            self._linger()
        else:
            self._shut()

    def _linger(self) -> None:
        self.phase = LINGERING
        self.deadline = self._edge.now() + LINGER_SECONDS
        self._resume_reading()
        if self._transport.can_write_eof() and not self._transport.is_closing():
            self._transport.write_eof()

    def _drop(self, length: int) -> None:
        self._dropped += length
        if self._dropped > LINGER_BYTES:
            self._shut()

    def _shut(self) -> None:
        """Read no more, and close when what was written has left."""
        self.phase = CLOSING
        self._await_reader()
        self._transport.close()

    def _await_reader(self) -> None:
        """Give the client time to take some of what was written to it."""
        self._unsent = self._transport.get_write_buffer_size()
        self.deadline = self._edge.now() + self._edge.limits.stall_timeout

    def _pause_reading(self) -> None:
        if not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()
