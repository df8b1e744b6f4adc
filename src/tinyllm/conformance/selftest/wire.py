"""A small, deliberately good `wire` server, for the self-test to break."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from urllib.parse import parse_qsl

from tinyllm.conformance.selftest.heads import Request
from tinyllm.conformance.selftest.httpd import Answer, HttpServer, Refused
from tinyllm.conformance.selftest.stream import Stream
from tinyllm.conformance.strictjson import has_lone_surrogate

ALLOWED = {"/health": "GET", "/count": "GET", "/echo": "POST"}


class Wire(HttpServer):
    """The three routes of the wire specification."""

    HEAD_TOO_LARGE = 413
    TRANSFER_CODING = 400

    def respond(self, request: Request, stream: Stream, keep: bool) -> bool:
        """Answer a request; /count is a stream, which always closes."""
        if self.route(request) != "/count":
            return super().respond(request, stream, keep)
        count, delay = self.arguments(request)
        stream.write(self.head_bytes(200, self.stream_fields()))
        self.send_events(stream, count, delay)
        return False

    def route(self, request: Request) -> str:
        """Return the path of the route. Raises Refused for none, or for the wrong method."""
        allowed = ALLOWED.get(request.path)
        if allowed is None:
            raise Refused(404, f"no such path: {request.path}")
        if request.method != allowed:
            raise Refused(405, f"{request.path} allows {allowed}", allow=allowed)
        return request.path

    def answer(self, request: Request) -> Answer:
        """Answer /health and /echo."""
        if request.path == "/health":
            return Answer(200, self.health_body())
        text = self.text_of(request.body)
        return Answer(200, self.echo_body(text).encode())

    def health_body(self) -> bytes:
        """Return the body of /health."""
        return b'{"ok":true}'

    def echo_body(self, text: str) -> str:
        """Return the body of /echo."""
        return f'{{"text":{self.quote(text)},"bytes":{self.count_bytes(text)}}}'

    def quote(self, text: str) -> str:
        """Return a JSON string."""
        return json.dumps(text, ensure_ascii=False)

    def count_bytes(self, text: str) -> int:
        """Return the text's length in UTF-8."""
        return len(text.encode())

    def text_of(self, body: bytes) -> str:
        """Return the body's text member. Raises Refused."""

        def constant(name: str) -> None:
            raise ValueError(f"{name} is not JSON")

        try:
            value = json.loads(body.decode("utf-8"), parse_constant=constant)
        except (ValueError, RecursionError) as error:
            raise Refused(400, f"the body is not JSON: {error}") from None
        if not self.has_text(value) or has_lone_surrogate(value):
            raise Refused(400, "the body holds no string named text")
        return str(value["text"])

    def has_text(self, value: object) -> bool:
        """Whether the value is an object with a string named text."""
        return isinstance(value, dict) and isinstance(value.get("text"), str)

    def arguments(self, request: Request) -> tuple[int, int]:
        """Return n and delay_ms. Raises Refused."""
        given = dict(parse_qsl(request.query, keep_blank_values=True))
        return self.number(given, "n", 3, 1000), self.number(given, "delay_ms", 0, 5000)

    def number(self, given: dict[str, str], name: str, default: int, most: int) -> int:
        """Return one argument. Raises Refused."""
        if name not in given:
            return default
        if not re.fullmatch("[0-9]{1,9}", given[name]) or int(given[name]) > most:
            raise Refused(400, f"{name} must be a number from 0 to {most}")
        return int(given[name])

    def stream_fields(self) -> list[tuple[str, str]]:
        """Return the fields of a stream's head."""
        return [
            ("Content-Type", "text/event-stream"),
            ("Cache-Control", "no-cache"),
            ("Connection", "close"),
        ]

    def send_events(self, stream: Stream, count: int, delay: int) -> None:
        """Send each event when it is due."""
        for event in self.events(count, delay):
            stream.write(event)

    def events(self, count: int, delay: int) -> Iterator[bytes]:
        """Yield the events, in their time."""
        for number in range(count):
            if number:
                time.sleep(delay / 1000)
            yield self.event(f'{{"i":{number}}}')
        yield self.event("[DONE]")

    def event(self, payload: str) -> bytes:
        """Return one event's bytes."""
        return f"data: {payload}\n\n".encode()

    def refusal(self, refused: Refused, request: Request) -> Answer:
        """Return {"error": "<message>"}."""
        allow = [("Allow", refused.allow)] if refused.allow else []
        return Answer(refused.status, self.error_body(refused), allow)

    def error_body(self, refused: Refused) -> bytes:
        """Return an error's body."""
        return json.dumps({"error": refused.message}).encode()
