"""The spans that the server exports, for a server that exports to the runner (--otlp-port).

Each case sends one request that is its own and waits for that request's span. A span of a new
trace cannot be told by its ids, which the server makes up; it is told by the X-Request-Id that
was not used before, or else by its time: nobody but the runner is asking.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable

from tinyllm.conformance.case import Need, case
from tinyllm.conformance.collector import Collector, Span
from tinyllm.conformance.evidence import CaseSkipped, check, fail
from tinyllm.conformance.session import COMPLETIONS, Session

PARENT = "00f067aa0ba902b7"
TRACE_ID = re.compile(r"(?!0{32})[0-9a-f]{32}")
SPAN_ID = re.compile(r"(?!0{16})[0-9a-f]{16}")

INVALID_PARENTS = (
    "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
    "00-{trace}-0000000000000000-01",
    "ff-{trace}-00f067aa0ba902b7-01",
    "00-{TRACE}-00f067aa0ba902b7-01",
    "00-{trace}-00f067aa0ba902b7",
    "00-{trace}-00f067aa0ba902b7-01-more",
    "{trace}",
)


def _collector(session: Session) -> Collector:
    if session.settings.collector is None:
        raise CaseSkipped(f"needs {Need.COLLECTOR.value}")
    return session.settings.collector


def _ask(session: Session, fields: list[tuple[str, str]], body: bytes | None = None) -> int:
    """Send a completion request with these fields and return when, in Unix nanoseconds."""
    begun = time.time_ns()
    asked = session.completion_body(max_tokens=2, temperature=0) if body is None else body
    session.send(session.request("POST", COMPLETIONS, asked, fields))
    return begun


def _wait(session: Session, wanted: Callable[[Span], bool], what: str) -> Span:
    """Return the span that is wanted; none in time breaks the case."""
    found = _collector(session).wait_for(wanted, session.settings.timeout)
    if found is None:
        fail(f"no span {what} came within {session.settings.timeout:g} s", session.exchanges[-1])
    return found


def _new_trace(session: Session) -> str:
    _collector(session)
    return secrets.token_hex(16)


def _in_trace(trace: str) -> Callable[[Span], bool]:
    return lambda span: span.fields.get("traceId") == trace


def _since(begun: int) -> Callable[[Span], bool]:
    """Match a span that began after `begun`, give or take the clock's steps."""
    return lambda span: int(span.fields.get("startTimeUnixNano", 0)) >= begun - 1_000_000


@case(
    "v0.trace.child",
    rule="Engine specification, section 2.8; W3C Trace Context, section 3.2",
    why="Without the parent the engine is a tree of its own, and a slow request cannot be followed"
    " from the gateway into it.",
    need=Need.COLLECTOR,
)
def child(session: Session) -> None:
    """With a traceparent, the span has its trace id, its span id as parent, and a new own id."""
    trace = _new_trace(session)
    _ask(session, [("traceparent", f"00-{trace}-{PARENT}-01")])
    fields = _wait(session, _in_trace(trace), f"of trace {trace}").fields
    mark = session.exchanges[-1]
    parent, own = fields.get("parentSpanId"), str(fields.get("spanId"))
    check(parent == PARENT, f"parentSpanId {parent!r}, not {PARENT!r}", mark)
    check(SPAN_ID.fullmatch(own) is not None and own != PARENT, f"spanId {own!r}", mark)


@case(
    "v0.trace.unsampled",
    rule="Contract, point 19: the sampled flag is ignored unless a sampler is set",
    why="One request, one span: a flag of the caller's must not hide it.",
    need=Need.COLLECTOR,
)
def unsampled(session: Session) -> None:
    """Flags 00 make no difference."""
    trace = _new_trace(session)
    _ask(session, [("traceparent", f"00-{trace}-{PARENT}-00")])
    _wait(session, _in_trace(trace), f"of trace {trace}")


@case(
    "v0.trace.later_version",
    rule="W3C Trace Context, section 4.3: a higher version is read by its first four fields",
    why="Callers of a later version stay connected.",
    need=Need.COLLECTOR,
)
def later_version(session: Session) -> None:
    """Version cc with more after a dash is the parent like any other."""
    trace = _new_trace(session)
    _ask(session, [("traceparent", f"cc-{trace}-{PARENT}-01-what-the-future-brings")])
    _wait(session, _in_trace(trace), f"of trace {trace}")


@case(
    "v0.trace.new_root",
    rule="Engine specification, section 2.8: otherwise a new trace with a random non-zero id",
    why="Back ends drop spans whose ids are zero.",
    need=Need.COLLECTOR,
)
def new_root(session: Session) -> None:
    """Without a traceparent, the span has a trace id of its own and no parent."""
    _collector(session)
    begun = _ask(session, [])
    _is_root(session, _wait(session, _since(begun), "of the request"))


@case(
    "v0.trace.invalid_parent",
    rule="Engine specification, section 2.8; contract, point 18: an invalid one starts a new trace",
    why="A broken header that is passed on gives spans that back ends discard.",
    need=Need.COLLECTOR,
)
def invalid_parent(session: Session) -> None:
    """Zero ids, version ff, upper case, and missing or extra fields start a new trace; so do two
    traceparent headers.
    """
    for value in INVALID_PARENTS:
        trace = _new_trace(session)
        header = value.format(trace=trace, TRACE=trace.upper().replace("0", "A"))
        begun = _ask(session, [("traceparent", header)])
        _is_root(session, _wait(session, _since(begun), f"of the request with {header}"), trace)
    trace = _new_trace(session)
    begun = _ask(session, [("traceparent", f"00-{trace}-{PARENT}-01")] * 2)
    _is_root(session, _wait(session, _since(begun), "of the request with two of them"), trace)


def _is_root(session: Session, span: Span, refused: str = "") -> None:
    trace, mark = str(span.fields.get("traceId")), session.exchanges[-1]
    check(TRACE_ID.fullmatch(trace) is not None, f"traceId {trace!r}", mark)
    check(trace.lower() != refused, "the invalid header's trace id was used", mark)
    parent = span.fields.get("parentSpanId")
    check(not parent, f"parentSpanId {parent!r} of a new trace", mark)


@case(
    "v0.trace.span",
    rule="Engine specification, section 2.8: OTLP/HTTP JSON",
    why="A field of another type is dropped, or the whole batch with it.",
    need=Need.COLLECTOR,
)
def span_fields(session: Session) -> None:
    """The span is posted to /v1/traces as JSON: kind 2, times as strings of nanoseconds in order,
    http.response.status_code 200 as a string, the resource's service.name.
    """
    trace = _new_trace(session)
    begun = _ask(session, [("traceparent", f"00-{trace}-{PARENT}-01")])
    ended = time.time_ns()
    span = _wait(session, _in_trace(trace), f"of trace {trace}")
    fields, mark = span.fields, session.exchanges[-1]
    name = f"POST {COMPLETIONS}"
    check(fields.get("name") == name, f"name {fields.get('name')!r}, not {name!r}", mark)
    check(fields.get("kind") == 2, f"kind {fields.get('kind')!r}, not 2 (SERVER)", mark)
    start, end = fields.get("startTimeUnixNano"), fields.get("endTimeUnixNano")
    check(isinstance(start, str) and isinstance(end, str), "times are no strings", mark)
    slack = 50_000_000
    inside = begun - slack <= int(str(start)) <= int(str(end)) <= ended + slack
    check(inside, f"times {start} to {end}, asked from {begun} to {ended}", mark)
    status = span.attributes.get("http.response.status_code")
    check(status == {"intValue": "200"}, f"http.response.status_code {status}", mark)
    service = span.resource.get("service.name")
    check(bool(service), "the resource has no service.name", mark)
    post = next(p for p in _collector(session).posts if trace.encode() in p.body)
    check(post.path == "/v1/traces", f"posted to {post.path}", mark)
    check(post.content_type.startswith("application/json"), f"as {post.content_type}", mark)


@case(
    "v0.trace.tracestate",
    rule="W3C Trace Context, section 3.3; contract, point 18: it is carried into the span",
    why="Vendors keep their own position in the trace there.",
    need=Need.COLLECTOR,
)
def tracestate(session: Session) -> None:
    """The tracestate of a valid parent is in the span."""
    trace = _new_trace(session)
    state = "vendor=a1,other=b2"
    _ask(session, [("traceparent", f"00-{trace}-{PARENT}-01"), ("tracestate", state)])
    got = _wait(session, _in_trace(trace), f"of trace {trace}").fields.get("traceState")
    check(got == state, f"traceState {got!r}, not {state!r}", session.exchanges[-1])


@case(
    "v0.trace.refused",
    rule="Contract, point 19: every completion request has its span, also one answered 4xx",
    why="The requests that fail are those one looks for.",
    need=Need.COLLECTOR,
)
def refused(session: Session) -> None:
    """A request that is answered 400 has a span with that status."""
    trace = _new_trace(session)
    _ask(session, [("traceparent", f"00-{trace}-{PARENT}-01")], b"{")
    span = _wait(session, _in_trace(trace), f"of trace {trace}")
    status = span.attributes.get("http.response.status_code")
    check(status == {"intValue": "400"}, f"status {status}", session.exchanges[-1])


@case(
    "v0.trace.abandoned",
    rule="Contract, points 17 and 19: a request whose client left has its span, and ends early",
    why="The span's end shows whether generation stopped when its reader did.",
    need=Need.COLLECTOR,
)
def abandoned(session: Session) -> None:
    """A stream that its client leaves has a span with status ERROR (2)."""
    trace = _new_trace(session)
    body = session.completion_body(**session.heavy_stream(), stream=True)
    connection = session.connect()
    parent = [("traceparent", f"00-{trace}-{PARENT}-01")]
    connection.send(session.request("POST", COMPLETIONS, body, parent))
    connection.receive()
    connection.abort()
    span = _wait(session, _in_trace(trace), f"of trace {trace}")
    status = span.fields.get("status")
    failed = isinstance(status, dict) and status.get("code") == 2
    check(failed, f"status {status}, not ERROR", session.exchanges[-1])


@case(
    "v0.trace.slow_collector",
    rule="Engine specification, section 2.8: a slow collector never delays an answer",
    why="Observing a request must not make it slower.",
    need=Need.COLLECTOR,
)
def slow_collector(session: Session) -> None:
    """While the collector takes half a second per post, answers come as fast as ever."""
    collector = _collector(session)
    collector.delay.set()
    try:
        begun = time.monotonic()
        for _ in range(8):
            session.complete(max_tokens=1)
        took = time.monotonic() - begun
    finally:
        collector.delay.clear()
    check(took < 2.0, f"8 answers took {took:.1f} s", session.exchanges[-1])
