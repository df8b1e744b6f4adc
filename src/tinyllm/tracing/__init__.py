"""One span per request: the caller's trace joined, and spans exported as OTLP/HTTP JSON.

What an engine without export needs (`parent_from_headers`, `ExportConfig.from_env`) is imported
with the package; the exporters, and what they need, when they are first named.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tinyllm.tracing.completion import CLIENT_GONE, CompletionSpan, Facts
from tinyllm.tracing.config import ExportConfig
from tinyllm.tracing.ids import random_hex, random_u64
from tinyllm.tracing.span import AttrValue, Span, SpanEvent, otlp_json, unix_nanos
from tinyllm.tracing.traceparent import TraceContext, parent_from_headers, parse_traceparent

if TYPE_CHECKING:
    from tinyllm.tracing.export import ExportError, SpanExporter, export_span
    from tinyllm.tracing.process import ExporterProcess

__all__ = [
    "CLIENT_GONE",
    "AttrValue",
    "CompletionSpan",
    "ExportConfig",
    "ExportError",
    "ExporterProcess",
    "Facts",
    "Span",
    "SpanEvent",
    "SpanExporter",
    "TraceContext",
    "export_span",
    "otlp_json",
    "parent_from_headers",
    "parse_traceparent",
    "random_hex",
    "random_u64",
    "unix_nanos",
]

_LATE = {
    "ExportError": "export",
    "ExporterProcess": "process",
    "SpanExporter": "export",
    "export_span": "export",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401  (PEP 562)
    """Import a module, and http.client or subprocess with it, when one of its names is used."""
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"tinyllm.tracing.{_LATE[name]}"), name)
