"""Faults of the `wire` server's routes."""

# ruff: noqa: D102 (a method is explained where it is right; its class says what is wrong here)

from __future__ import annotations

import json
import re
import time

from tinyllm.conformance.selftest.fault import caught_by
from tinyllm.conformance.selftest.heads import Request
from tinyllm.conformance.selftest.httpd import Answer, Refused
from tinyllm.conformance.selftest.stream import Stream
from tinyllm.conformance.selftest.wire import Wire


@caught_by("wire.health.bytes")
class HealthWithSpace(Wire):
    """/health answers with a space in its JSON."""

    def health_body(self) -> bytes:
        return b'{"ok": true}'


@caught_by("wire.not_found")
class TrailingSlash(Wire):
    """A slash at the end of a path does not matter."""

    def route(self, request: Request) -> str:
        request.path = request.path.rstrip("/") or "/"
        return super().route(request)


@caught_by("wire.method")
class WrongAllow(Wire):
    """Allow names the method that was tried."""

    def refusal(self, refused: Refused, request: Request) -> Answer:
        refused.allow = request.method if refused.allow else ""
        return super().refusal(refused, request)


@caught_by("wire.count.arguments")
class NumbersAsPythonReadsThem(Wire):
    """Arguments are read by int(): signs, spaces and underscores are let pass."""

    def number(self, given: dict[str, str], name: str, default: int, most: int) -> int:
        try:
            value = int(given.get(name, default))
        except ValueError:
            raise Refused(400, f"{name} is no number") from None
        return super().number({name: str(value)}, name, default, most)


@caught_by(
    "wire.errors.shape",
    shared=("wire.echo.bad_json", "wire.echo.wrong_value", "wire.count.arguments"),
)
class ErrorsAsText(Wire):
    """Errors are plain text."""

    def refusal(self, refused: Refused, request: Request) -> Answer:
        answer = super().refusal(refused, request)
        answer.body, answer.content_type = refused.message.encode(), "text/plain"
        return answer


@caught_by("wire.echo.text", shared=("wire.echo.escapes",))
class QuotesByHand(Wire):
    """A JSON string is the text between quotes."""

    def quote(self, text: str) -> str:
        return f'"{text}"'


@caught_by("wire.echo.escapes", shared=("wire.echo.bad_json",))
class HalvesOfPairs(Wire):
    """Each escape of a surrogate pair is taken for a character of its own."""

    def text_of(self, body: bytes) -> str:
        pattern = rb"(?i)\\u(d[89a-f][0-9a-f]{2})"
        return super().text_of(re.sub(pattern, rb"\\ufffd", body))


@caught_by("wire.echo.members")
class OnlyText(Wire):
    """The object may hold nothing but text."""

    def has_text(self, value: object) -> bool:
        return super().has_text(value) and isinstance(value, dict) and len(value) == 1


@caught_by(
    "wire.echo.content_length",
    shared=(
        *("wire.echo.text", "wire.echo.escapes"),
        *("wire.http.keep_alive_kept", "wire.http.pipelining"),
    ),
)
class WireLengthInCharacters(Wire):
    """Content-Length counts characters."""

    def announced(self, body: bytes) -> int:
        return len(body.decode("utf-8"))


@caught_by("wire.echo.content_length", shared=("wire.echo.text", "wire.echo.escapes"))
class BytesAreCharacters(Wire):
    """`bytes` counts characters."""

    def count_bytes(self, text: str) -> int:
        return len(text)


@caught_by("wire.echo.bad_json")
class TakesNanAndHalves(Wire):
    """NaN and half a surrogate pair are read, as json.loads does."""

    def text_of(self, body: bytes) -> str:
        try:
            text = json.loads(body)["text"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return super().text_of(body)
        return (
            text.encode("utf-8", "replace").decode()
            if isinstance(text, str)
            else super().text_of(body)
        )


@caught_by("wire.echo.wrong_value")
class AnyTextWillDo(Wire):
    """A text that is a number is made a string."""

    def has_text(self, value: object) -> bool:
        return isinstance(value, dict) and isinstance(value.get("text"), str | int)


@caught_by(
    "wire.count.bytes",
    shared=("wire.count.defaults", "wire.count.limits", "wire.count.as_made"),
)
class WireOneNewline(Wire):
    """An event ends with one newline."""

    def event(self, payload: str) -> bytes:
        return f"data: {payload}\n".encode()


@caught_by("wire.count.defaults")
class NoDefaults(Wire):
    """n must be given."""

    def number(self, given: dict[str, str], name: str, default: int, most: int) -> int:
        if name == "n" and name not in given and "delay_ms" not in given:
            raise Refused(400, "n is missing")
        return super().number(given, name, default, most)


@caught_by("wire.count.limits")
class AtLeastOne(Wire):
    """n 0 is refused."""

    def number(self, given: dict[str, str], name: str, default: int, most: int) -> int:
        if given.get(name) == "0":
            raise Refused(400, f"{name} must be at least 1")
        return super().number(given, name, default, most)


@caught_by("wire.count.as_made", shared=("wire.count.aside",))
class WireFlushesAtTheEnd(Wire):
    """The events are collected and sent together."""

    def respond(self, request: Request, stream: Stream, keep: bool) -> bool:
        if self.route(request) == "/count":
            count, delay = self.arguments(request)
            events = b"".join(self.events(count, delay))
            stream.write(self.head_bytes(200, self.stream_fields()) + events)
            return False
        return super().respond(request, stream, keep)


@caught_by("wire.count.aside")
class StreamsHoldTheServer(Wire):
    """While a stream pauses, other requests wait."""

    streaming = False

    def send_events(self, stream: Stream, count: int, delay: int) -> None:
        self.streaming = True
        try:
            super().send_events(stream, count, delay)
        finally:
            self.streaming = False

    def answer(self, request: Request) -> Answer:
        while self.streaming:
            time.sleep(0.001)
        return super().answer(request)
