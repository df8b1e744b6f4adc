"""The health port: a thread of its own, so that it speaks for the process even when the loop works.

It is the same connection code on a small event loop; only the table of paths is shorter.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Final

from tinyllm.serving.edge import Edge
from tinyllm.serving.exchange import Exchange
from tinyllm.serving.limits import Limits
from tinyllm.serving.responses import Response
from tinyllm.serving.routes import dispatch_health
from tinyllm.wire import Request

SHUTTING_DOWN: Final = "the server is shutting down"
HEALTH_LIMITS = Limits(head_timeout=5.0, body_timeout=5.0, max_connections=256, keep_alive=False)


class HealthPort:
    """Answers GET /healthz on a socket until it is closed."""

    def __init__(self, listener: socket.socket, unavailable: Callable[[], str]) -> None:
        self._listener = listener
        self._unavailable = unavailable  # says why new requests are not welcome; "" if they are
        self._stop = asyncio.Event()
        self._loop = asyncio.SelectorEventLoop()
        self._thread = threading.Thread(target=self._run, name="health-port", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop answering and close the socket."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        self._loop.run_until_complete(self._live())
        self._loop.close()

    async def _live(self) -> None:
        edge = Edge(self._loop, self._dispatch, _unlogged, HEALTH_LIMITS)
        edge.listen(self._listener)
        await self._stop.wait()
        await edge.drain(0, self._stop)

    def _dispatch(self, request: Request, exchange: Exchange) -> Response:
        return dispatch_health(request, self._unavailable(), exchange)


def _unlogged(exchanges: Sequence[Exchange]) -> None:
    """Probes come every second; a log of them would hide what matters."""
