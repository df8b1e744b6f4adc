"""What the `wire` server answers: three routes as functions, no sockets.

    GET /health                        {"ok":true}
    POST /echo {"text": "..."}         {"text":"...","bytes":<its length in UTF-8>}
    GET /count?n=3&delay_ms=0          n events {"i":<k>}, delay_ms apart, then [DONE]

A route returns the JSON of its answer, or, for a stream, the payloads of its events one by one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

from tinyllm.wire.errors import BadRequest, HttpError
from tinyllm.wire.jsontext import JsonError, dump_json, parse_json
from tinyllm.wire.message import Request

MAX_EVENTS, MAX_DELAY_MS = 1000, 5000

Answer = str | Iterator[str]
Route = Callable[[Request], Answer]


class NotFound(HttpError):
    """No route has this path."""

    status = 404


class MethodNotAllowed(HttpError):
    """The path has a route, but for another method, which is `allowed`."""

    status = 405

    def __init__(self, allowed: str) -> None:
        super().__init__(f"the method allowed here is {allowed}")
        self.allowed = allowed


def health(request: Request) -> Answer:
    """Say that the server is there."""
    return '{"ok":true}'


def echo(request: Request) -> Answer:
    """Return the text of a JSON body, and its length in UTF-8 bytes. Raises BadRequest."""
    try:
        body = parse_json(request.body)
    except JsonError as error:
        raise BadRequest(f"the body is not JSON: {error}") from None
    text = body.get("text") if isinstance(body, dict) else None
    if not isinstance(text, str):
        raise BadRequest('the body is not an object with a string "text"')
    return dump_json({"text": text, "bytes": len(text.encode())})


def count(request: Request) -> Answer:
    """Return n events, `delay_ms` apart, and [DONE]. Raises BadRequest."""
    events = _number(request, "n", 3, MAX_EVENTS)
    return _count(events, _number(request, "delay_ms", 0, MAX_DELAY_MS) / 1000)


def _count(events: int, delay_seconds: float) -> Iterator[str]:
    for i in range(events):
        if i:
            time.sleep(delay_seconds)
        yield dump_json({"i": i})
    yield "[DONE]"


def _number(request: Request, key: str, default: int, most: int) -> int:
    text = request.query(key)
    if text is None:
        return default
    digits = text.encode("ascii")  # which all targets are
    if re.fullmatch(rb"0*[0-9]{1,4}", digits) is None or int(digits[-4:]) > most:
        raise BadRequest(f"{key} is a number from 0 to {most}")
    return int(digits[-4:])


ROUTES: dict[str, tuple[str, Route]] = {
    "/health": ("GET", health),
    "/echo": ("POST", echo),
    "/count": ("GET", count),
}


def find_route(request: Request) -> Route:
    """Return the route of a request. Raises NotFound, MethodNotAllowed."""
    if request.path not in ROUTES:
        raise NotFound("there is nothing at this path")
    method, route = ROUTES[request.path]
    if request.method != method:
        raise MethodNotAllowed(method)
    return route
