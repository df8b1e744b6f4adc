"""Faults in time: buffers, blocked clients, deadlines, and work for nobody."""

# ruff: noqa: D102 (a method is explained where it is right; its class says what is wrong here)

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

from tinyllm.conformance.selftest.engine import Engine, Job
from tinyllm.conformance.selftest.fault import caught_by, caught_on_both
from tinyllm.conformance.selftest.heads import Request
from tinyllm.conformance.selftest.httpd import Answer, HttpServer
from tinyllm.conformance.selftest.stream import Gone, Stream


@caught_by("v0.stream.as_made")
class FlushesAtTheEnd(Engine):
    """All events leave at the end."""

    def send_stream(self, stream: Stream, job: Job, request: Request) -> None:
        stream.write(self.head_bytes(200, [*self.stream_fields(), *self.extra(request)]))
        events = list(self.events(job))
        time.sleep(0.02 if job.max_tokens > 100 else 0)
        stream.write(b"".join(events) + self.done())


@caught_by("v0.stream.disconnect")
class GoesOnForNobody(Engine):
    """The model, one for all, is at work for a stream to its end, whether or not anybody reads."""

    def events(self, job: Job) -> Iterator[bytes]:
        for number, event in enumerate(super().events(job)):
            yield event
            if number == 0 and job.max_tokens > 100:
                with self.lock:
                    time.sleep(0.03)

    def send_stream(self, stream: Stream, job: Job, request: Request) -> None:
        events = self.events(job)
        try:
            super().send_stream(stream, job, request)
        except Gone:
            for _ in events:
                pass
            raise

    def plain_body(self, job: Job) -> bytes:
        with self.lock:
            return super().plain_body(job)


@caught_by("v0.stream.slow_reader")
class WaitsForSlowReaders(Engine):
    """While a stream cannot be written on, nobody else is served."""

    def send_stream(self, stream: Stream, job: Job, request: Request) -> None:
        with self.lock:
            super().send_stream(stream, job, request)

    def plain_body(self, job: Job) -> bytes:
        with self.lock:
            return super().plain_body(job)


@caught_on_both(
    "http.stalled_client",
    also=("v0.stream.slow_reader", "v0.healthz.busy", "wire.count.aside"),
)
class OneAtATime(HttpServer):
    """One thread serves all connections, one after the other."""

    def dispatch(self, sock: socket.socket) -> None:
        self.connection(sock)

    def close(self, stream: Stream) -> None:
        stream.socket.close()  # at once: whoever waits here keeps everybody waiting


@caught_on_both("http.crowd")
class AtMostTwenty(HttpServer):
    """Of more than twenty connections at once, some are closed without an answer."""

    def dispatch(self, sock: socket.socket) -> None:
        if len(self._open) > 20:
            self._open.discard(sock)
            sock.close()
        else:
            super().dispatch(sock)


@caught_by("v0.crowd.own_answers")
class MixesUpAnswers(Engine):
    """What a stream answers to is kept in one place for all of them."""

    latest: Job | None = None

    def parse(self, body: bytes) -> Job:
        job = self.latest = super().parse(body)
        return job

    def events(self, job: Job) -> Iterator[bytes]:
        time.sleep(0.02 if job.max_tokens == 12 else 0)
        if self.latest is not None:
            job.prompt = self.latest.prompt
        return super().events(job)


@caught_by("v0.healthz.busy")
class HealthWaitsForWork(Engine):
    """/healthz is answered when no answer is being made."""

    working = 0

    def plain_body(self, job: Job) -> bytes:
        with self.lock:
            self.working += 1
        try:
            return super().plain_body(job)
        finally:
            time.sleep(0.005)
            with self.lock:
                self.working -= 1

    def answer(self, request: Request) -> Answer:
        time.sleep(0.02)
        while self.working:
            time.sleep(0.001)
        return super().answer(request)


@caught_on_both("http.head_deadline")
class NoHeadDeadline(HttpServer):
    """A head may take for ever."""

    HEAD_SECONDS = 60


@caught_on_both("http.body_deadline")
class NoBodyDeadline(HttpServer):
    """A body may take for ever."""

    BODY_SECONDS = 60
