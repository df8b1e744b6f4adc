"""Faults of the plain completion, its usage, and /healthz."""

# ruff: noqa: D102 (a method is explained where it is right; its class says what is wrong here)

from __future__ import annotations

import time
from typing import Any

from tinyllm.conformance.selftest.engine import Engine, Job
from tinyllm.conformance.selftest.fault import caught_by
from tinyllm.conformance.selftest.heads import Request
from tinyllm.conformance.selftest.httpd import Answer, Refused

# Cases that read a plain answer with whatever text it holds.
ANY_TEXT = (
    *("v0.plain.*", "v0.usage.*", "v0.seed*", "v0.greedy.*", "v0.temperature", "v0.checkpoint.*"),
    *("v0.stream.*", "v0.json.*", "v0.fields.*", "v0.crowd.*", "v0.http.keep_alive_kept"),
)


@caught_by("v0.plain.shape", "v0.plain.exact_members")
class NoObject(Engine):
    """The completion has no member named object."""

    def completion(self, job: Job) -> dict[str, Any]:
        return {k: v for k, v in super().completion(job).items() if k != "object"}


@caught_by("v0.plain.exact_members")
class OneMoreMember(Engine):
    """The completion has a member that v0 does not know."""

    def completion(self, job: Job) -> dict[str, Any]:
        return {**super().completion(job), "system_fingerprint": "fp"}


@caught_by("v0.plain.content_type")
class PlainAsText(Engine):
    """Completions are announced as text/plain."""

    def answer_bytes(self, answer: Answer, request: Request, keep: bool) -> bytes:
        if answer.status == 200 and request.path != "/healthz":
            answer.content_type = "text/plain; charset=utf-8"
        return super().answer_bytes(answer, request, keep)


@caught_by(
    "v0.plain.content_length",
    shared=("v0.plain.json_text", "v0.stream.equals_nonstream", "v0.checkpoint.greedy"),
    may=ANY_TEXT,
)
class LengthInCharacters(Engine):
    """Content-Length counts characters: multi-byte answers are cut off (mutant s14)."""

    def announced(self, body: bytes) -> int:
        return len(body.decode("utf-8"))


@caught_by("v0.plain.has_length", shared=("v0.http.keep_alive_offered",))
class EndsByClose(Engine):
    """Completions are sent without Content-Length, ended by the close."""

    def keeps(self, request: Request) -> bool:
        return False

    def answer_bytes(self, answer: Answer, request: Request, keep: bool) -> bytes:
        raw = super().answer_bytes(answer, request, keep)
        if answer.status != 200 or request.path == "/healthz":
            return raw
        head, _, body = raw.partition(b"\r\n\r\n")
        lines = [line for line in head.split(b"\r\n") if not line.startswith(b"Content-Length")]
        return b"\r\n".join(lines) + b"\r\n\r\n" + body


@caught_by("v0.plain.model_echo")
class ModelStripped(Engine):
    """The model's name is echoed without its control characters."""

    def opening(self, job: Job) -> dict[str, Any]:
        kept = "".join(c for c in job.model if c.isprintable())
        return {**super().opening(job), "model": kept}


@caught_by("v0.plain.unique_ids", "v0.stream.ids_differ", shared=("v0.crowd.own_answers",))
class IdByPrompt(Engine):
    """The id is made from the request alone: equal requests have one id."""

    def opening(self, job: Job) -> dict[str, Any]:
        return {**super().opening(job), "id": "cmpl-1"}


@caught_by("v0.plain.created")
class CreatedSinceBoot(Engine):
    """`created` is a clock that started with the machine."""

    def opening(self, job: Job) -> dict[str, Any]:
        return {**super().opening(job), "created": int(time.monotonic())}


@caught_by("v0.usage.adds_up", shared=("v0.usage.bytes",))
class TotalWithoutPrompt(Engine):
    """total_tokens leaves the prompt out."""

    def usage(self, job: Job) -> dict[str, int]:
        return {**super().usage(job), "total_tokens": job.max_tokens}


@caught_by(
    "v0.usage.max_tokens",
    shared=(
        "v0.usage.bytes",
        "v0.usage.default_length",
        "v0.usage.longest",
        "v0.stream.equals_nonstream",
        "v0.stream.equals_seeded",
        "v0.crowd.own_answers",
        "v0.checkpoint.greedy",
        "v0.checkpoint.ties",
        "v0.checkpoint.seeded",
        "v0.json.last_member",
        "v0.fields.null_max_tokens",
    ),
)
class OneTokenMore(Engine):
    """A token more than max_tokens is generated in plain answers."""

    def completion(self, job: Job) -> dict[str, Any]:
        job.max_tokens += 1
        return super().completion(job)


@caught_by("v0.usage.bytes")
class UsageInCharacters(Engine):
    """The prompt is counted in characters (mutant s13)."""

    def usage(self, job: Job) -> dict[str, int]:
        prompt = len(job.prompt)
        return {
            **super().usage(job),
            "prompt_tokens": prompt,
            "total_tokens": prompt + job.max_tokens,
        }


@caught_by("v0.usage.default_length", "v0.fields.null_max_tokens")
class DefaultOf20(Engine):
    """Without max_tokens, 20 tokens are generated."""

    def default_length(self) -> int:
        return 20


@caught_by("v0.usage.longest", "v0.fields.max_tokens")
class AtMost2048(Engine):
    """max_tokens over 2048 is refused."""

    def valid(self, name: str, value: dict[str, Any]) -> bool:
        small = name != "max_tokens" or not isinstance(value.get(name), int) or value[name] <= 2048
        return small and super().valid(name, value)


class _Health(Engine):
    def health_status(self, request: Request) -> int:
        """Return the status of /healthz."""
        return 200

    def answer(self, request: Request) -> Answer:
        return Answer(self.health_status(request), b"{}", self.extra(request))


@caught_by(
    "v0.healthz.api_port",
    "v0.healthz.health_port",
    shared=("v0.healthz.query", "v0.healthz.busy", "v0.http.head_at_limit"),
)
class Unhealthy(_Health):
    """/healthz answers 500."""

    def health_status(self, request: Request) -> int:
        return 500


@caught_by("v0.healthz.query")
class QueryInPath(Engine):
    """The route is compared with the target, query and all."""

    def route(self, request: Request) -> str:
        if request.query:
            raise Refused(404, "no such path")
        return super().route(request)


@caught_by("v0.healthz.head")
class HeadHasBody(Engine):
    """HEAD is answered with GET's body."""

    def answer_bytes(self, answer: Answer, request: Request, keep: bool) -> bytes:
        request.method = "GET" if request.path == "/healthz" else request.method
        return super().answer_bytes(answer, request, keep)


@caught_by("v0.healthz.method")
class HealthTakesPost(Engine):
    """Any method is good for /healthz."""

    def route(self, request: Request) -> str:
        return request.path if request.path == "/healthz" else super().route(request)
