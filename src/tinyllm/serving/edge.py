"""The connections of one listening port, and what they share.

An edge belongs to one event loop. It makes connections, counts them, watches their deadlines
with one timer for all (a timer each would cost more than a small answer), and lets them end
when the server stops. Its clock is the loop's. What a request means is not its business:
`dispatch` knows.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Final

from tinyllm.engine import Engine
from tinyllm.serving.connection import Connection, Phase
from tinyllm.serving.exchange import Ended, Exchange
from tinyllm.serving.limits import Limits
from tinyllm.serving.responses import Pending, Response
from tinyllm.serving.transport import Acceptor
from tinyllm.wire import Request

# Clients beyond the capacity that are told so at the same time; further ones are just closed.
REFUSED_AT_ONCE: Final = 256
LOOKS_PER_DEADLINE: Final = 8  # a deadline is late by an eighth of the shortest one at most
LONGEST_LOOK: Final = 0.5  # seconds
SHORTEST_LOOK: Final = 0.01
# About what ends in one round of a busy loop. A client alone, who asks at once again, would wait
# for its last request to be told of: 10 us of 46, if it has to share a core with the server.
TOLD_TOGETHER: Final = 16
TOLD_WITHIN: Final = 0.05  # seconds

logger = logging.getLogger("tinyllm.serving")


class Edge:
    """What the connections of one port have in common."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        dispatch: Callable[[Request, Exchange], Response | Pending],
        finished: Callable[[Sequence[Exchange]], None],
        limits: Limits,
    ) -> None:
        self.now = loop.time  # seconds
        self.call_soon = loop.call_soon
        self.dispatch = dispatch
        self.limits = limits
        self.engine = Engine(loop.call_soon)
        self.keeps_connections = limits.keep_alive
        self.draining = False
        self._finished = finished
        self._untold: list[Exchange] = []
        self._telling: asyncio.TimerHandle | None = None
        self._loop = loop
        self._connections: set[Connection] = set()
        self._refused: set[Connection] = set()  # those of them that were one too many
        self._acceptor: Acceptor | None = None
        self._empty = asyncio.Event()
        self._look: asyncio.TimerHandle | None = None

    def listen(self, listener: socket.socket) -> None:
        """Accept connections from a bound socket."""
        self._acceptor = Acceptor(self._loop, listener, self.connect)
        self.watch()

    def connect(self) -> Connection:
        """Return the protocol of a new connection."""
        return Connection(self)

    def admit(self, connection: Connection) -> bool:
        """Count a connection in; False when it is one too many."""
        self._connections.add(connection)
        if len(self._connections) - len(self._refused) <= self.limits.max_connections:
            return True
        self._refused.add(connection)
        if len(self._refused) > REFUSED_AT_ONCE:
            connection.stop(Ended.SHUT_DOWN)
        return False

    def finished(self, exchange: Exchange) -> None:
        """Note that an exchange is over; it is told of with others, after their answers."""
        self._untold.append(exchange)
        if len(self._untold) == TOLD_TOGETHER:
            self.call_soon(self._tell)
        elif self._telling is None:
            self._telling = self._loop.call_later(TOLD_WITHIN, self._tell_in_time)

    def _tell_in_time(self) -> None:
        self._telling = None
        self.call_soon(self._tell)  # after what is still to be sent in this round

    def _tell(self) -> None:
        """Tell of what is over, together."""
        untold, self._untold = self._untold, []
        if not untold:
            return
        try:
            self._finished(untold)
        except Exception:  # noqa: BLE001 - which of them it is, is found out now
            for exchange in untold:
                self._tell_of(exchange)

    def _tell_of(self, exchange: Exchange) -> None:
        """Tell of one exchange. A fault in the telling is not the client's problem."""
        try:
            self._finished([exchange])
        except Exception:
            logger.exception("request %s was answered, but could not be told of", exchange.path)

    def forget(self, connection: Connection) -> None:
        """Count a connection out."""
        self._connections.discard(connection)
        self._refused.discard(connection)
        if not self._connections:
            self._empty.set()

    def watch(self) -> None:
        """Let every connection whose deadline has passed do what it asks for; then again later."""
        pause = min(LONGEST_LOOK, max(SHORTEST_LOOK, self.limits.shortest / LOOKS_PER_DEADLINE))
        self._look = self._loop.call_later(pause, self.watch)
        now = self.now()
        for connection in [c for c in self._connections if c.deadline < now]:
            connection.expire()

    def stop_accepting(self) -> None:
        """Accept no more, and keep no connection beyond the answer it waits for."""
        self.draining = True
        self.keeps_connections = False
        if self._acceptor is not None:
            self._acceptor.close()
        for connection in list(self._connections):
            connection.close_if_idle()

    async def drain(self, grace: float, hurry: asyncio.Event) -> None:
        """Accept no more, let answers under way end for `grace` seconds, then break them off.

        `hurry` ends the waiting at once.
        """
        self.stop_accepting()
        if self._connections:
            self._empty.clear()
            await _first_of(self._empty, hurry, timeout=grace)
        for connection in list(self._connections):
            connection.stop(Ended.SHUT_DOWN)
        if self._look is not None:
            self._look.cancel()
        await asyncio.sleep(0)  # the transports tell their connections in the loop's next round
        if self._telling is not None:
            self._telling.cancel()
        self._tell()

    @property
    def busy(self) -> int:
        """How many answers are under way."""
        return sum(c.phase is Phase.ANSWERING for c in self._connections)


async def _first_of(*events: asyncio.Event, timeout: float) -> None:
    """Wait until one of the events is set, or for `timeout` seconds."""
    tasks = [asyncio.ensure_future(event.wait()) for event in events]
    await asyncio.wait(tasks, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
