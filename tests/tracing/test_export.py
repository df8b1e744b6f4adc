"""Spans on their way out: what a healthy collector gets, and what each fault of one costs."""

from __future__ import annotations

import json
import logging
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from support.collectors import (
    OK,
    FakeCollector,
    closed_port,
    collector,
    hang,
    hang_up,
    reset,
    response,
    then_close,
)
from tinyllm.tracing import (
    ExportConfig,
    ExportError,
    SpanExporter,
    export,
    export_span,
    otlp_json,
    random_hex,
)
from tinyllm.tracing.attributes import span_of
from tinyllm.tracing.completion import MAX_TEXT_LENGTH
from tinyllm.tracing.export import MAX_PAUSE, UNSENT
from tinyllm.tracing.sampling import Sampler
from tinyllm.tracing.transport import Accepted, Answer, Collector, Refused, Unavailable
from tracing.records import (
    PARENT,
    PARENT_ID,
    SPAN_ID,
    TRACE_ID,
    bare,
    offer,
    record,
    wanted_ids,
)

FOREVER = 600.0
NO_SAMPLE = PARENT._replace(flags=0)


@contextmanager
def exporting(url: str, **settings: Any) -> Iterator[SpanExporter]:
    """An exporter that waits for full batches, and 10 ms before it tries again."""
    settings = {"schedule_delay": FOREVER, "first_pause": 0.01, **settings}
    exporter = SpanExporter(ExportConfig(url, **settings))
    try:
        yield exporter
    finally:
        exporter.close(0)


def response_ids(spans: list[dict[str, Any]]) -> list[str]:
    return [
        attribute["value"]["stringValue"]
        for span in spans
        for attribute in span["attributes"]
        if attribute["key"] == "gen_ai.response.id"
    ]


# A healthy collector


def test_one_span_as_it_was_offered() -> None:
    resource = {"service.name": "engine"}
    with collector() as fake, exporting(fake.url, resource=resource) as exporter:
        exporter.offer(record())
        assert exporter.close(10)
    (received,) = fake.requests
    (span,) = received.spans()
    assert span["traceId"] == TRACE_ID
    assert span["parentSpanId"] == PARENT_ID
    assert span["spanId"] not in (PARENT_ID, "0" * 16)
    wanted = otlp_json("engine", span_of(record(), TRACE_ID, span["spanId"]))
    assert json.loads(received.body) == json.loads(wanted)


def test_a_span_without_parent_gets_a_new_trace_each_time() -> None:
    with collector() as fake, exporting(fake.url) as exporter:
        for _ in range(20):
            exporter.offer(record(parent=None))
        assert exporter.close(10)
    spans = fake.spans()
    assert len({span["traceId"] for span in spans}) == len({span["spanId"] for span in spans}) == 20
    assert all("parentSpanId" not in span and int(span["traceId"], 16) for span in spans)


def test_ten_thousand_requests_give_ten_thousand_spans_none_twice() -> None:
    # The specification's own queue: it holds a fifth of them, so the thread must not oversleep.
    with collector() as fake, exporting(fake.url, max_queue_size=2048) as exporter:
        for first in range(0, 10_000, 100):
            offer(exporter, 100, first)
            # The pace of a server: it does not run away from its collector.
            fake.wait_for(partial(arrived, more_than=first - 1500))
        assert exporter.close(20)
        assert exporter.exported == 10_000
        assert not exporter.dropped
    text = b"".join(
        received.body for received in fake.requests
    ).decode()  # parsed, it takes seconds
    assert re.findall('"gen_ai.response.id","value":{"stringValue":"(.+?)"', text) == wanted_ids(
        10_000
    )
    assert len(set(re.findall('"spanId":"(.+?)"', text))) == 10_000
    assert fake.connections == 1


def arrived(fake: FakeCollector, more_than: int) -> bool:
    return 512 * len(fake.requests) > more_than


def test_a_full_batch_leaves_at_once_and_a_part_of_one_waits() -> None:
    with collector() as fake, exporting(fake.url, max_batch_size=10) as exporter:
        offer(exporter, 25)
        fake.wait_for(lambda fake: len(fake.requests) == 2)
        assert response_ids(fake.spans()) == wanted_ids(20)
        assert exporter.close(10)
    assert [len(received.spans()) for received in fake.requests] == [10, 10, 5]


def test_a_span_waits_no_longer_than_the_delay() -> None:
    with collector() as fake, exporting(fake.url, schedule_delay=0.05) as exporter:
        offer(exporter, 1)
        fake.wait_for(lambda fake: len(fake.requests) == 1)
        offer(exporter, 1)
        fake.wait_for(lambda fake: len(fake.requests) == 2)


def test_a_burst_larger_than_a_batch_goes_in_batches() -> None:
    settings = {"schedule_delay": 0.05, "max_batch_size": 64}
    with collector() as fake, exporting(fake.url, **settings) as exporter:
        offer(exporter, 1000)
        assert exporter.close(10)
    assert sorted(response_ids(fake.spans())) == sorted(wanted_ids(1000))
    assert max(len(received.spans()) for received in fake.requests) == 64


def test_several_threads_may_offer() -> None:
    with collector() as fake, exporting(fake.url, max_batch_size=16) as exporter:
        threads = [
            threading.Thread(target=offer, args=(exporter, 250, first))
            for first in range(0, 1000, 250)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert exporter.close(10)
    assert sorted(response_ids(fake.spans())) == sorted(wanted_ids(1000))


def test_gzip_bodies_arrive_whole() -> None:
    with collector() as fake, exporting(fake.url, gzip=True) as exporter:
        offer(exporter, 100)
        assert exporter.close(10)
    assert fake.requests[0].headers["content-encoding"] == "gzip"
    assert response_ids(fake.spans()) == wanted_ids(100)


def test_headers_of_the_configuration_are_sent() -> None:
    with collector() as fake, exporting(fake.url, headers={"api-key": "k"}) as exporter:
        offer(exporter, 1)
        assert exporter.close(10)
    assert fake.requests[0].headers["api-key"] == "k"


def test_the_sampler_decides() -> None:
    sampler = Sampler(0.0, follow_parent=True)
    with collector() as fake, exporting(fake.url, sampler=sampler) as exporter:
        exporter.offer(record(response_id="cmpl-0"))
        exporter.offer(record(parent=NO_SAMPLE))
        exporter.offer(record(parent=None))
        assert exporter.close(10)
        assert not exporter.dropped
    assert response_ids(fake.spans()) == ["cmpl-0"]


def test_a_span_that_cannot_be_written_changes_nothing_for_the_sampler() -> None:
    sampler = Sampler(0.5, follow_parent=False)
    with collector() as fake, exporting(fake.url, sampler=sampler) as exporter:
        for number in range(4000):
            model = "\ud800" if number % 8 == 0 else "m"
            exporter.offer(record(parent=None, model=model))
        assert exporter.close(20)
    assert 1600 < len(fake.spans()) < 1900  # of 3,500, half: 1,750 and 5 standard deviations


def test_nothing_is_posted_when_no_span_is_kept() -> None:
    sampler = Sampler(0.0, follow_parent=True)
    with collector() as fake, exporting(fake.url, sampler=sampler) as exporter:
        exporter.offer(record(parent=None))
        assert exporter.close(10)
    assert fake.requests == []


def test_texts_that_clients_choose_are_cut() -> None:
    long = dict.fromkeys(("model", "user_agent", "query", "host"), "x" * 2000)
    with collector() as fake, exporting(fake.url) as exporter:
        exporter.offer(record(**long))
        assert exporter.close(10)
    (span,) = fake.spans()
    texts = {item["key"]: item["value"].get("stringValue") for item in span["attributes"]}
    for key in ("gen_ai.request.model", "user_agent.original", "url.query", "server.address"):
        assert texts[key] == "x" * MAX_TEXT_LENGTH


# Faults


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(response(429, b""), id="429"),
        pytest.param(response(502, b""), id="502"),
        pytest.param(response(503, b"", "Retry-After: 0"), id="503"),
        pytest.param(response(504, b""), id="504"),
        pytest.param(reset, id="reset"),
        pytest.param(hang_up, id="hang-up"),
        pytest.param(b"nonsense\r\n\r\n", id="nonsense"),
    ],
)
def test_a_batch_is_tried_again(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    with collector(answer, answer, OK) as fake, exporting(fake.url) as exporter:
        offer(exporter, 512)
        fake.wait_for(lambda fake: len(fake.requests) == 3)
        assert exporter.close(10)
        assert exporter.exported == 512
        assert not exporter.dropped
    first, *others = (received.body for received in fake.requests)
    assert others == [first, first]  # the same ids: a backend can tell a span that came twice
    assert caplog.messages == []


@pytest.mark.parametrize("status", [400, 401, 404, 413, 415, 500, 501, 301])
def test_a_refused_batch_is_not_tried_again(status: int, caplog: pytest.LogCaptureFixture) -> None:
    refusal = response(status, b'{"message":"no"}')
    with collector(refusal, OK) as fake, exporting(fake.url, max_batch_size=5) as exporter:
        offer(exporter, 10)
        assert exporter.close(10)
        assert exporter.exported == 5
        assert exporter.dropped == {"refused by the collector": 5}
    assert len(fake.requests) == 2
    assert caplog.messages == [
        f"5 spans refused by the collector (HTTP {status}: no); later ones are counted",
        "5 spans exported, 5 lost: 5 refused by the collector",
    ]


def test_each_kind_of_loss_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with collector(response(400, b"")) as fake, exporting(fake.url, max_batch_size=5) as exporter:
        offer(exporter, 50)
        assert exporter.close(10)
        assert exporter.close(10)
    assert caplog.messages == [
        "5 spans refused by the collector (HTTP 400); later ones are counted",
        "0 spans exported, 50 lost: 50 refused by the collector",
    ]
    assert {entry[:2] for entry in caplog.record_tuples} == {("tinyllm.tracing", logging.WARNING)}


def test_a_partial_success_is_counted_and_not_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    body = b'{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}'
    with collector(response(200, body), OK) as fake, exporting(fake.url) as exporter:
        offer(exporter, 5)
        assert exporter.close(10)
        assert exporter.exported == 3
        assert exporter.dropped == {"rejected by the collector": 2}
    assert len(fake.requests) == 1
    assert caplog.messages == [
        "2 spans rejected by the collector (too old); later ones are counted",
        "3 spans exported, 2 lost: 2 rejected by the collector",
    ]


def test_a_collectors_remark_is_passed_on_once(caplog: pytest.LogCaptureFixture) -> None:
    remark = response(200, b'{"partialSuccess":{"errorMessage":"please use gzip"}}')
    with collector(remark) as fake, exporting(fake.url, max_batch_size=1) as exporter:
        offer(exporter, 3)
        assert exporter.close(10)
        assert exporter.exported == 3
    assert caplog.messages == ["the collector took all spans and says: please use gzip"]


def test_retry_after_is_waited_for() -> None:
    throttled = response(429, b"", "Retry-After: 1")
    with collector(throttled, OK) as fake, exporting(fake.url, max_batch_size=1) as exporter:
        start = time.monotonic()
        offer(exporter, 1)
        fake.wait_for(lambda fake: len(fake.requests) == 2)
        assert time.monotonic() - start >= 1.0
        assert exporter.close(10)


def test_a_wish_to_wait_too_long_ends_the_batch(caplog: pytest.LogCaptureFixture) -> None:
    throttled = response(429, b"slow down", "Retry-After: 3600")
    with collector(throttled, OK) as fake, exporting(fake.url, max_batch_size=1) as exporter:
        offer(exporter, 2)
        fake.wait_for(lambda fake: len(fake.requests) == 2)
        assert exporter.close(10)
        assert exporter.dropped == {"not delivered": 1}
    assert caplog.messages[0] == (
        "1 spans not delivered (HTTP 429: slow down); later ones are counted"
    )


def test_pauses_leave_the_random_numbers_of_others_alone() -> None:
    state = random.getstate()
    settings = {"max_batch_size": 1, "first_pause": 0.001}
    with collector(response(503, b""), OK) as fake, exporting(fake.url, **settings) as exporter:
        offer(exporter, 1)
        fake.wait_for(lambda fake: len(fake.requests) == 2)
        assert exporter.close(10)
    assert random.getstate() == state


def test_tries_end_with_the_export_timeout() -> None:
    settings = {"export_timeout": 0.2, "max_batch_size": 1}
    with collector(response(503, b"")) as fake, exporting(fake.url, **settings) as exporter:
        offer(exporter, 1)
        fake.wait_for(lambda fake: len(fake.requests) >= 2)
        offer(exporter, 1)
        fake.wait_for(lambda fake: len({received.body for received in fake.requests}) == 2)
        assert exporter.close(10)
        assert exporter.dropped == {"not delivered": 2}


def test_pauses_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    jitter: list[float] = []

    def longest(low: float, high: float) -> float:
        jitter.append(low)
        return high

    monkeypatch.setattr(export._jitter, "uniform", longest)
    settings = {"max_batch_size": 1, "first_pause": 0.001}
    answers = [response(503, b"")] * 7
    with collector(*answers, OK) as fake, exporting(fake.url, **settings) as exporter:
        start = time.monotonic()
        offer(exporter, 1)
        fake.wait_for(lambda fake: len(fake.requests) == 8)
        assert time.monotonic() - start >= 0.127  # 1 + 2 + 4 + ... + 64 ms
        assert exporter.close(10)
    assert jitter == [0.5] * 7


def test_memory_is_bounded_while_nobody_takes_spans(caplog: pytest.LogCaptureFixture) -> None:
    settings = {"max_queue_size": 100, "max_batch_size": 10}
    with collector(hang) as fake, exporting(fake.url, **settings) as exporter:
        offer(exporter, 10)
        fake.wait_for(lambda fake: len(fake.requests) == 1)  # the thread is held up
        offer(exporter, 1000)
        assert len(exporter._queue) == 100
        assert exporter.dropped == {"at a full queue": 900}
        assert not exporter.close(0.1)
        assert exporter.dropped == {"at a full queue": 900, "not sent before the end": 110}
    assert caplog.messages == [
        "0 spans exported, 1010 lost: 900 at a full queue, 110 not sent before the end"
    ]


def test_an_overflow_is_said_while_it_lasts(caplog: pytest.LogCaptureFixture) -> None:
    gate = threading.Event()

    def held(fake: FakeCollector, connection: Any) -> None:
        gate.wait(20)
        connection.sendall(OK)

    settings = {"max_queue_size": 10, "max_batch_size": 10}
    with collector(held, OK) as fake, exporting(fake.url, **settings) as exporter:
        offer(exporter, 10)
        fake.wait_for(lambda fake: len(fake.requests) == 1)
        offer(exporter, 15)
        gate.set()
        fake.wait_for(lambda fake: len(fake.requests) == 2)
        assert exporter.close(10)
    assert caplog.messages == [
        "spans are lost: the queue of 10 is full; they are counted",
        "20 spans exported, 5 lost: 5 at a full queue",
    ]


def test_a_span_that_cannot_be_written_costs_itself_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with collector() as fake, exporting(fake.url) as exporter:
        offer(exporter, 1)
        exporter.offer(record(model="\ud800"))
        offer(exporter, 1, 1)
        assert exporter.close(10)
        assert exporter.dropped == {"that cannot be written": 1}
    assert response_ids(fake.spans()) == wanted_ids(2)
    assert "surrogate" in caplog.messages[0]


def test_a_fault_of_ours_does_not_end_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    with collector() as fake, exporting(fake.url, max_batch_size=1) as exporter:
        exporter.offer(bare(duration_ns="long"))
        offer(exporter, 1)
        assert exporter.close(10)
        assert exporter.dropped == {"in a fault of the exporter": 1}
    assert response_ids(fake.spans()) == wanted_ids(1)
    assert caplog.records[0].exc_info is not None


# The end


def test_close_sends_what_is_waiting() -> None:
    with collector() as fake, exporting(fake.url) as exporter:
        offer(exporter, 100)
        assert exporter.close(10)
    assert response_ids(fake.spans()) == wanted_ids(100)


def test_close_without_spans_is_at_once() -> None:
    with collector() as fake, exporting(fake.url) as exporter:
        start = time.monotonic()
        assert exporter.close(10)
        assert time.monotonic() - start < 5
    assert fake.requests == []


def test_close_gives_up_in_time_on_a_silent_collector(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # The thread gives up by itself; a machine under load may be late to say so.
    monkeypatch.setattr(f"{SpanExporter.__module__}.LATE_SECONDS", FOREVER)
    with collector(hang) as fake, exporting(fake.url, max_batch_size=10) as exporter:
        offer(exporter, 95)
        start = time.monotonic()
        exporter.close(0.3)
        assert time.monotonic() - start < 5
        assert exporter.dropped == {"not delivered": 10, UNSENT: 85}
    assert caplog.messages[-1] == (
        "0 spans exported, 95 lost: 10 not delivered, 85 not sent before the end"
    )


@pytest.mark.parametrize(
    "answer", [Accepted(), Accepted(3, "no room"), Refused("no"), Unavailable("late")]
)
def test_an_answer_after_the_end_counts_no_span_twice(
    answer: Answer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked, answered = threading.Event(), threading.Event()

    def post(*_: object) -> Answer:
        asked.set()
        assert answered.wait(FOREVER)
        return answer

    monkeypatch.setattr(Collector, "post", post)
    with exporting("http://127.0.0.1:9/", max_batch_size=10) as exporter:
        offer(exporter, 95)
        assert asked.wait(FOREVER)
        assert not exporter.close(0)
        answered.set()
        exporter._thread.join()
        assert (exporter.exported, exporter.dropped) == (0, {UNSENT: 95})
    assert caplog.messages == ["0 spans exported, 95 lost: 95 not sent before the end"]


def test_close_on_a_closed_port_is_quick() -> None:
    with exporting(f"http://127.0.0.1:{closed_port()}/", max_batch_size=10) as exporter:
        offer(exporter, 95)
        start = time.monotonic()
        assert exporter.close(10)
        assert time.monotonic() - start < 5
        assert exporter.dropped == {"not delivered": 95}


def test_close_cuts_a_pause_short_for_one_last_attempt() -> None:
    settings = {"max_batch_size": 1, "first_pause": MAX_PAUSE}
    with collector(response(503, b""), OK) as fake, exporting(fake.url, **settings) as exporter:
        offer(exporter, 1)
        fake.wait_for(lambda fake: len(fake.requests) == 1)
        start = time.monotonic()
        assert exporter.close(10)
        assert time.monotonic() - start < MAX_PAUSE / 2  # the shortest pause there can be
        assert exporter.exported == 1
    assert len(fake.requests) == 2


def test_close_makes_no_attempt_against_the_collectors_wish() -> None:
    throttled = response(429, b"", "Retry-After: 20")
    with collector(throttled, OK) as fake, exporting(fake.url, max_batch_size=1) as exporter:
        offer(exporter, 1)
        fake.wait_for(lambda fake: len(fake.requests) == 1)
        start = time.monotonic()
        assert exporter.close(10)
        assert time.monotonic() - start < 5
        assert exporter.dropped == {"not delivered": 1}
    assert len(fake.requests) == 1


def test_offers_after_the_end_are_counted() -> None:
    with collector() as fake, exporting(fake.url) as exporter:
        assert exporter.close(10)
        offer(exporter, 3)
        assert exporter.dropped == {"at a full queue": 3}


HELD_UP = """
import sys
from tinyllm.tracing import CompletionSpan, ExportConfig, SpanExporter
exporter = SpanExporter(ExportConfig(sys.argv[1], max_batch_size=1))
exporter.offer(CompletionSpan(1))
sys.stdin.read(1)
"""


def test_the_thread_never_holds_up_an_exit() -> None:
    with collector(hang) as fake:
        command = [sys.executable, "-c", HELD_UP, fake.url]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
            fake.wait_for(lambda fake: len(fake.requests) == 1)
            process.communicate(b"x", timeout=10)  # no close: as after a second signal
            assert process.returncode == 0


# export_span, the plain function


def test_export_span_posts_one_body() -> None:
    body = otlp_json("engine", span_of(record(), TRACE_ID, SPAN_ID))
    with collector() as fake:
        export_span(fake.endpoint + "/", body)
    (received,) = fake.requests
    assert received.request_line == "POST /v1/traces HTTP/1.1"
    assert received.headers["content-type"] == "application/json"
    assert received.body.decode() == body


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (response(400, b'{"message":"bad"}'), "HTTP 400: bad"),
        (response(503, b""), "HTTP 503"),
        (hang_up, "Remote end closed"),
        (then_close(b""), "Remote end closed"),
        (
            response(200, b'{"partialSuccess":{"rejectedSpans":"1","errorMessage":"old"}}'),
            "1 spans rejected: old",
        ),
    ],
)
def test_export_span_says_why_not(answer: Any, reason: str) -> None:
    with collector(answer) as fake, pytest.raises(ExportError, match=reason):
        export_span(fake.endpoint, "{}")
    assert len(fake.requests) == 1


def test_export_span_refuses_what_is_no_url() -> None:
    with pytest.raises(ValueError, match="http://"):
        export_span("localhost:4318", "{}")


# Importing


def test_an_engine_without_export_does_not_import_the_exporter() -> None:
    code = (
        "import sys, tinyllm.tracing as t\n"
        "assert t.ExportConfig.from_env({}) is None\n"
        "t.parent_from_headers([]); t.CompletionSpan(1)\n"
        "names = 'http.client ssl gzip email urllib.parse socket tinyllm.tracing.export'\n"
        "print([name for name in names.split() if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_public_names_exist() -> None:
    import tinyllm.tracing as tracing

    assert all(getattr(tracing, name) for name in tracing.__all__)
    assert len(random_hex(8)) == 16
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = tracing.Nothing
