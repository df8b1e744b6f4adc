"""The spans that the server exports, for a server that exports to the runner (--otlp-port).

Exporters send in batches, some seconds apart. So the requests of all these cases are sent at
once, by the first of them, and each case then waits for its own spans. A span that continues a
trace is told by the trace's id; one that begins a new trace, whose ids the server makes up, by its
time: nobody but the runner is asking.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tinyllm.conformance.case import Need, case
from tinyllm.conformance.collector import Collector, Span
from tinyllm.conformance.evidence import CaseSkipped, Exchange, check, fail
from tinyllm.conformance.session import COMPLETIONS, Fields, Session

PARENT = "00f067aa0ba902b7"
STATE = "vendor=a1,other=b2"
TRACE_ID = re.compile(r"(?!0{32})[0-9a-f]{32}")
SPAN_ID = re.compile(r"(?!0{16})[0-9a-f]{16}")
PAUSE = 0.003  # seconds between two requests, so that their spans do not touch
SLACK_NANOS = 1_000_000  # the two clocks are one, read by two processes

# What may follow 00- and the trace id in a traceparent that must not be used; {t} is the trace id.
INVALID_PARENTS = (
    "00-{zero}-00f067aa0ba902b7-01",
    "00-{t}-0000000000000000-01",
    "ff-{t}-00f067aa0ba902b7-01",
    "00-{upper}-00f067aa0ba902b7-01",
    "00-{t}-00f067aa0ba902b7",
    "00-{t}-00f067aa0ba902b7-01-more",
    "{t}",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: the trace it named, when it was under way (Unix nanoseconds), its bytes."""

    trace: str
    begun: int
    ended: int
    exchange: Exchange

    def continues(self, span: Span) -> bool:
        """Whether the span is of the trace that was named."""
        return span.fields.get("traceId") == self.trace

    def began_then(self, span: Span) -> bool:
        """Whether the span began while this request was under way."""
        start = nanoseconds(span.fields.get("startTimeUnixNano"))
        return self.begun - SLACK_NANOS <= start <= self.ended + SLACK_NANOS


def nanoseconds(value: object) -> int:
    """Return a time as OTLP's JSON writes it, -1 for anything else."""
    return int(str(value)) if re.fullmatch("[0-9]{1,20}", str(value)) else -1


def _collector(session: Session) -> Collector:
    if session.settings.collector is None:
        raise CaseSkipped(f"needs {Need.COLLECTOR.value}")
    return session.settings.collector


def _asked(session: Session, name: str) -> list[Asked]:
    """Return the requests of one case; the first call sends those of all."""
    _collector(session)
    if "traces" not in session.shared:
        session.shared["traces"] = {what: ask(session) for what, ask in _REQUESTS.items()}
    requests: list[Asked] = session.shared["traces"][name]
    return requests


def _ask(session: Session, trace: str, fields: Fields, body: bytes | None = None) -> Asked:
    """Send one completion request with these fields."""
    sent = session.completion_body(max_tokens=2, temperature=0) if body is None else body
    raw = session.request("POST", COMPLETIONS, sent, fields)
    time.sleep(PAUSE)
    begun = time.time_ns()
    response = session.send(raw)
    return Asked(trace, begun, time.time_ns(), response.exchange)


def _in_trace(
    form: str = "00-{t}-" + PARENT + "-01", more: Fields = (), body: bytes | None = None
) -> Callable[[Session], list[Asked]]:
    """Return how to ask within a new trace."""

    def ask(session: Session) -> list[Asked]:
        trace = secrets.token_hex(16)
        fields = [("traceparent", form.format(t=trace)), *more]
        return [_ask(session, trace, fields, body)]

    return ask


def _without(session: Session) -> list[Asked]:
    return [_ask(session, "", [])]


def _invalid(session: Session) -> list[Asked]:
    asked = []
    for form in session.rows(INVALID_PARENTS):
        trace = secrets.token_hex(15) + "af"
        value = form.format(t=trace, zero="0" * 32, upper=trace.upper())
        asked.append(_ask(session, trace, [("traceparent", value)]))
    trace = secrets.token_hex(16)
    return [*asked, _ask(session, trace, [("traceparent", f"00-{trace}-{PARENT}-01")] * 2)]


def _left(session: Session) -> list[Asked]:
    """Ask for a long stream and leave after its first bytes."""
    trace, begun = secrets.token_hex(16), time.time_ns()
    body = session.completion_body(**session.heavy_stream(), stream=True)
    fields = [("traceparent", f"00-{trace}-{PARENT}-01")]
    connection = session.connect()
    connection.send(session.request("POST", COMPLETIONS, body, fields))
    connection.receive()
    connection.abort()
    return [Asked(trace, begun, time.time_ns(), connection.exchange)]


_REQUESTS: dict[str, Callable[[Session], list[Asked]]] = {
    "child": _in_trace(),
    "unsampled": _in_trace("00-{t}-" + PARENT + "-00"),
    "later": _in_trace("cc-{t}-" + PARENT + "-01-what-the-future-brings"),
    "root": _without,
    "invalid": _invalid,
    "state": _in_trace(more=[("tracestate", STATE)]),
    "refused": _in_trace(body=b"{"),
    "left": _left,
}


def _wait(session: Session, asked: Asked, wanted: Callable[[Span], bool]) -> Span:
    """Return the span that is wanted; none in time breaks the case."""
    found = _collector(session).wait_for(wanted, session.settings.timeout)
    if found is None:
        fail(f"no span of this request came in {session.settings.timeout:g} s", asked.exchange)
    return found


def _child(session: Session, name: str) -> tuple[Span, Asked]:
    """Return the span of the one request of this name, in the trace that it named."""
    (asked,) = _asked(session, name)
    return _wait(session, asked, asked.continues), asked


@case(
    "v0.trace.child",
    rule="Engine specification, section 2.8; W3C Trace Context, section 3.2",
    why="Without the parent the engine is a tree of its own, and a slow request cannot be followed"
    " from the gateway into it.",
    need=Need.COLLECTOR,
)
def child(session: Session) -> None:
    """With a traceparent, the span has its trace id, its span id as parent, and a new own id."""
    span, asked = _child(session, "child")
    parent, own = span.fields.get("parentSpanId"), str(span.fields.get("spanId"))
    check(parent == PARENT, f"parentSpanId {parent!r}, not {PARENT!r}", asked.exchange)
    good = SPAN_ID.fullmatch(own) is not None and own != PARENT
    check(good, f"spanId {own!r}", asked.exchange)


@case(
    "v0.trace.unsampled",
    rule="Contract, point 19: the sampled flag is ignored unless a sampler is set",
    why="One request, one span: a flag of the caller's must not hide it.",
    need=Need.COLLECTOR,
)
def unsampled(session: Session) -> None:
    """Flags 00 make no difference."""
    _child(session, "unsampled")


@case(
    "v0.trace.later_version",
    rule="W3C Trace Context, section 4.3: a higher version is read by its first four fields",
    why="Callers of a later version stay connected.",
    need=Need.COLLECTOR,
)
def later_version(session: Session) -> None:
    """Version cc with more after a dash is the parent like any other."""
    _child(session, "later")


@case(
    "v0.trace.new_root",
    rule="Engine specification, section 2.8: otherwise a new trace with a random non-zero id",
    why="Back ends drop spans whose ids are zero.",
    need=Need.COLLECTOR,
)
def new_root(session: Session) -> None:
    """Without a traceparent, the span has a trace id of its own and no parent."""
    _all_roots(session, _asked(session, "root"))


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
    _all_roots(session, _asked(session, "invalid"))


def _all_roots(session: Session, requests: Sequence[Asked]) -> None:
    for asked in requests:
        fields = _wait(session, asked, asked.began_then).fields
        trace, parent = str(fields.get("traceId")), fields.get("parentSpanId")
        check(TRACE_ID.fullmatch(trace) is not None, f"traceId {trace!r}", asked.exchange)
        used = trace == asked.trace
        check(not used, "the invalid header's trace id was used", asked.exchange)
        check(not parent, f"parentSpanId {parent!r} of a new trace", asked.exchange)


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
    span, asked = _child(session, "child")
    fields, where, name = span.fields, asked.exchange, f"POST {COMPLETIONS}"
    check(fields.get("name") == name, f"name {fields.get('name')!r}, not {name!r}", where)
    check(fields.get("kind") == 2, f"kind {fields.get('kind')!r}, not 2 (SERVER)", where)
    start, end = fields.get("startTimeUnixNano"), fields.get("endTimeUnixNano")
    check(isinstance(start, str) and isinstance(end, str), "times are no strings", where)
    inside = asked.began_then(span) and nanoseconds(start) <= nanoseconds(end)
    check(inside, f"from {start} to {end}, asked from {asked.begun} to {asked.ended}", where)
    status = span.attributes.get("http.response.status_code")
    check(status == {"intValue": "200"}, f"http.response.status_code {status}", where)
    check(bool(span.resource.get("service.name")), "the resource has no service.name", where)
    post = next(p for p in _collector(session).posts if asked.trace.encode() in p.body)
    check(post.path == "/v1/traces", f"posted to {post.path}", where)
    check(post.content_type.startswith("application/json"), f"as {post.content_type}", where)


@case(
    "v0.trace.tracestate",
    rule="W3C Trace Context, section 3.3; contract, point 18: it is carried into the span",
    why="Vendors keep their own position in the trace there.",
    need=Need.COLLECTOR,
)
def tracestate(session: Session) -> None:
    """The tracestate of a valid parent is in the span."""
    span, asked = _child(session, "state")
    got = span.fields.get("traceState")
    check(got == STATE, f"traceState {got!r}, not {STATE!r}", asked.exchange)


@case(
    "v0.trace.refused",
    rule="Contract, point 19: every completion request has its span, also one answered 4xx",
    why="The requests that fail are those one looks for.",
    need=Need.COLLECTOR,
)
def refused(session: Session) -> None:
    """A request that is answered 400 has a span with that status."""
    span, asked = _child(session, "refused")
    status = span.attributes.get("http.response.status_code")
    check(status == {"intValue": "400"}, f"status {status}", asked.exchange)


@case(
    "v0.trace.abandoned",
    rule="Contract, points 17 and 19: a request abandoned by its client has its span",
    why="Callers that give up are the first sign of a server that is too slow.",
    need=Need.COLLECTOR,
)
def abandoned(session: Session) -> None:
    """A stream that its client leaves has a span with status ERROR (2)."""
    span, asked = _child(session, "left")
    status = span.fields.get("status")
    failed = isinstance(status, dict) and status.get("code") == 2
    check(failed, f"status {status}, not ERROR", asked.exchange)


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
        for _ in range(3):
            session.complete(max_tokens=1)
        took = time.monotonic() - begun
    finally:
        collector.delay.clear()
    check(took < 1.0, f"3 answers took {took:.1f} s", session.exchanges[-1])
