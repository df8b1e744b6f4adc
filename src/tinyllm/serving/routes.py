"""Method and path to handler. The table is the API; everything else is 404 or 405."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tinyllm.serving.completions import create_completion
from tinyllm.serving.errors import INVALID_REQUEST, ApiError
from tinyllm.serving.exchange import Exchange
from tinyllm.serving.responses import Pending, Response
from tinyllm.wire import Request

if TYPE_CHECKING:
    from tinyllm.serving.server import Server

COMPLETIONS: Final = "/v1/completions"
HEALTHZ: Final = "/healthz"
OPENAPI: Final = "/openapi.json"

# What a path allows; a 405 names it in Allow (RFC 9110, section 10.2.1).
METHODS: Final = {COMPLETIONS: ("POST",), HEALTHZ: ("GET", "HEAD"), OPENAPI: ("GET", "HEAD")}

HEALTHY: Final = b'{"ok":true}'
# Engine spec, section 2.7: echoed when it is 1 to 128 visible ASCII characters.
REQUEST_ID: Final = re.compile(r"[\x21-\x7e]{1,128}")


def dispatch(request: Request, server: Server, exchange: Exchange) -> Response | Pending:
    """Return the answer to a request, or raise the ApiError that is its answer."""
    path = _note_request(request, exchange)
    check_method(request, path)
    if path == COMPLETIONS:
        return create_completion(request, server, exchange)
    if path == HEALTHZ:
        return health(server.unavailable, exchange)
    return Response(200, openapi_document(), exchange.echoed)


def dispatch_health(request: Request, unavailable: str, exchange: Exchange) -> Response:
    """Return the health port's answer: it knows one path. `unavailable` is as in `health`."""
    path = _note_request(request, exchange)
    if path != HEALTHZ:
        raise _not_found(request, path)
    check_method(request, path)
    return health(unavailable, exchange)


def check_method(request: Request, path: str) -> None:
    """Raise the 404 of an unknown path or the 405 of a known one."""
    allowed = METHODS.get(path)
    if allowed is None:
        raise _not_found(request, path)
    if request.method not in allowed:
        raise ApiError(
            405,
            INVALID_REQUEST,
            f"{path} does not allow {request.method}; it allows {', '.join(allowed)}",
            headers=(("Allow", ", ".join(allowed)),),
        )


def health(unavailable: str, exchange: Exchange) -> Response:
    """Return 200 while new requests are welcome; the 503 that says why they are not."""
    if unavailable:
        raise ApiError.unavailable(unavailable)
    return Response(200, HEALTHY, exchange.echoed)


@cache
def openapi_document() -> bytes:
    """Return the contract as JSON, made from docs/openapi/openai-subset.v0.yaml."""
    return Path(__file__).with_name("openapi.v0.json").read_bytes()


def _not_found(request: Request, path: str) -> ApiError:
    shown = path if len(path) <= 80 else f"{path[:80]}..."
    return ApiError(404, INVALID_REQUEST, f"no such path: {request.method} {shown}")


def _note_request(request: Request, exchange: Exchange) -> str:
    """Put into the exchange what every answer, log line and span needs; return the path."""
    exchange.request = request
    exchange.method = request.method
    exchange.path = path = request.path
    request_id = request.header("x-request-id")
    if request_id is not None and REQUEST_ID.fullmatch(request_id):
        exchange.request_id = request_id
        exchange.echoed = (("X-Request-Id", request_id),)
    return path
