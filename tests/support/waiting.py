"""Waiting for what another process does: asked again and again; only a failure meets the bound."""

from __future__ import annotations

import time
from collections.abc import Callable

from support.wire import TIMEOUT, Address, connect, get, parse_reply, read_all


def wait_until(condition: Callable[[], bool], what: str, timeout: float = TIMEOUT) -> None:
    """Ask until it holds; AssertionError that says what did not come."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"still waiting: {what}"
        time.sleep(0.01)


def health(address: Address) -> int:
    """The status of GET /healthz; 0 when nobody answers."""
    try:
        with connect(address) as connection:
            connection.sendall(get("/healthz"))
            return parse_reply(read_all(connection)).status
    except (OSError, AssertionError):
        return 0
