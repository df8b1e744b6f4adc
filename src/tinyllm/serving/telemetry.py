"""From an exchange to the facts of a span; OpenTelemetry's names for them are for tracing."""

from __future__ import annotations

from typing import Final

from tinyllm.serving.exchange import Ended, Exchange
from tinyllm.tracing import CompletionSpan

NANOSECONDS: Final = 1_000_000_000


def completion_span(exchange: Exchange) -> CompletionSpan:
    """Return the span of a completion request, answered or not (CONTRACT, point 19)."""
    span = CompletionSpan(
        exchange.started_unix_nano,
        int(exchange.duration * NANOSECONDS),
        exchange.context,
        exchange.method,
        exchange.status or None,
        exchange.request_id,
    )
    wanted = exchange.completion
    if wanted is not None:
        span.model = wanted.model
        span.max_tokens = wanted.max_tokens
        span.temperature = wanted.temperature
        span.stream = wanted.stream
        span.seed = exchange.seed
        span.response_id = exchange.completion_id
        span.input_tokens = exchange.prompt_tokens
        span.output_tokens = exchange.completion_tokens
    if exchange.first_token is not None:
        span.first_token_ns = int(exchange.first_token * NANOSECONDS)
    request = exchange.request
    if request is not None:
        span.host = request.header("host")
        span.user_agent = request.header("user-agent")
        span.http_version = request.version
    if exchange.ended is not Ended.COMPLETED:
        span.error = exchange.error_type or exchange.ended.value
    elif wanted is not None and exchange.status == 200:
        span.finish_reason = "length"
    return span
