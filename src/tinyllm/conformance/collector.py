"""A small OTLP/HTTP collector, so that the spans a server exports can be graded too.

The server under test is started with OTEL_EXPORTER_OTLP_ENDPOINT pointing here. Spans arrive in
batches, after the answers, so a case asks for the span it wants and waits for it.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

MAX_BODY_BYTES: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Post:
    """One export request as it came."""

    path: str
    content_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Span:
    """One span; attributes are by key, each an AnyValue object such as {"intValue": "200"}."""

    fields: dict[str, Any]
    attributes: dict[str, Any]
    resource: dict[str, Any]  # the attributes of the resource it was exported under


class Collector:
    """Receives POST /v1/traces on loopback; `delay` makes it a slow collector."""

    def __init__(self, port: int = 0) -> None:
        """Listen on this port. Raises OSError."""
        self.delay = threading.Event()
        self.posts: list[Post] = []
        self.spans: list[Span] = []  # of all posts; a post that is no OTLP JSON holds none
        self._arrived = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    @property
    def url(self) -> str:
        """What OTEL_EXPORTER_OTLP_ENDPOINT must be."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def wait_for(self, wanted: Callable[[Span], bool], timeout: float) -> Span | None:
        """Return the first span that is wanted, as soon as it is there, or None in time."""
        deadline = time.monotonic() + timeout
        with self._arrived:
            while True:
                found = next(filter(wanted, self.spans), None)
                left = deadline - time.monotonic()
                if found is not None or left <= 0:
                    return found
                self._arrived.wait(left)

    def _receive(self, post: Post) -> None:
        spans = _spans(post.body)
        with self._arrived:
            self.posts.append(post)
            self.spans += spans
            self._arrived.notify_all()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 30

            def do_POST(self) -> None:
                announced = self.headers.get("Content-Length") or ""
                length = int(announced) if re.fullmatch("[0-9]{1,9}", announced) else 0
                body = self.rfile.read(min(length, MAX_BODY_BYTES))
                if collector.delay.is_set():
                    time.sleep(0.5)
                collector._receive(Post(self.path, self.headers.get("Content-Type", ""), body))
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing: the report is the runner's only output."""

        return Handler


def _spans(body: bytes) -> list[Span]:
    try:
        resources = json.loads(body)["resourceSpans"]
        return [
            Span(dict(span), _by_key(span), _by_key(resource.get("resource", {})))
            for resource in resources
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []


def _by_key(holder: dict[str, Any]) -> dict[str, Any]:
    return {item["key"]: item["value"] for item in holder.get("attributes", [])}
