"""Traces that arrive in parts: when they count as whole, and how many are kept."""

from __future__ import annotations

from tinyllm.tracing.receiver import store
from tinyllm.tracing.receiver.received import ReceivedSpan
from tinyllm.tracing.receiver.store import TraceStore


def span(trace_id: str, span_id: str = "1") -> ReceivedSpan:
    return ReceivedSpan(trace_id, span_id, "", "n", "s", 1, 2)


def taken(traces: TraceStore, now: float) -> dict[str, list[str]]:
    return {trace.trace_id: list(trace.spans) for trace in traces.take_settled(now, quiet=1.0)}


def test_a_trace_is_taken_when_it_has_been_quiet() -> None:
    traces = TraceStore(10)
    traces.add([span("a", "1")], now=0.0)
    assert taken(traces, 0.5) == {}
    traces.add([span("a", "2")], now=0.6)
    assert taken(traces, 1.5) == {}
    assert taken(traces, 1.6) == {"a": ["1", "2"]}
    assert taken(traces, 9.0) == {}


def test_a_late_span_makes_its_trace_whole_again() -> None:
    traces = TraceStore(10)
    traces.add([span("a", "1")], now=0.0)
    assert taken(traces, 1.0) == {"a": ["1"]}
    traces.add([span("a", "2")], now=5.0)
    assert taken(traces, 6.0) == {"a": ["1", "2"]}


def test_the_oldest_trace_is_forgotten_first() -> None:
    traces = TraceStore(2)
    traces.add([span("a"), span("b")], now=0.0)
    traces.add([span("a", "2")], now=1.0)  # b is now the one that changed longest ago
    traces.add([span("c")], now=2.0)
    assert [trace.trace_id for trace in traces.last()] == ["a", "c"]
    assert traces.take_untold() == 1
    assert traces.take_untold() == 0


def test_forgetting_a_trace_that_was_taken_is_no_loss() -> None:
    traces = TraceStore(1)
    traces.add([span("a")], now=0.0)
    taken(traces, 1.0)
    traces.add([span("b")], now=1.0)
    assert traces.take_untold() == 0


def test_spans_of_one_trace_are_bounded_and_repeats_counted() -> None:
    traces = TraceStore(1)
    count = store.MAX_SPANS_PER_TRACE + 5
    traces.add([span("a", str(number)) for number in range(count)], now=0.0)
    traces.add([span("a", "0")], now=0.0)
    (trace,) = traces.last()
    assert (len(trace.spans), trace.left_out, trace.repeated) == (count - 5, 5, 1)


def test_what_is_taken_does_not_change_any_more() -> None:
    traces = TraceStore(1)
    traces.add([span("a", "1")], now=0.0)
    (before,) = traces.take_settled(1.0, 1.0)
    traces.add([span("a", "2")], now=1.0)
    assert list(before.spans) == ["1"]
