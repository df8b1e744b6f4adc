"""The traces that arrived last: whole ones, though their spans come apart, and never too many.

The services of one trace export on their own, seconds apart. So a trace counts as whole when
nothing of it has arrived for a moment; a span that comes later still makes it whole again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tinyllm.tracing.receiver.received import ReceivedSpan

MAX_SPANS_PER_TRACE = 1000


@dataclass(slots=True)
class Trace:
    """The spans that arrived of one trace."""

    trace_id: str
    spans: dict[str, ReceivedSpan] = field(default_factory=dict)  # by span id
    changed_at: float = 0.0
    told: bool = False  # nothing has arrived since it was taken
    repeated: int = 0  # spans that came again with an id that was there
    left_out: int = 0  # spans beyond MAX_SPANS_PER_TRACE

    def add(self, span: ReceivedSpan) -> None:
        """Keep a span; of two with one id the first stays."""
        if span.span_id in self.spans:
            self.repeated += 1
        elif len(self.spans) >= MAX_SPANS_PER_TRACE:
            self.left_out += 1
        else:
            self.spans[span.span_id] = span

    def copy(self) -> Trace:
        """Return what is known now, for another thread to read."""
        return replace(self, spans=dict(self.spans))


class TraceStore:
    """The last `limit` traces. For any number of threads."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._traces: OrderedDict[str, Trace] = OrderedDict()  # the last to change at the end
        self._lock = threading.Lock()
        self._untold = 0  # traces that were forgotten before they were taken

    def add(self, spans: Iterable[ReceivedSpan], now: float) -> None:
        """Take in spans that arrived at the time `now`, in seconds."""
        with self._lock:
            for span in spans:
                trace = self._traces.setdefault(span.trace_id, Trace(span.trace_id))
                trace.add(span)
                trace.changed_at, trace.told = now, False
                self._traces.move_to_end(span.trace_id)
            while len(self._traces) > self._limit:
                self._untold += not self._traces.popitem(last=False)[1].told

    def take_settled(self, now: float, quiet: float) -> list[Trace]:
        """Return the traces that changed since they were taken, and not for `quiet` seconds."""
        with self._lock:
            settled = [
                trace
                for trace in self._traces.values()
                if not trace.told and now - trace.changed_at >= quiet
            ]
            for trace in settled:
                trace.told = True
            return [trace.copy() for trace in settled]

    def take_untold(self) -> int:
        """Return how many traces were forgotten before they were taken, since the last call."""
        with self._lock:
            untold, self._untold = self._untold, 0
        return untold

    def last(self) -> list[Trace]:
        """Return all the traces that are kept, the last to change at the end."""
        with self._lock:
            return [trace.copy() for trace in self._traces.values()]
