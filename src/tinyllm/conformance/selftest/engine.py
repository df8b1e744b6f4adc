"""A small, deliberately good v0 engine, a method per promise, for the self-test to break."""

from __future__ import annotations

import itertools
import json
import re
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tinyllm.conformance.checkpoint import Checkpoint, next_text
from tinyllm.conformance.selftest.exporter import Exporter
from tinyllm.conformance.selftest.heads import Request
from tinyllm.conformance.selftest.httpd import Answer, HttpServer, Refused
from tinyllm.conformance.selftest.stream import Gone, Stream
from tinyllm.conformance.strictjson import has_lone_surrogate

LONG = 100  # tokens; an answer longer than this
THINKING = 0.01  # takes so many seconds of a model's time
COMPLETIONS = "/v1/completions"
ALLOWED = {COMPLETIONS: ("POST",), "/healthz": ("GET", "HEAD")}


@dataclass(slots=True)
class Job:
    """One completion: what was asked, and what every answer to it repeats."""

    model: str
    prompt: str
    max_tokens: int
    temperature: float
    seed: int
    stream: bool
    id: str = field(default_factory=lambda: f"cmpl-{secrets.token_hex(12)}")
    created: int = field(default_factory=lambda: int(time.time()))


class Engine(HttpServer):
    """Serves a checkpoint; with an exporter, each completion request leaves a span."""

    def __init__(self, checkpoint: Checkpoint, collector_url: str | None) -> None:
        self.checkpoint = checkpoint
        self.lock = threading.Lock()  # what some faults wait for
        self.exporter = Exporter(collector_url) if collector_url is not None else None
        super().__init__()

    def stop(self) -> None:
        """Stop serving, then exporting."""
        super().stop()
        if self.exporter is not None:
            self.exporter.stop()

    # Routes

    def respond(self, request: Request, stream: Stream, keep: bool) -> bool:
        """Answer a request, and note its span when it is a completion's."""
        if self.route(request) != COMPLETIONS:
            return super().respond(request, stream, keep)
        begun, status, error = time.time_ns(), 200, False
        try:
            job = self.parse(request.body)
            if job.stream:
                self.send_stream(stream, job, request)
                return False
            answer = Answer(200, self.plain_body(job), self.extra(request))
            self.write_answer(stream, answer, request, keep)
            return True
        except Refused as refused:
            status = refused.status
            raise
        except Gone:
            error = True
            raise
        finally:
            if self.exporter is not None:
                self.exporter.offer(self.span(request, begun, status, error))

    def route(self, request: Request) -> str:
        """Return the path of the route. Raises Refused for none, or for the wrong method."""
        allowed = ALLOWED.get(request.path)
        if allowed is None:
            raise Refused(404, f"no such path: {request.path}")
        if request.method not in allowed:
            message = f"{request.path} allows {', '.join(allowed)}"
            raise Refused(405, message, allow=", ".join(allowed))
        return request.path

    def answer(self, request: Request) -> Answer:
        """Answer /healthz."""
        return Answer(200, b'{"status":"ok"}', self.extra(request))

    def refusal(self, refused: Refused, request: Request) -> Answer:
        """Return an error in the OpenAI shape."""
        body = self.dump({"error": self.error_value(refused)}).encode()
        allow = [("Allow", refused.allow)] if refused.allow else []
        return Answer(self.error_status(refused), body, [*allow, *self.extra(request)])

    def error_value(self, refused: Refused) -> object:
        """Return the value of the member error."""
        return self.error_members(refused)

    def error_members(self, refused: Refused) -> dict[str, Any]:
        """Return the error object."""
        return {
            "message": refused.message,
            "type": "invalid_request_error",
            "param": refused.param,
            "code": None,
        }

    def error_status(self, refused: Refused) -> int:
        """Return the status of an error."""
        return refused.status

    def extra(self, request: Request) -> list[tuple[str, str]]:
        """Return the X-Request-Id field, if it is to be echoed."""
        value = request.header("x-request-id")
        good = value is not None and re.fullmatch("[\x21-\x7e]{1,128}", value)
        return [("X-Request-Id", value)] if good and value is not None else []

    # The request's body

    def parse(self, body: bytes) -> Job:
        """Return the job that a body asks for. Raises Refused."""
        value = self.read_json(body)
        if not isinstance(value, dict):
            raise Refused(400, "the body must be a JSON object")
        for name in ("model", "prompt", "max_tokens", "temperature", "seed", "stream"):
            if not self.valid(name, value):
                raise Refused(400, f"{name} is not valid", name)
        chosen = {key: found for key, found in value.items() if found is not None}
        return Job(
            chosen["model"],
            chosen["prompt"],
            chosen.get("max_tokens", self.default_length()),
            chosen.get("temperature", 1),
            chosen.get("seed", secrets.randbits(64)),
            chosen.get("stream", False),
        )

    def read_json(self, body: bytes) -> object:
        """Return the body's JSON value. Raises Refused."""

        def constant(name: str) -> None:
            raise ValueError(f"{name} is not JSON")

        try:
            value = json.loads(self.decode_body(body), parse_constant=constant)
        except (ValueError, RecursionError) as error:
            raise Refused(400, f"the body is not JSON: {error}") from None
        if self.depth(body) > 64 or has_lone_surrogate(value):
            raise Refused(400, "the body is not JSON that can be read")
        return value

    def decode_body(self, body: bytes) -> str:
        """Return the body's text. Raises UnicodeDecodeError."""
        return body.decode("utf-8")

    def depth(self, body: bytes) -> int:
        """Return how deep the body is at most: its brackets, those in strings included."""
        return body.count(b"[") + body.count(b"{")

    def valid(self, name: str, value: dict[str, Any]) -> bool:
        """Whether a field is what the contract allows."""
        found = value.get(name)
        if name in ("model", "prompt"):
            return isinstance(found, str) and found != ""
        if found is None:
            return True
        if name == "stream":
            return isinstance(found, bool)
        if isinstance(found, bool) or not isinstance(found, int | float):
            return False
        if name == "temperature":
            return 0 <= found <= 2
        low, high = (1, 4096) if name == "max_tokens" else (0, 2**64 - 1)
        return isinstance(found, int) and low <= found <= high

    def default_length(self) -> int:
        """Return how many tokens a request without max_tokens gets."""
        return 16

    # Tokens and text

    def tokens(self, job: Job) -> Iterator[int]:
        """Yield the job's tokens."""
        found = self.checkpoint.tokens(job.prompt, self.temperature(job), job.seed)
        return itertools.islice(found, job.max_tokens)

    def temperature(self, job: Job) -> float:
        """Return the temperature that is used."""
        return job.temperature

    def pieces(self, job: Job) -> Iterator[str]:
        """Yield the text that each token completes; the last piece has what was held back."""
        pending = b""
        for number, token in enumerate(self.tokens(job), 1):
            text, pending = next_text(pending + bytes([token]))
            if number == job.max_tokens:
                text += pending.decode("utf-8", "replace")
            yield text

    def usage(self, job: Job) -> dict[str, int]:
        """Return the counts."""
        prompt = len(job.prompt.encode())
        return {
            "prompt_tokens": prompt,
            "completion_tokens": job.max_tokens,
            "total_tokens": prompt + job.max_tokens,
        }

    def dump(self, value: object) -> str:
        """Return a value as JSON."""
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    # The plain answer

    def plain_body(self, job: Job) -> bytes:
        """Return the completion's bytes."""
        if job.max_tokens > LONG:
            time.sleep(THINKING)
        return self.dump(self.completion(job)).encode()

    def completion(self, job: Job) -> dict[str, Any]:
        """Return the completion's members."""
        text = self.plain_text(job)
        choice = {"index": 0, "text": text, "finish_reason": "length"}
        return {**self.opening(job), "choices": [choice], "usage": self.usage(job)}

    def plain_text(self, job: Job) -> str:
        """Return the whole text."""
        return bytes(self.tokens(job)).decode("utf-8", "replace")

    def opening(self, job: Job) -> dict[str, Any]:
        """Return the members that every answer to a job begins with."""
        return {
            "id": job.id,
            "object": "text_completion",
            "created": job.created,
            "model": job.model,
        }

    # The stream

    def send_stream(self, stream: Stream, job: Job, request: Request) -> None:
        """Send head, events and [DONE], each as it is made."""
        stream.write(self.head_bytes(200, [*self.stream_fields(), *self.extra(request)]))
        for event in self.events(job):
            stream.write(event)
        stream.write(self.done())

    def stream_fields(self) -> list[tuple[str, str]]:
        """Return the head's fields."""
        return [
            ("Content-Type", "text/event-stream"),
            ("Cache-Control", "no-cache"),
            ("Connection", "close"),
        ]

    def events(self, job: Job) -> Iterator[bytes]:
        """Yield an event per token."""
        for number, text in enumerate(self.pieces(job), 1):
            reason = self.finish_reason(job, number)
            yield self.event(self.dump(self.chunk(job, text, reason)))

    def finish_reason(self, job: Job, number: int) -> str | None:
        """Return the finish_reason of the chunk of this number."""
        return "length" if number == job.max_tokens else None

    def chunk(self, job: Job, text: str, reason: str | None) -> dict[str, Any]:
        """Return a chunk's members."""
        choice = {"index": 0, "text": text, "finish_reason": reason}
        return {**self.opening(job), "choices": [choice]}

    def event(self, payload: str) -> bytes:
        """Return one event's bytes."""
        return f"data: {payload}\n\n".encode()

    def done(self) -> bytes:
        """Return the event that ends a stream."""
        return self.event("[DONE]")

    # The span

    def span(self, request: Request, begun: int, status: int, error: bool) -> dict[str, Any]:
        """Return the request's span as OTLP JSON."""
        trace, parent = self.parent(request) or (secrets.token_hex(16), "")
        attribute = {"key": "http.response.status_code", "value": {"intValue": str(status)}}
        return {
            "traceId": trace,
            "spanId": secrets.token_hex(8),
            "parentSpanId": parent,
            "traceState": self.tracestate(request) if parent else "",
            "name": f"{request.method} {request.path}",
            "kind": 2,
            "startTimeUnixNano": str(begun),
            "endTimeUnixNano": str(time.time_ns()),
            "attributes": [attribute],
            "status": {"code": 2} if error else {},
        }

    def parent(self, request: Request) -> tuple[str, str] | None:
        """Return the trace and span id of a valid traceparent (W3C Trace Context)."""
        values = request.values("traceparent")
        if len(values) != 1:
            return None
        form = "([0-9a-f]{2})-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-[0-9a-f]{2}(-.*)?"
        found = re.fullmatch(form, values[0])
        if found is None or found[1] == "ff" or (found[1] == "00" and found[4]):
            return None
        return found[2], found[3]

    def tracestate(self, request: Request) -> str:
        """Return the caller's tracestate."""
        return ",".join(request.values("tracestate"))
