"""What the server knows of one completion request, in its own words.

The server makes a `CompletionSpan` and hands it over; it knows nothing of OpenTelemetry's
names, which are in the table of attributes.py. A fact that is None is not known. Prompts and
generated text are never recorded.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tinyllm.tracing.traceparent import TraceContext

# A CompletionSpan, or the plain tuple of its facts (its `parent` plain too), as a server offers it
# and as it comes to another process: the names cost a request a microsecond, and restoring them
# as much as half of the span's text.
Facts = tuple[Any, ...]

CLIENT_GONE = "client_gone"  # CompletionSpan.error of a request whose client went away

MAX_TEXT_LENGTH = 256  # characters kept of a text that a client chooses

DEFAULT_HTTP_PORT = 80  # RFC 9110, section 4.2.1

# RFC 9110, section 9, and PATCH (RFC 5789): the methods that the HTTP conventions call known.
KNOWN_METHODS = frozenset(
    ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")
)


class CompletionSpan(NamedTuple):
    """The facts of one completion request.

    Times after the start are nanoseconds of the monotonic clock since the start. Of the integers
    only the seed may be too large for int64. What a server answers again and again in the same way
    comes first, then what differs: encoding.py keeps a text per combination of the former.
    """

    start_unix_nano: int  # wall clock when the request's head was read
    method: str = "POST"
    path: str = "/v1/completions"  # of the matched route
    http_version: str = "1.1"
    host: str | None = None  # the Host field as it was sent
    client_address: str | None = None
    status: int | None = None  # of the status line that was written; None if none was
    error: str | None = None  # why the answer is not whole: CLIENT_GONE, an exception's class
    stream: bool | None = None
    temperature: float | None = None
    finish_reason: str | None = None
    duration_ns: int = 0  # until the answer's last byte was handed to the socket, or the end
    first_token_ns: int | None = None  # when the first token was written
    parent: TraceContext | None = None
    request_id: str | None = None  # the X-Request-Id that was echoed
    user_agent: str | None = None
    query: str | None = None  # of the target, without "?"
    response_id: str | None = None  # the completion's id, "cmpl-..."
    model: str | None = None
    max_tokens: int | None = None
    seed: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None

    def plain(self) -> Facts:
        """Return the facts without names, the parent's too."""
        place = self._fields.index("parent")
        parent = self.parent
        return self[:] if parent is None else (*self[:place], parent[:], *self[place + 1 :])

    @classmethod
    def of(cls, facts: Facts) -> CompletionSpan:
        """Return the span of these facts, with names."""
        record = cls._make(facts)
        parent = record.parent
        return record if parent is None else record._replace(parent=TraceContext._make(parent))

    @property
    def known_method(self) -> str:
        """The method, or `_OTHER` if it is none that HTTP defines."""
        return self.method if self.method in KNOWN_METHODS else "_OTHER"

    @property
    def unknown_method(self) -> str | None:
        """The method as it was sent, if it is none that HTTP defines."""
        return None if self.method in KNOWN_METHODS else self.method

    @property
    def name(self) -> str:
        """The span's name: method and route, or `HTTP` for a method that HTTP does not define."""
        return f"{self.method if self.method in KNOWN_METHODS else 'HTTP'} {self.path}"

    @property
    def error_type(self) -> str | None:
        """What makes this an error by the HTTP conventions ("Status"), or None if nothing does.

        For a server a 4xx is never an error; a 5xx is, and so is an answer that was cut off.
        """
        status = self.status or 0
        if 400 <= status < 500:
            return None
        return str(status) if status >= 500 and self.error is None else self.error

    @property
    def abandoned(self) -> bool | None:
        """True if the client went away before its answer was whole."""
        return True if self.error == CLIENT_GONE else None

    @property
    def streamed(self) -> bool:
        """Whether the answer was a stream that ended well."""
        return bool(self.stream) and self.status == 200 and self.error is None

    @property
    def time_to_first_token(self) -> float | None:
        """Seconds from the start to the first token."""
        return None if self.first_token_ns is None else self.first_token_ns / 10**9

    @property
    def server_address(self) -> str | None:
        """The host that the client named."""
        return None if self.host is None else _host_and_port(self.host)[0]

    @property
    def server_port(self) -> int | None:
        """The port that the client named, or 80, which stands for none."""
        return None if self.host is None else _host_and_port(self.host)[1]

    @property
    def finish_reasons(self) -> list[str] | None:
        """One reason per choice; there is one choice."""
        return None if self.finish_reason is None else [self.finish_reason]

    @property
    def request_ids(self) -> list[str] | None:
        """A captured header's values are a list by the conventions."""
        return None if self.request_id is None else [self.request_id]

    # What is the same for every request

    @property
    def scheme(self) -> str:
        """What the request came by."""
        return "http"

    @property
    def operation(self) -> str:
        """What the conventions call a completion."""
        return "text_completion"

    @property
    def provider(self) -> str:
        """Who generates the tokens."""
        return "tinyllm"


def bounded(facts: Facts) -> Facts:
    """Return the facts, without names, with a client's own texts cut to MAX_TEXT_LENGTH."""
    record = CompletionSpan._make(facts)
    cut = record._replace(
        model=_cut(record.model),
        user_agent=_cut(record.user_agent),
        query=_cut(record.query),
        host=_cut(record.host),
        method=record.method[:MAX_TEXT_LENGTH],
    )
    return cut.plain()


def _cut(text: str | None) -> str | None:
    return None if text is None else text[:MAX_TEXT_LENGTH]


def _host_and_port(host: str) -> tuple[str, int | None]:
    """Split a Host field (RFC 9110, section 7.2); an IPv6 address loses its brackets."""
    name, colon, port = host.rpartition(":")
    if not colon or "]" in port:  # no port: "example.com", "[::1]"
        name, port = host, ""
    if not port:
        return name.strip("[]"), DEFAULT_HTTP_PORT
    # The HTTP parser checked the field; whatever else gets here has an address and no port.
    is_port = port.isascii() and port.isdigit() and len(port) <= 5
    return name.strip("[]"), int(port) if is_port else None
