"""From an exchange to the facts of a span; OpenTelemetry's names for them are for tracing."""

from __future__ import annotations

from tinyllm.serving.exchange import COMPLETED, Exchange
from tinyllm.tracing import Facts


def completion_span(exchange: Exchange) -> Facts:
    """Return the facts of a completion request's span, answered or not (CONTRACT, point 19)."""
    wanted, request = exchange.completion, exchange.request
    error = None
    if exchange.ended is not COMPLETED:
        error = exchange.error_type or str(exchange.ended)
    context = exchange.context
    # In the order of CompletionSpan, whose names would cost more than all the rest.
    return (
        exchange.started_unix_nano,
        exchange.method,
        exchange.path,
        "1.1" if request is None else request.version,
        None if request is None else request.header("host"),
        None,
        exchange.status or None,
        error,
        None if wanted is None else wanted.stream,
        None if wanted is None else wanted.temperature,
        "length" if wanted is not None and error is None and exchange.status == 200 else None,
        exchange.duration_ns,
        exchange.first_token_ns,
        None if context is None else context[:],
        exchange.request_id,
        None if request is None else request.header("user-agent"),
        None,
        None if wanted is None else exchange.completion_id,
        None if wanted is None else wanted.model,
        None if wanted is None else wanted.max_tokens,
        None if wanted is None else exchange.seed,
        None if wanted is None else exchange.prompt_tokens,
        None if wanted is None else exchange.completion_tokens,
    )
