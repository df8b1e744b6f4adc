"""An exporter that keeps what it is offered."""

from __future__ import annotations

from tinyllm.tracing import CompletionSpan, Facts


class SpanList:
    """What a server tells its exporter."""

    def __init__(self) -> None:
        self.spans: list[CompletionSpan] = []

    def offer(self, *spans: Facts) -> None:
        self.spans += map(CompletionSpan.of, spans)

    def close(self, timeout: float) -> bool:
        return True
