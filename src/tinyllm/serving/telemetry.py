"""From an exchange to the facts of a span; OpenTelemetry's names for them are for tracing."""

from __future__ import annotations

from tinyllm.serving.exchange import COMPLETED, Exchange
from tinyllm.tracing import CompletionSpan, Facts, TraceContext, parent_from_headers
from tinyllm.wire import Request


def completion_span(exchange: Exchange) -> Facts:
    """Return the facts of a completion request's span, answered or not (CONTRACT, point 19)."""
    wanted, request = exchange.completion, exchange.request
    error = None
    if exchange.ended is not COMPLETED:
        error = exchange.error_type or str(exchange.ended)
    if wanted is None or request is None:
        return _refused(exchange, error)
    host, agent = request.first(b"host"), request.first(b"user-agent")
    context = _context(request)
    # In the order of CompletionSpan, whose names would cost more than all the rest.
    return (
        exchange.started_unix_nano,
        exchange.method,
        exchange.path,
        request.version,
        None if host is None else host.decode("latin-1"),
        None,
        exchange.status or None,
        error,
        wanted.stream,
        wanted.temperature,
        "length" if error is None and exchange.status == 200 else None,
        exchange.duration_ns,
        exchange.first_token_ns,
        None if context is None else context[:],
        exchange.request_id,
        None if agent is None else agent.decode("latin-1"),
        None,
        exchange.completion_id,
        wanted.model,
        wanted.max_tokens,
        exchange.seed,
        exchange.prompt_tokens,
        exchange.completion_tokens,
    )


def _refused(exchange: Exchange, error: str | None) -> CompletionSpan:
    """Return what is known of a request that asked for no completion, or could not be read."""
    span = CompletionSpan(
        exchange.started_unix_nano,
        exchange.method,
        exchange.path,
        status=exchange.status or None,
        error=error,
        duration_ns=exchange.duration_ns,
        first_token_ns=exchange.first_token_ns,
        request_id=exchange.request_id,
    )
    request = exchange.request
    if request is None:
        return span
    return span._replace(
        http_version=request.version,
        host=request.header("host"),
        parent=_context(request),
        user_agent=request.header("user-agent"),
    )


def _context(request: Request) -> TraceContext | None:
    """Return the caller's place in its trace; read only now, when nobody waits for the answer."""
    if request.first(b"traceparent") is None:
        return None
    return parent_from_headers(
        request.header_values("traceparent"), request.header_values("tracestate")
    )
