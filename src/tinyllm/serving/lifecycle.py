"""A server's life, in the order it is lived: start, serve, drain, flush (CONTRACT, point 21).

SIGTERM and SIGINT only set a flag. Then the server accepts no more, answers under way get
`grace` seconds, the health port says 503 meanwhile, spans and log lines are flushed within a
bound, and the process ends with 0. A second signal ends the waiting.
"""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
from collections.abc import Callable
from typing import Final

from tinyllm.serving.edge import Edge
from tinyllm.serving.health import SHUTTING_DOWN, HealthPort
from tinyllm.serving.process import STOP_SIGNALS, end_on_signals
from tinyllm.serving.server import Server

GRACE_SECONDS: Final = 10.0
FLUSH_SECONDS: Final = 2.0  # for spans, and for log lines, after the last answer


def run(
    server: Server,
    listener: socket.socket,
    health_listener: socket.socket | None = None,
    *,
    grace: float = GRACE_SECONDS,
    started: Callable[[], None] | None = None,
    lifeline: socket.socket | None = None,
    plain_loop: bool = False,
) -> None:
    """Serve until a signal, then drain. `started` is called once connections are accepted.

    The loop is uvloop's where that exists, or asyncio's with `plain_loop`. The end of file of a
    `lifeline` stops the server like a signal: its supervisor is no more.
    """
    loop_factory = asyncio.new_event_loop if plain_loop else _loop_factory()
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(_live(server, listener, health_listener, grace, started, lifeline))
    server.close(FLUSH_SECONDS)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return uvloop's loop where it exists: a kept-alive request costs it a fifteenth less."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return loop_factory


async def _live(
    server: Server,
    listener: socket.socket,
    health_listener: socket.socket | None,
    grace: float,
    started: Callable[[], None] | None,
    lifeline: socket.socket | None,
) -> None:
    loop = asyncio.get_running_loop()
    stop, hurry = asyncio.Event(), asyncio.Event()

    def on_signal() -> None:
        (hurry if stop.is_set() else stop).set()

    if threading.current_thread() is threading.main_thread():
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, on_signal)
    if lifeline is not None:
        loop.add_reader(lifeline, _on_end_of_file, loop, lifeline, stop)
    edge = Edge(loop, server.dispatch, server.finished, server.limits)
    edge.listen(listener)
    health = health_listener and HealthPort(health_listener, lambda: server.unavailable)
    # What lives as long as the server is out of the collector's sight from here on.
    gc.collect()
    gc.freeze()
    if started is not None:
        started()
    threading.Thread(target=server.warm_up, name="warm-up", daemon=True).start()
    await stop.wait()

    server.unavailable = SHUTTING_DOWN
    await edge.drain(grace, hurry)
    if health:
        health.close()
    for number in STOP_SIGNALS:
        loop.remove_signal_handler(number)
    end_on_signals()


def _on_end_of_file(
    loop: asyncio.AbstractEventLoop, lifeline: socket.socket, stop: asyncio.Event
) -> None:
    """The supervisor never writes: a lifeline that can be read has ended."""
    loop.remove_reader(lifeline)
    stop.set()
