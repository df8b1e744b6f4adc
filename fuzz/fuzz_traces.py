"""Any body gives spans or a ValueError, and any spans a printable tree; headers never raise.

python fuzz/fuzz_traces.py DIR     writes seeds
"""

from __future__ import annotations

import sys
from pathlib import Path

from tinyllm.tracing import otlp_json, parent_from_headers, parse_traceparent
from tinyllm.tracing.receiver.received import ReceivedSpan, decode_json
from tinyllm.tracing.receiver.store import Trace
from tinyllm.tracing.receiver.tree import MIN_WIDTH, Style, columns, render
from tinyllm.tracing.span import Span, SpanEvent
from tinyllm.tracing.traceparent import parse_tracestate

HEX = frozenset("0123456789abcdef")


def check(data: bytes) -> None:
    """The bytes are the body of an export, and the values of two headers, one per line."""
    check_headers(data.decode("latin-1"))
    try:
        spans = decode_json(data)
    except ValueError:
        return
    for span in spans:
        assert set(span.trace_id + span.span_id + span.parent_id) <= HEX
        assert len(span.trace_id) in (0, 32)
    check_tree(spans)


def check_tree(spans: list[ReceivedSpan]) -> None:
    """Every span of a trace is drawn once, within the terminal, in characters that stay put."""
    trace = Trace("t" * 32)
    for span in spans:
        if span.rejection is None:
            trace.add(span)
    if not trace.spans:
        return
    lines = render(trace, Style(width=MIN_WIDTH))
    assert all(columns(line) <= MIN_WIDTH for line in lines[1:])
    assert all(line.isprintable() for line in lines)
    drawn = sum(line.endswith((" s", " ms", " µs", " ns")) for line in lines[1:])
    assert drawn >= len(trace.spans)


def check_headers(text: str) -> None:
    """A context is whole or none; what is kept of a tracestate reads back as itself."""
    first, _, rest = text.partition("\n")
    parent = parent_from_headers([first], [rest])
    assert (parent is None) == (parse_traceparent(first) is None)
    if parent is not None:
        assert parse_traceparent(f"00-{parent.trace_id}-{parent.span_id}-{parent.flags:02x}")
        assert parse_tracestate([parent.trace_state]) == parent.trace_state
    assert parse_tracestate([kept := parse_tracestate([first])]) == kept


def seeds() -> list[bytes]:
    """A real body, and a header with what follows it."""
    span = Span("1" * 32, "2" * 16, "3" * 16, "n", 1, 9, [("k", ["v"]), ("i", 1), ("d", 0.5)])
    span.events = [SpanEvent("e", 2)]
    traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\na=1,t@s=2"
    return [otlp_json("s", span, span).encode(), traceparent.encode()]


def main(folder: str) -> None:
    """Write the seeds."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds()):
        (Path(folder) / f"{number}").write_bytes(seed)


if __name__ == "__main__":
    main(*sys.argv[1:])
