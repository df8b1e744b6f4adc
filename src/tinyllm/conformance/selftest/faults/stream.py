"""Faults of the stream's framing and of its chunks."""

# ruff: noqa: D102 (a method is explained where it is right; its class says what is wrong here)

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

from tinyllm.conformance.selftest.engine import Engine, Job
from tinyllm.conformance.selftest.fault import caught_by
from tinyllm.conformance.selftest.heads import Request
from tinyllm.conformance.selftest.stream import Stream


@caught_by("v0.stream.content_type", "v0.stream.head")
class StreamAsJson(Engine):
    """Streams are announced as application/json."""

    def stream_fields(self) -> list[tuple[str, str]]:
        return [("Content-Type", "application/json"), *super().stream_fields()[1:]]


@caught_by("v0.stream.head")
class MayBeCached(Engine):
    """Streams are sent without Cache-Control: no-cache."""

    def stream_fields(self) -> list[tuple[str, str]]:
        return [pair for pair in super().stream_fields() if pair[0] != "Cache-Control"]


@caught_by("v0.stream.framing", "v0.stream.event_bytes", shared=("v0.stream.disconnect",))
class OneNewline(Engine):
    """An event ends with one newline: clients run all events together (mutant s08)."""

    def event(self, payload: str) -> bytes:
        return f"data: {payload}\n".encode()


@caught_by("v0.stream.event_bytes")
class CrlfEvents(Engine):
    """Events are written with CRLF: good for every client, not the v0 bytes."""

    def event(self, payload: str) -> bytes:
        return f"data: {payload}\r\n\r\n".encode()


@caught_by("v0.stream.done")
class DoneTwice(Engine):
    """[DONE] is sent twice."""

    def done(self) -> bytes:
        return super().done() * 2


@caught_by("v0.stream.done")
class NoDone(Engine):
    """The stream ends without [DONE]."""

    def done(self) -> bytes:
        return b""


@caught_by("v0.stream.chunk_shape", "v0.stream.exact_members")
class ChunkWithoutObject(Engine):
    """Chunks have no member named object."""

    def chunk(self, job: Job, text: str, reason: str | None) -> dict[str, Any]:
        return {k: v for k, v in super().chunk(job, text, reason).items() if k != "object"}


@caught_by("v0.stream.exact_members")
class ChunkWithUsage(Engine):
    """Chunks carry usage, which v0 does not add."""

    def chunk(self, job: Job, text: str, reason: str | None) -> dict[str, Any]:
        return {**super().chunk(job, text, reason), "usage": None}


@caught_by("v0.stream.same_id")
class IdPerChunk(Engine):
    """Each chunk has an id of its own."""

    def chunk(self, job: Job, text: str, reason: str | None) -> dict[str, Any]:
        return {**super().chunk(job, text, reason), "id": f"cmpl-{secrets.token_hex(12)}"}


@caught_by("v0.stream.finish_reason")
class TwoFinishReasons(Engine):
    """The last two chunks both have a finish_reason."""

    def finish_reason(self, job: Job, number: int) -> str | None:
        return "length" if number >= job.max_tokens - 1 else None


@caught_by("v0.stream.finish_reason")
class NoFinishReason(Engine):
    """No chunk has a finish_reason."""

    def finish_reason(self, job: Job, number: int) -> str | None:
        return None


@caught_by("v0.stream.one_event_per_token", shared=("v0.checkpoint.chunks",))
class TwoTokensPerEvent(Engine):
    """Two tokens share an event."""

    def events(self, job: Job) -> Iterator[bytes]:
        pieces = list(self.pieces(job))
        pairs = ["".join(pieces[i : i + 2]) for i in range(0, len(pieces), 2)]
        for number, text in enumerate(pairs, 1):
            reason = "length" if number == len(pairs) else None
            yield self.event(self.dump(self.chunk(job, text, reason)))


@caught_by("v0.stream.closes")
class StreamStaysOpen(Engine):
    """After a stream the connection is left open for a client that asked for keep-alive."""

    def send_stream(self, stream: Stream, job: Job, request: Request) -> None:
        super().send_stream(stream, job, request)
        if self.keeps(request):
            stream.deadline = None
            stream.take(1)


@caught_by("v0.stream.error_not_done", shared=("v0.stream.equals_nonstream",))
class DoneAfterError(Engine):
    """A stream of 16 tokens breaks off with an error event, and then says [DONE]."""

    def events(self, job: Job) -> Iterator[bytes]:
        for number, event in enumerate(super().events(job)):
            if number == 15 and job.max_tokens == 16:
                yield self.event('{"error":{"message":"out of memory","type":"server_error"}}')
                return
            yield event
