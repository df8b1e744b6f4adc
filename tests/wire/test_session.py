"""A session of the `wire` server in memory: streams for the socket, no clock but the test's."""

from __future__ import annotations

import io

import pytest

from tinyllm.wire import CONTINUE, ClientGone, RequestTimeout
from tinyllm.wire.session import Session, Timeouts

TIMEOUTS = Timeouts(head=1.0, body=2.0, idle=3.0)
KEPT = b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n"
ECHO = b'POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\n{"text":"x"}'


class Client(io.RawIOBase):
    """A client's bytes, then silence: an error instead of the read that would block."""

    def __init__(self, sent: bytes, then: Exception | None = None) -> None:
        self._sent = io.BytesIO(sent)
        self._then = then

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        received = self._sent.read(len(buffer))
        if not received and self._then is not None:
            raise self._then
        buffer[: len(received)] = received
        return len(received)


def serve(sent: bytes, then: Exception | None = None) -> tuple[bytes, list[float]]:
    """Return what the client got, and the times that its reads were given."""
    got, allowed = io.BytesIO(), list[float]()
    reader = io.BufferedReader(Client(sent, then))
    Session(reader, got, allowed.append, TIMEOUTS).serve()
    return got.getvalue(), allowed


def test_head_and_body_and_the_wait_between_requests_have_their_own_time() -> None:
    kept = ECHO.replace(b"\r\n\r\n", b"\r\nConnection: keep-alive\r\n\r\n", 1)
    got, allowed = serve(kept + KEPT)
    assert got.count(b"HTTP/1.1 200 OK\r\n") == 2
    # head, body, idle: then the next one's head, and the wait that the client's close ends.
    assert allowed == [1.0, 2.0, 3.0, 1.0, 3.0]


@pytest.mark.parametrize("sent", [b"", KEPT[:-1], ECHO[:-1]], ids=["nothing", "head", "body"])
def test_late_client_is_answered_408(sent: bytes) -> None:
    got, _ = serve(sent, RequestTimeout("the request did not arrive in time"))
    assert got.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert got.endswith(b'{"error":"the request did not arrive in time"}')


@pytest.mark.parametrize(
    "error", [RequestTimeout("late"), ClientGone("reset")], ids=["late", "gone"]
)
def test_kept_client_that_says_nothing_more_gets_nothing_more(error: Exception) -> None:
    got, _ = serve(KEPT, error)
    assert got.count(b"HTTP/1.1") == 1
    assert got.endswith(b'{"ok":true}')


def test_broken_connection_gets_nothing() -> None:
    assert serve(KEPT[:-1], ClientGone("reset"))[0] == b""


def test_client_that_waits_is_asked_for_its_body_once() -> None:
    got, _ = serve(ECHO.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n", 1))
    assert got.startswith(CONTINUE + b"HTTP/1.1 200 OK\r\n")
    assert got.count(CONTINUE) == 1


def test_old_client_never_waits() -> None:
    request = ECHO.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n", 1)
    got, _ = serve(request.replace(b"HTTP/1.1", b"HTTP/1.0"))
    assert got.startswith(b"HTTP/1.1 200 OK\r\n")
