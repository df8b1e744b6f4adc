"""Faults of the errors and of the JSON reader."""

# ruff: noqa: D102 (a method is explained where it is right; its class says what is wrong here)

from __future__ import annotations

import json
from typing import Any

from tinyllm.conformance.selftest.engine import Engine, Job
from tinyllm.conformance.selftest.fault import caught_by
from tinyllm.conformance.selftest.faults.rejects import RULES
from tinyllm.conformance.selftest.heads import Request
from tinyllm.conformance.selftest.httpd import Answer, Malformed, Refused

# What expects an error of the exact v0 shape, and so fails with each fault of that shape.
EXACT = (
    "v0.errors.bad_request",
    "v0.json.refused",
    "v0.json.not_object",
    "v0.fields.model",
    "v0.fields.prompt",
    "v0.fields.max_tokens",
    "v0.fields.temperature",
    "v0.fields.seed",
    "v0.fields.stream",
    "v0.fields.order",
)
# What expects an error object.
SHAPE = (
    "v0.errors.not_found_shape",
    "v0.errors.method_shape",
    "v0.http.length_required",
    "v0.http.body_too_large",
    "v0.http.answer_survives",
    "v0.http.huge_length",
    "v0.http.head_too_large",
    "v0.http.transfer_coding",
)
# What expects 400 in the error's shape for a broken head.
REJECTS = tuple(f"v0.reject.{name}" for name, _ in RULES)


def _of_the_body(refused: Refused) -> bool:
    """Whether an error is about what the body says, not about the head."""
    return refused.status == 400 and not isinstance(refused, Malformed)


@caught_by("v0.errors.shape", "v0.errors.members", shared=(*EXACT, *SHAPE, *REJECTS))
class ErrorIsAString(Engine):
    """The error is a string, not an object."""

    def error_value(self, refused: Refused) -> object:
        return refused.message


@caught_by(
    "v0.errors.content_type",
    "v0.errors.shape",
    "v0.errors.members",
    "v0.errors.not_found_shape",
    shared=(*EXACT, *SHAPE, *REJECTS),
)
class ErrorsAsHtml(Engine):
    """Errors are a framework's HTML page."""

    def refusal(self, refused: Refused, request: Request) -> Answer:
        answer = super().refusal(refused, request)
        answer.body = f"<html><h1>{refused.message}</h1></html>".encode()
        answer.content_type = "text/html"
        return answer


@caught_by("v0.errors.members", shared=EXACT)
class ErrorWithoutParam(Engine):
    """The error object has no param."""

    def error_members(self, refused: Refused) -> dict[str, Any]:
        return {k: v for k, v in super().error_members(refused).items() if k != "param"}


@caught_by("v0.errors.status", shared=(*EXACT, "v0.json.depth"))
class ErrorWith200(Engine):
    """A bad body is answered 200 with an error in it."""

    def error_status(self, refused: Refused) -> int:
        return 200 if _of_the_body(refused) else refused.status


@caught_by("v0.errors.bad_request", shared=EXACT)
class Status422(Engine):
    """A bad body is 422, as some frameworks have it."""

    def error_status(self, refused: Refused) -> int:
        return 422 if _of_the_body(refused) else refused.status


@caught_by("v0.errors.not_found", shared=("v0.http.pipelining",))
class EveryPathIsKnown(Engine):
    """An unknown path gets 400."""

    def error_status(self, refused: Refused) -> int:
        return 400 if refused.status == 404 else refused.status


@caught_by("v0.errors.not_found_shape")
class NotFoundIsBare(Engine):
    """The 404's body is {"detail": "Not Found"}."""

    def refusal(self, refused: Refused, request: Request) -> Answer:
        answer = super().refusal(refused, request)
        answer.body = b'{"detail":"Not Found"}' if refused.status == 404 else answer.body
        return answer


@caught_by("v0.errors.method", "v0.healthz.method")
class NoAllow(Engine):
    """405 is sent without Allow."""

    def refusal(self, refused: Refused, request: Request) -> Answer:
        refused.allow = ""
        return super().refusal(refused, request)


@caught_by("v0.errors.method_shape")
class MethodErrorIsBare(Engine):
    """The 405's body is {"detail": "Method Not Allowed"}."""

    def refusal(self, refused: Refused, request: Request) -> Answer:
        answer = super().refusal(refused, request)
        answer.body = b'{"detail":"Method Not Allowed"}' if refused.status == 405 else answer.body
        return answer


@caught_by("v0.json.refused")
class TakesNan(Engine):
    """NaN and Infinity are read as numbers, and refused as a bad temperature."""

    def read_json(self, body: bytes) -> object:
        return (
            json.loads(body) if b"NaN" in body or b"Infinity" in body else super().read_json(body)
        )


@caught_by("v0.json.refused")
class GuessesTheEncoding(Engine):
    """UTF-16 and a byte order mark are understood, as json.loads does with bytes."""

    def decode_body(self, body: bytes) -> str:
        return body.decode(json.detect_encoding(body))


@caught_by("v0.json.not_object", "v0.errors.status")
class ArrayTakesTheServerDown(Engine):
    """A body that is no object raises, and is answered 500."""

    def parse(self, body: bytes) -> Job:
        if not isinstance(self.read_json(body), dict):
            raise Refused(500, "AttributeError")
        return super().parse(body)


@caught_by("v0.json.depth")
class DeepTextIsTooMuch(Engine):
    """A deep text overflows the reader, and is answered 500."""

    def parse(self, body: bytes) -> Job:
        if self.depth(body) > 64:
            raise Refused(500, "RecursionError")
        return super().parse(body)


@caught_by("v0.json.escapes")
class PairsNotJoined(Engine):
    """Escapes of a surrogate pair are taken for two characters."""

    def read_json(self, body: bytes) -> object:
        halves = body.replace(b"\\ud83d\\ude00", b"\\ufffd\\ufffd")
        return super().read_json(halves)


@caught_by("v0.json.white_space")
class NoWhiteSpace(Engine):
    """White space other than spaces is refused."""

    def read_json(self, body: bytes) -> object:
        if b"\t" in body:
            raise Refused(400, "the body is not JSON: a tab")
        return super().read_json(body)


@caught_by("v0.json.last_member")
class FirstMemberWins(Engine):
    """Of two members of one name the first counts."""

    def read_json(self, body: bytes) -> object:
        value = super().read_json(body)
        if not isinstance(value, dict):
            return value
        members = json.loads(body, object_pairs_hook=lambda pairs: pairs)
        return dict(reversed(members)) if len(members) != len(value) else value
