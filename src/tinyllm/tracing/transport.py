"""One connection to a collector: a body goes out, and what the answer means comes back.

OTLP/HTTP (opentelemetry.io/docs/specs/otlp, "OTLP/HTTP Response") sorts answers in three:
accepted (2xx, perhaps with some spans rejected), worth another try (429, 502, 503, 504, and a
connection that fails), and refused for good (all else; a redirect too, for nobody asked us
to send spans elsewhere).

The connection is the standard library's and stays open between batches. One that the
collector closed meanwhile is noticed before it is used: a request written to it would fail
without a word on whether it was taken in. Every wait counts against the attempt's one deadline,
so that a collector that trickles its answer holds nothing up longer than one that is silent.
"""

from __future__ import annotations

import gzip
import http.client
import io
import select
import socket
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from tinyllm import __version__
from tinyllm.tracing.config import ExportConfig
from tinyllm.wire.jsontext import parse_json

RETRYABLE = frozenset((429, 502, 503, 504))  # OTLP, "Retryable Response Codes"
MAX_ANSWER_BYTES = 64 * 1024  # an answer is a small JSON object; the rest is not read
GZIP_LEVEL = 1  # spans repeat themselves: level 1 makes a tenth of them at three times the speed


@dataclass(frozen=True)
class Accepted:
    """The collector took the batch, all but `rejected` spans of it."""

    rejected: int = 0
    message: str = ""


@dataclass(frozen=True)
class Refused:
    """The collector will never take this batch."""

    reason: str


@dataclass(frozen=True)
class Unavailable:
    """Nothing was taken this time; `retry_after` seconds are the collector's own wish."""

    reason: str
    retry_after: float | None = None


Answer = Accepted | Refused | Unavailable


class Collector:
    """Posts bodies to one URL over one kept-alive connection. For one thread."""

    def __init__(self, config: ExportConfig) -> None:
        """Raise OSError (ssl.SSLError among them) if a certificate cannot be used."""
        url = urlsplit(config.endpoint)
        self._target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        self._gzip = config.gzip
        self._headers = {"User-Agent": f"tinyllm/{__version__}", **config.headers}
        self._headers["Content-Type"] = "application/json"
        if config.gzip:
            self._headers["Content-Encoding"] = "gzip"
        host = url.hostname or ""
        self._socket: _TimedSocket  # what `_connection.sock` is while it is open
        self._connection = (
            http.client.HTTPSConnection(host, url.port, context=tls_context(config))
            if url.scheme == "https"
            else http.client.HTTPConnection(host, url.port)
        )

    def post(self, body: Sequence[bytes], timeout: float) -> Answer:
        """Send a body, given in pieces, and return what the answer means, in `timeout` seconds."""
        if self._gzip:
            body = [gzip.compress(b"".join(body), GZIP_LEVEL)]
        headers = {**self._headers, "Content-Length": str(sum(map(len, body)))}
        try:
            connection = self._connected(_Deadline(timeout))
            connection.request("POST", self._target, body, headers)
            response = connection.getresponse()
            text = response.read(MAX_ANSWER_BYTES)
        except TimeoutError:
            self.close()
            return Unavailable(f"no whole answer within {timeout:g} s")
        except (OSError, http.client.HTTPException, UnicodeError) as problem:
            self.close()
            return Unavailable(_described(problem))
        if not response.isclosed():  # more answer than we read: the next one would start in it
            self.close()
        return _meaning(response, text)

    def close(self) -> None:
        """Close the connection; the next post opens a new one."""
        self._connection.close()

    def _connected(self, deadline: _Deadline) -> http.client.HTTPConnection:
        """Return the connection, open and counting against the deadline."""
        connection = self._connection
        if connection.sock is None or self._socket.is_stale():
            connection.close()
            connection.timeout = deadline.remaining()
            connection.connect()
            self._socket = connection.sock = _TimedSocket(connection.sock)
        self._socket.deadline = deadline
        return connection


class _Deadline:
    """A moment by which an attempt is over."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def remaining(self) -> float:
        """Return the seconds that are left; raise TimeoutError if none are."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


class _TimedSocket:
    """The part of a socket that http.client uses, each call bounded by the same deadline.

    A socket's own timeout starts anew with each byte that arrives.
    """

    deadline: _Deadline

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def sendall(self, data: bytes) -> None:
        self._sock.settimeout(self.deadline.remaining())
        self._sock.sendall(data)  # here the timeout is for the whole

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self._sock, self.deadline))

    def close(self) -> None:
        self._sock.close()

    def is_stale(self) -> bool:
        """Whether an idle connection has something to read: its end, or what nobody asked for."""
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        return bool(poll.poll(0))


class _TimedReader(io.RawIOBase):
    """What arrives on a socket until a deadline."""

    def __init__(self, sock: socket.socket, deadline: _Deadline) -> None:
        self._sock = sock
        self._raw = sock.makefile("rb", buffering=0)  # keeps the socket open until it is read
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int | None:  # type: ignore[override]
        self._sock.settimeout(self._deadline.remaining())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def tls_context(config: ExportConfig) -> ssl.SSLContext:
    """Return what https trusts and shows; raise OSError if a certificate cannot be used."""
    context = ssl.create_default_context(cafile=config.certificate)
    if config.client_certificate is not None:
        context.load_cert_chain(config.client_certificate, config.client_key)
    return context


def _meaning(response: http.client.HTTPResponse, text: bytes) -> Answer:
    if 200 <= response.status < 300:
        return _accepted(text)
    reason = f"HTTP {response.status}"
    if message := _message(text):
        reason += f": {message}"
    if response.status in RETRYABLE:
        return Unavailable(reason, retry_after(response.headers.get("Retry-After")))
    return Refused(reason)


def _accepted(text: bytes) -> Accepted:
    """Read ExportTraceServiceResponse; what is none of it means that all went well."""
    partial = _member(_json(text), "partialSuccess")
    count, message = _member(partial, "rejectedSpans"), _member(partial, "errorMessage")
    # int64 is a string in proto3's JSON, and a reader accepts the number too.
    digits = str(count) if isinstance(count, int | str) else ""
    rejected = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 20 else 0
    return Accepted(rejected, one_line(message) if isinstance(message, str) else "")


def _message(text: bytes) -> str:
    """Return what an error answer says: the message of google.rpc.Status, or its text."""
    message = _member(_json(text), "message")
    return one_line(message if isinstance(message, str) else text.decode("utf-8", "replace"))


def _json(text: bytes) -> object:
    try:
        return parse_json(text)
    except ValueError:
        return None


def _member(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, dict) else None


def one_line(text: str, limit: int = 200) -> str:
    """Return text from outside in a form that a log line can hold."""
    words = " ".join(text.split())
    return "".join(char if char.isprintable() else "?" for char in words)[:limit]


def retry_after(value: str | None) -> float | None:
    """Return the seconds that a Retry-After field asks to wait (RFC 9110, section 10.2.3).

    It is a number of seconds or a date; a date that has passed is 0, what is neither is None.
    """
    if value is None:
        return None
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:  # "-0000": a time of no known zone, which is UTC here
        moment = moment.replace(tzinfo=UTC)
    return max((moment - datetime.now(UTC)).total_seconds(), 0.0)


def _described(problem: Exception) -> str:
    if isinstance(problem, OSError) and problem.strerror:
        return one_line(problem.strerror)
    return one_line(f"{type(problem).__name__}: {problem}")
