"""Faults of the spans and of their export."""

# ruff: noqa: D102 (a method is explained where it is right; its class says what is wrong here)

from __future__ import annotations

import secrets
from typing import Any

from tinyllm.conformance.selftest.engine import Engine
from tinyllm.conformance.selftest.fault import caught_by
from tinyllm.conformance.selftest.heads import Request
from tinyllm.conformance.selftest.stream import Stream

IN_A_TRACE = (
    "v0.trace.child",
    "v0.trace.unsampled",
    "v0.trace.later_version",
    "v0.trace.span",
    "v0.trace.tracestate",
    "v0.trace.refused",
    "v0.trace.abandoned",
)


class _Spans(Engine):
    """Changes a span before it is exported."""

    def changed(self, span: dict[str, Any], request: Request) -> dict[str, Any] | None:
        """Return the span as this server exports it, None for not at all."""
        return span

    def span(self, request: Request, begun: int, status: int, error: bool) -> dict[str, Any]:
        made = super().span(request, begun, status, error)
        changed = self.changed(made, request)
        return changed if changed is not None else {"name": "nothing"}


@caught_by("v0.trace.child")
class NoParent(_Spans):
    """The caller's span is not recorded as the parent (mutant s15)."""

    def changed(self, span: dict[str, Any], request: Request) -> dict[str, Any] | None:
        return {k: v for k, v in span.items() if k != "parentSpanId"}


@caught_by(*IN_A_TRACE[:1], shared=IN_A_TRACE[1:])
class TraceDropped(Engine):
    """traceparent is not looked at."""

    def parent(self, request: Request) -> tuple[str, str] | None:
        return None


@caught_by("v0.trace.unsampled")
class OnlySampled(_Spans):
    """A request whose sampled flag is 0 leaves no span."""

    def changed(self, span: dict[str, Any], request: Request) -> dict[str, Any] | None:
        return None if (request.header("traceparent") or "").endswith("-00") else span


@caught_by("v0.trace.later_version")
class OnlyVersion00(Engine):
    """A traceparent of another version starts a new trace."""

    def parent(self, request: Request) -> tuple[str, str] | None:
        known = (request.header("traceparent") or "").startswith("00-")
        return super().parent(request) if known else None


@caught_by("v0.trace.new_root", "v0.trace.invalid_parent")
class ZeroParent(_Spans):
    """A new trace has a parent of zeros."""

    def changed(self, span: dict[str, Any], request: Request) -> dict[str, Any] | None:
        return {**span, "parentSpanId": span["parentSpanId"] or "0" * 16}


@caught_by("v0.trace.invalid_parent")
class MalformedParentUsed(Engine):
    """A malformed traceparent is cut at its dashes and used."""

    def parent(self, request: Request) -> tuple[str, str] | None:
        parts = (request.header("traceparent") or "").split("-")
        return (parts[1], parts[2]) if len(parts) > 3 else super().parent(request)


@caught_by("v0.trace.span")
class TimesAreNumbers(_Spans):
    """Times are JSON numbers, which lose their last digits."""

    def changed(self, span: dict[str, Any], request: Request) -> dict[str, Any] | None:
        return {**span, "endTimeUnixNano": int(span["endTimeUnixNano"])}


@caught_by("v0.trace.span")
class KindIsMissing(_Spans):
    """The span's kind is not set."""

    def changed(self, span: dict[str, Any], request: Request) -> dict[str, Any] | None:
        return {k: v for k, v in span.items() if k != "kind"}


@caught_by("v0.trace.tracestate")
class NoTracestate(Engine):
    """tracestate is dropped."""

    def tracestate(self, request: Request) -> str:
        return ""


@caught_by("v0.trace.refused")
class OnlyGoodRequests(_Spans):
    """Only requests that were answered 200 leave a span."""

    def changed(self, span: dict[str, Any], request: Request) -> dict[str, Any] | None:
        return span if "200" in str(span["attributes"]) else None


@caught_by("v0.trace.abandoned")
class AbandonedIsFine(_Spans):
    """A request whose client left is like any other."""

    def changed(self, span: dict[str, Any], request: Request) -> dict[str, Any] | None:
        return {**span, "status": {}}


@caught_by("v0.trace.slow_collector")
class ExportsFirst(Engine):
    """A span is posted before the answer, while the client waits."""

    def read_body(self, stream: Stream, length: int) -> bytes:
        if self.exporter is not None:
            self.exporter.post(self.exporter.body([{"spanId": secrets.token_hex(8)}]))
        return super().read_body(stream, length)
