"""Spans on their way out: a bounded queue, one thread, batches; nothing waits for any of it.

The server calls `offer` on its event loop, which appends to a deque and returns. One daemon
thread takes batches off, writes and posts them. It sleeps until a batch is full or the oldest
span has waited `schedule_delay`: a wake-up costs a system call and hands the interpreter over, so
there is one per batch and none per span.

What goes wrong costs spans, never answers. A batch is tried again while that can help and time
is left. After a connection that broke, nobody knows whether the batch was taken; OTLP ("Duplicate
Data") says to send it again, and as span ids stay the same, a backend can tell. A full queue drops
the newest span. Each kind of loss is said in the log when it first happens, and all are counted
and said at the end.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from itertools import count

from tinyllm.tracing.body import SPANS_PER_PIECE, Body, body_head
from tinyllm.tracing.completion import CompletionSpan, Facts
from tinyllm.tracing.config import ExportConfig, traces_url
from tinyllm.tracing.encoding import SpanEncoder
from tinyllm.tracing.ids import SPAN_ID_BYTES, TRACE_ID_BYTES, many_random_hex
from tinyllm.tracing.queue import SPANS_PER_GROUP, Group, SpanQueue, unpack_spans
from tinyllm.tracing.transport import Accepted, Collector, Refused, Unavailable
from tinyllm.wire.jsontext import JsonError

log = logging.getLogger("tinyllm.tracing")
_jitter = random.Random()  # not the module's, which others seed, or watch (hypothesis does)

AT_A_FULL_QUEUE = "at a full queue"
UNSENT = "not sent before the end"
MAX_PAUSE = 8.0  # seconds between two attempts, if the collector names no time
LATE_SECONDS = 0.2  # that the thread may take to note that its time is over


class ExportError(Exception):
    """A body was not accepted whole; the message says why."""


def export_span(endpoint: str, body: str, timeout: float = 10.0) -> None:
    """Post one `otlp_json` body to `<endpoint>/v1/traces`, once, and wait for the answer.

    Raises ExportError if the collector does not accept all of it, ValueError for an endpoint
    that is no http or https URL.
    """
    collector = Collector(ExportConfig(traces_url(endpoint)))
    try:
        answer = collector.post([body.encode()], timeout)
    finally:
        collector.close()
    if not isinstance(answer, Accepted):
        raise ExportError(answer.reason)
    if answer.rejected:
        raise ExportError(f"{answer.rejected} spans rejected: {answer.message}")


class SpanExporter:
    """Exports the spans that it is offered. Make it after the last fork: it owns a thread."""

    def __init__(self, config: ExportConfig) -> None:
        """Raise OSError if a certificate of the configuration cannot be used."""
        self._config = config
        self._collector = Collector(config)
        self._encoder = SpanEncoder()
        self._head = body_head(config.resource)
        self._batch_size = config.max_batch_size
        self._queue = SpanQueue(config.max_queue_size, min(self._batch_size, SPANS_PER_GROUP))
        self._asleep = False
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._end = float("inf")  # monotonic time at which closing gives up
        self._overflow_elsewhere = 0  # spans that were lost before the others were handed to us
        self._overflow_said = False
        self._remarked = False
        # What became of each span, once: the thread counts, until `close` gives up on it.
        self._account = threading.Lock()
        self._given_up = False
        self._losses: Counter[str] = Counter()
        self._exported = 0
        self._in_hand = 0  # spans of the batch that is on its way
        self._thread = threading.Thread(target=self._run, name="span-exporter", daemon=True)
        self._thread.start()

    @property
    def exported(self) -> int:
        """How many spans collectors have accepted."""
        return self._exported

    @property
    def dropped(self) -> Counter[str]:
        """How many spans were lost, by the way they were lost."""
        overflow = self._queue.overflow + self._overflow_elsewhere
        return +Counter({AT_A_FULL_QUEUE: overflow, **self._losses})  # + drops zeros

    def offer(self, *spans: Facts) -> None:
        """Take the facts of finished requests; never blocks. For one thread.

        Raises ValueError, and takes none, for a fact of a type that CompletionSpan does not have.
        """
        self._queue.put(spans)
        self._wake_for_a_batch()

    def take_over(self, groups: list[Group], overflow: int) -> None:
        """Take spans that another was offered, who has lost `overflow` since the beginning.

        A group has at most SPANS_PER_GROUP and a batch's. For the one thread that offers spans.
        """
        self._queue.put_groups(groups)
        self._overflow_elsewhere = overflow
        self._wake_for_a_batch()

    def _wake_for_a_batch(self) -> None:
        if self._asleep and len(self._queue) >= self._batch_size:
            self._asleep = False
            self._wake.set()

    def close(self, timeout: float) -> bool:
        """Send what is waiting, one attempt per batch, in `timeout` seconds; say what was lost.

        A pause between two attempts ends at once. Returns whether nothing was left behind.
        """
        if self._queue.closed:
            return not self._losses[UNSENT]
        self._queue.close()
        self._end = time.monotonic() + timeout
        self._closing.set()
        self._wake.set()
        self._thread.join(timeout + LATE_SECONDS)
        with self._account:
            if self._thread.is_alive():
                self._given_up = True
                self._losses[UNSENT] = len(self._queue) + self._in_hand
        if dropped := self.dropped:
            reasons = ", ".join(f"{number} {reason}" for reason, number in dropped.items())
            log.warning("%d spans exported, %d lost: %s", self._exported, dropped.total(), reasons)
        return not self._losses[UNSENT]

    def _run(self) -> None:
        while not self._closing.is_set():
            due = len(self._queue) if self._sleep() else 0
            while (due > 0 or len(self._queue) >= self._batch_size) and not self._closing.is_set():
                due -= self._export_batch()
            self._report_overflow()
        while self._queue and time.monotonic() < self._end:
            self._export_batch()
        with self._account:
            if not self._given_up:
                self._losses[UNSENT] = len(self._queue)
        self._collector.close()

    def _sleep(self) -> bool:
        """Wait for a full batch or for the end; return True if `schedule_delay` passed instead."""
        self._wake.clear()
        self._asleep = True
        if len(self._queue) < self._batch_size and not self._closing.is_set():
            woken = self._wake.wait(self._config.schedule_delay)
        else:
            woken = True
        self._asleep = False
        return not woken

    def _export_batch(self) -> int:
        """Export one batch and return how many spans it had. Never raises."""
        with self._account:
            groups = self._queue.take(self._batch_size)
            size = self._in_hand = sum(count for count, _ in groups)
        try:
            body = self._write(groups)
            self._in_hand = body.spans  # without those that the sampler does not keep
            if body.spans:
                self._deliver(body.finish(), body.spans)
        except Exception:  # a fault of ours must not end the thread
            log.exception("a batch of spans could not be exported")
            self._lose(self._in_hand, "in a fault of the exporter", "see the traceback")
        return size

    def _write(self, groups: list[Group]) -> Body:
        """Write the spans that are to be kept."""
        body = Body(self._head)
        records: list[Facts] = []
        for size, packed in groups:
            if records and len(records) + size > SPANS_PER_PIECE:
                self._write_piece(body, records)
                records = []
            records += unpack_spans(packed)
        if records:
            self._write_piece(body, records)
        return body

    def _write_piece(self, body: Body, records: list[Facts]) -> None:
        """Write those of a few spans that the sampler keeps."""
        trace_ids = many_random_hex(TRACE_ID_BYTES, len(records))
        if (sampler := self._config.sampler) is not None:
            kept = [
                (record, trace_id)
                for record, trace_id in zip(records, trace_ids, strict=True)
                if sampler.keeps(CompletionSpan.of(record).parent, trace_id)
            ]
            records, trace_ids = [record for record, _ in kept], [trace_id for _, trace_id in kept]
        if not records:
            return
        span_ids = many_random_hex(SPAN_ID_BYTES, len(records))
        try:
            body.add(self._encoder.encode(records, trace_ids, span_ids), len(records))
        except JsonError:  # it is one of them
            for one in zip(records, trace_ids, span_ids, strict=True):
                self._write_one(body, *one)

    def _write_one(self, body: Body, record: Facts, trace_id: str, span_id: str) -> None:
        try:
            body.add(self._encoder.encode([record], [trace_id], [span_id]), 1)
        except JsonError as problem:
            self._lose(1, "that cannot be written", str(problem))

    def _deliver(self, body: Sequence[bytes], size: int) -> None:
        """Post a batch until it is accepted or refused, or until no time is left for it."""
        give_up = time.monotonic() + self._config.export_timeout
        for attempt in count():
            last = self._closing.is_set()  # what is begun at the end is not tried again
            left = min(give_up, self._end) - time.monotonic()
            answer = self._collector.post(body, min(max(left, 0), self._config.timeout))
            match answer:
                case Accepted():
                    self._keep(size - answer.rejected)
                    if answer.rejected:
                        self._lose(answer.rejected, "rejected by the collector", answer.message)
                    elif answer.message:
                        self._pass_on(answer.message)
                    return
                case Refused():
                    self._lose(size, "refused by the collector", answer.reason)
                    return
                case Unavailable() if last or not self._pause(answer, attempt, give_up):
                    self._lose(size, "not delivered", answer.reason)
                    return

    def _pause(self, answer: Unavailable, attempt: int, give_up: float) -> bool:
        """Wait before the next attempt; return False if there is to be none."""
        if answer.retry_after is not None:
            pause = answer.retry_after
        else:  # exponential, with jitter so that many engines do not come back at once
            pause = min(self._config.first_pause * 2**attempt, MAX_PAUSE) * _jitter.uniform(0.5, 1)
        if time.monotonic() + pause >= give_up:
            return False
        interrupted = self._closing.wait(pause)
        # At the end there is one last attempt, but not against the collector's own wish.
        return not interrupted or answer.retry_after is None

    def _keep(self, size: int) -> None:
        """Count spans that a collector took."""
        with self._account:
            if not self._given_up:
                self._in_hand -= size
                self._exported += size

    def _lose(self, size: int, how: str, why: str) -> None:
        """Count lost spans; the first time of a kind, say so."""
        with self._account:
            if self._given_up:
                return
            said = how in self._losses
            self._in_hand -= size
            self._losses[how] += size
            if not said:  # before `close` says the sum
                log.warning(
                    "%d spans %s (%s); later ones are counted", size, how, why or "no reason"
                )

    def _pass_on(self, message: str) -> None:
        """Say what a collector remarks on a batch that it took, the first time."""
        if not self._remarked:
            self._remarked = True
            log.warning("the collector took all spans and says: %s", message)

    def _report_overflow(self) -> None:
        if AT_A_FULL_QUEUE in self.dropped and not self._overflow_said:
            self._overflow_said = True
            size = self._config.max_queue_size
            log.warning("spans are lost: the queue of %d is full; they are counted", size)
