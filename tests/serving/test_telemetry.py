"""The facts of a span are those of its exchange, each in its place."""

from __future__ import annotations

from tinyllm.serving.exchange import COMPLETED, Ended, Exchange
from tinyllm.serving.schema import CompletionRequest
from tinyllm.serving.telemetry import completion_span
from tinyllm.tracing import CompletionSpan, TraceContext
from tinyllm.wire import Request

CONTEXT = TraceContext("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", 1, "vendor=a")


def exchange(ended: Ended) -> Exchange:
    some = Exchange(None)
    some.started_unix_nano = 1_791_518_626_123_456_789
    some.method, some.path, some.status = "POST", "/v1/completions", 200
    some.duration_ns, some.first_token_ns, some.ended = 2_500_000, 1_500_000, ended
    return some


def test_every_fact_of_an_answered_request_is_in_its_place() -> None:
    some = exchange(COMPLETED)
    fields = [
        (b"Host", b"engine:8000"),
        (b"User-Agent", b"curl/8.5.0"),
        (b"traceparent", b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        (b"tracestate", b"vendor=a"),
    ]
    some.request = Request("POST", "/v1/completions", fields, version="1.0")
    some.request_id = "req-7"
    some.completion = CompletionRequest("tracer", "prompt", 4, 0.5, None, stream=True)
    some.completion_id, some.seed = "cmpl-9d", 42
    some.prompt_tokens, some.completion_tokens = 6, 4
    assert CompletionSpan.of(completion_span(some)) == CompletionSpan(
        some.started_unix_nano,
        method="POST",
        path="/v1/completions",
        http_version="1.0",
        host="engine:8000",
        status=200,
        stream=True,
        temperature=0.5,
        finish_reason="length",
        duration_ns=2_500_000,
        first_token_ns=1_500_000,
        parent=CONTEXT,
        request_id="req-7",
        user_agent="curl/8.5.0",
        response_id="cmpl-9d",
        model="tracer",
        max_tokens=4,
        seed=42,
        input_tokens=6,
        output_tokens=4,
    )


def test_a_request_that_could_not_be_read_has_few_facts() -> None:
    some = exchange(Ended.CLIENT_GONE)
    some.status = 0
    assert CompletionSpan.of(completion_span(some)) == CompletionSpan(
        some.started_unix_nano,
        error="client_gone",
        duration_ns=2_500_000,
        first_token_ns=1_500_000,
    )
