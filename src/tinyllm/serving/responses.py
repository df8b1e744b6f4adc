"""What handlers return: an answer that is ready, or one that a generation will write.

A handler never writes. `Response` is a whole answer as a value. `EventStream` and
`PlainCompletion` are answers in progress: the connection lends them to the engine, which
gives them token ids, and they give back the bytes that are ready to leave.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, TypeAlias

from tinyllm.decoding import SamplingError, Utf8Stream
from tinyllm.engine import SLICE_TOKENS, Generation
from tinyllm.serving.errors import ApiError
from tinyllm.serving.schema import ChunkFrame
from tinyllm.wire import response_bytes, sse_event, sse_head_bytes

Headers: TypeAlias = tuple[tuple[str, str], ...]

JSON_TYPE = "application/json"
# nginx holds a proxied response until its buffer is full, unless the response says not to.
STREAM_HEADERS: Headers = (("X-Accel-Buffering", "no"),)


# Of one slice of a stream: about a socket's buffer. A long model name is in every event.
SLICE_BYTES: Final = 128 * 1024


class Response(NamedTuple):
    """A whole answer: status, body, and the headers beside the framing ones."""

    status: int
    body: bytes
    headers: Headers = ()

    @classmethod
    def from_error(cls, error: ApiError, headers: Headers = ()) -> Response:
        """Return an error as an answer."""
        return cls(error.status, error.to_json().encode(), error.headers + headers)

    def encode(self, connection: str, *, head_only: bool = False) -> bytes:
        """Return the bytes; `connection` is "close" or "keep-alive", `head_only` for HEAD."""
        return response_bytes(
            self.status,
            JSON_TYPE,
            self.headers,
            self.body,
            connection=connection,
            head_only=head_only,
        )


class Pending(Protocol):
    """An answer that a generation is still writing."""

    generation: Generation
    slice_tokens: int
    """How many ids it takes at once."""

    @property
    def keeps_connection(self) -> bool:
        """Whether the answer says where it ends, so that another may follow."""

    def feed(self, ids: list[int], finished: bool, connection: str) -> bytes:
        """Take token ids and return the bytes that are ready to leave (maybe none)."""

    def fail(self, error: ApiError) -> bytes:
        """Return the bytes that end the answer with an error."""


class EventStream:
    """A streamed completion: one event per token, the head together with the first of them."""

    __slots__ = ("_frame", "_headers", "_started", "_text", "generation", "slice_tokens")

    keeps_connection = False  # a stream ends where its connection ends (CONTRACT, point 6)

    def __init__(self, generation: Generation, frame: ChunkFrame, headers: Headers) -> None:
        self.generation = generation
        self.slice_tokens = max(1, min(SLICE_TOKENS, SLICE_BYTES // frame.event_length))
        self._frame = frame
        self._headers = headers
        self._text = Utf8Stream()
        self._started = False

    def feed(self, ids: list[int], finished: bool, connection: str) -> bytes:
        """Return an event for each id; bytes held back as an unfinished character come last."""
        texts = self._text.push_block(bytes(ids))
        if finished:
            texts[-1] += self._text.finish()
        events = self._frame.events(texts, finished)
        if self._started:
            return events
        self._started = True
        return sse_head_bytes(STREAM_HEADERS + self._headers) + events

    def fail(self, error: ApiError) -> bytes:
        """Return a plain error before the first byte, else an error event (CONTRACT, point 14).

        No [DONE] follows: it means that the stream is whole.
        """
        if self._started:
            return sse_event(error.to_json()).encode()
        return Response.from_error(error, self._headers).encode("close")


class PlainCompletion:
    """A plain completion too long to be made in one go: its ids gather until they are whole."""

    __slots__ = ("_headers", "_ids", "_render", "generation")

    keeps_connection = True
    slice_tokens = SLICE_TOKENS

    def __init__(
        self, generation: Generation, render: Callable[[bytes], bytes], headers: Headers
    ) -> None:
        self.generation = generation
        self._render = render
        self._headers = headers
        self._ids = bytearray()

    def feed(self, ids: list[int], finished: bool, connection: str) -> bytes:
        """Return nothing until the last id is there, then the whole answer."""
        self._ids += bytes(ids)
        if not finished:
            return b""
        return Response(200, self._render(bytes(self._ids)), self._headers).encode(connection)

    def fail(self, error: ApiError) -> bytes:
        """Return the error as a plain answer: nothing has left yet."""
        return Response.from_error(error, self._headers).encode("close")


def api_error(error: Exception, log_id: str) -> ApiError:
    """Return what a client is told of an error met while its answer was made."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, SamplingError):  # the model's fault, worth telling
        return ApiError(500, "server_error", str(error))
    return ApiError.internal(log_id)
