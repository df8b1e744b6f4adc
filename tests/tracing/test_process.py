"""Exporting from a process of its own: what arrives, and what its death or its sleep costs."""

from __future__ import annotations

import http
import io
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.collectors import FakeCollector, closed_port, collector, hang
from support.waiting import wait_until
from tinyllm.tracing import CompletionSpan, ExportConfig, ExporterProcess, otlp_json, process
from tinyllm.tracing.attributes import span_of
from tinyllm.tracing.completion import MAX_TEXT_LENGTH
from tinyllm.tracing.handover import Handover, pack, pack_config, read, read_config
from tinyllm.tracing.queue import pack_spans, unpack_spans
from tinyllm.tracing.sampling import Sampler
from tracing.records import PARENT, bare, offer, record, wanted_ids

FOREVER = 600.0


@contextmanager
def exporting(url: str, **settings: Any) -> Iterator[ExporterProcess]:
    """An exporter that waits for full batches."""
    exporter = ExporterProcess(ExportConfig(url, **{"schedule_delay": FOREVER, **settings}))
    try:
        yield exporter
    finally:
        exporter.close(0)


def response_ids(fake: FakeCollector) -> list[str]:
    text = b"".join(received.body for received in fake.requests).decode()
    return re.findall('"gen_ai.response.id","value":{"stringValue":"(.+?)"', text)


# What arrives


@pytest.mark.parametrize(
    "span",
    [
        pytest.param(record(), id="everything"),
        pytest.param(record(parent=None, status=500, error="KeyError", seed=2**64 - 1), id="error"),
        pytest.param(record(model="é\U0001f600", temperature=float("inf")), id="odd-values"),
    ],
)
def test_a_span_arrives_as_it_was_offered(span: CompletionSpan) -> None:
    with collector() as fake, exporting(fake.url, resource={"service.name": "engine"}) as exporter:
        exporter.offer(span)
        assert exporter.close(10)
    (received,) = fake.requests
    (arrived,) = received.spans()
    ids = arrived["traceId"], arrived["spanId"]
    assert json.loads(received.body) == json.loads(otlp_json("engine", span_of(span, *ids)))


def test_ten_thousand_spans_arrive_and_none_twice() -> None:
    with collector() as fake, exporting(fake.url) as exporter:
        offer(exporter, 10_000)
        assert exporter.close(20)
    assert response_ids(fake) == wanted_ids(10_000)
    text = b"".join(received.body for received in fake.requests).decode()
    assert len(set(re.findall('"spanId":"(.+?)"', text))) == 10_000


def test_a_span_waits_no_longer_than_the_delay() -> None:
    with collector() as fake, exporting(fake.url, schedule_delay=0.05) as exporter:
        offer(exporter, 1)
        fake.wait_for(lambda fake: len(fake.requests) == 1)


def test_a_full_batch_does_not_wait() -> None:
    with collector() as fake, exporting(fake.url, max_batch_size=10) as exporter:
        offer(exporter, 25)
        fake.wait_for(lambda fake: len(fake.requests) == 2)
        assert response_ids(fake) == wanted_ids(20)


@pytest.mark.parametrize("fact", ["model", "user_agent", "query", "host", "method"])
def test_texts_that_clients_choose_are_cut(fact: str) -> None:
    with collector() as fake, exporting(fake.url) as exporter:
        exporter.offer(record(**{fact: "x" * 2000}))
        assert exporter.close(10)
    assert b'"' + b"x" * MAX_TEXT_LENGTH + b'"' in fake.requests[0].body
    assert b"x" * (MAX_TEXT_LENGTH + 1) not in fake.requests[0].body


def test_the_current_folder_is_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('not the library')")
    monkeypatch.chdir(tmp_path)
    with collector() as fake, exporting(fake.url) as exporter:
        offer(exporter, 1)
        assert exporter.close(10)
    assert response_ids(fake) == wanted_ids(1)


# Faults


def test_a_process_that_died_is_replaced(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(process, "RESTART_SECONDS", 0.01)
    with collector() as fake, exporting(fake.url, schedule_delay=0.02) as exporter:
        offer(exporter, 1)
        fake.wait_for(lambda fake: len(fake.requests) == 1)
        exporter._process.kill()
        exporter._process.wait()
        offer(exporter, 1, 1)  # it is lost, or the next process has it
        wait_until(lambda: exporter._process.poll() is None, "another process")
        offer(exporter, 1, 2)
        fake.wait_for(lambda fake: "cmpl-2" in response_ids(fake))
        assert exporter.close(10)
    assert caplog.messages == [
        "the process that exports spans ended (exit code -9), and spans with it; "
        "another is started in 0.01 s"
    ]


def test_a_process_that_cannot_be_started_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(process, "RESTART_SECONDS", 0.01)
    with collector() as fake, exporting(fake.url, schedule_delay=0.02) as exporter:
        command = process.COMMAND
        monkeypatch.setattr(process, "COMMAND", ("/missing",))
        exporter._process.kill()
        exporter._process.wait()
        offer(exporter, 1)  # it may be lost: nobody knew yet
        wait_until(lambda: len(caplog.messages) > 1, "a second attempt")
        offer(exporter, 1, 1)
        monkeypatch.setattr(process, "COMMAND", command)
        fake.wait_for(lambda fake: "cmpl-1" in response_ids(fake))
        assert exporter.close(10)
    assert "cannot be started: [Errno 2] No such file or directory: '/missing'" in caplog.text


def test_between_two_processes_spans_wait_in_a_bounded_queue() -> None:
    with collector() as fake, exporting(fake.url, max_queue_size=300) as exporter:
        exporter._process.kill()
        exporter._process.wait()
        offer(exporter, 1000)
        assert len(exporter._queue) == 300
        assert not exporter.close(10)
    assert fake.requests == []


def test_a_process_that_sleeps_holds_nobody_up(capfd: pytest.CaptureFixture[str]) -> None:
    with collector() as fake, exporting(fake.url, max_queue_size=3000) as exporter:
        exporter._process.send_signal(signal.SIGSTOP)
        offer(exporter, 50_000)  # far more than a socket holds
        assert len(exporter._queue) == 3000
        exporter._process.send_signal(signal.SIGCONT)
        assert exporter.close(20)
    arrived = response_ids(fake)
    assert arrived[:3000] == wanted_ids(3000)
    assert len(arrived) == len(set(arrived)) < 50_000
    lost = 50_000 - len(arrived)
    said = capfd.readouterr().err
    assert f"{len(arrived)} spans exported, {lost} lost: {lost} at a full queue" in said


def test_a_process_that_woke_up_is_handed_spans_again_before_the_delay() -> None:
    with collector() as fake, exporting(fake.url, max_queue_size=512) as exporter:
        exporter._process.send_signal(signal.SIGSTOP)
        offer(exporter, 50_000)
        exporter._process.send_signal(signal.SIGCONT)

        def all_are_handed_over() -> bool:
            offer(exporter, process.TOGETHER)
            return len(exporter._queue) < process.TOGETHER and not exporter._unsent

        wait_until(all_are_handed_over, "the process reads again")
        assert exporter.close(20)
    assert fake.requests


def test_the_timer_leaves_a_closed_exporter_alone() -> None:
    with collector() as fake, exporting(fake.url, max_queue_size=20, schedule_delay=0.001) as some:
        offer(some, 10_000)  # there is something to tell all the time
        assert some.close(10)
    assert fake.requests


def test_spans_with_a_fact_that_cannot_be_packed_are_not_taken() -> None:
    with collector() as fake, exporting(fake.url) as exporter:
        with pytest.raises(ValueError, match="unmarshallable"):
            exporter.offer(record(), record(status=http.HTTPStatus.OK))
        offer(exporter, 1)
        assert exporter.close(10)
    assert response_ids(fake) == wanted_ids(1)


def test_signals_to_the_whole_group_leave_it_to_its_work() -> None:
    with collector() as fake, exporting(fake.url, schedule_delay=0.02) as exporter:
        offer(exporter, 1)
        fake.wait_for(lambda fake: len(fake.requests) == 1)  # it has begun
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            exporter._process.send_signal(number)
        offer(exporter, 1, 1)
        assert exporter.close(10)
    assert response_ids(fake) == wanted_ids(2)


KILLED = """
import os, sys
sys.path.insert(0, sys.argv[2])
from tinyllm.tracing import ExportConfig, ExporterProcess
from tracing.records import record
exporter = ExporterProcess(ExportConfig(sys.argv[1], max_batch_size=5))
for number in range(5):
    exporter.offer(record(response_id=f"cmpl-{number}"))
os.kill(os.getpid(), 9)
"""


def test_spans_of_an_engine_that_was_killed_arrive() -> None:
    with collector() as fake:
        tests = Path(__file__).parents[1]
        done = subprocess.run([sys.executable, "-c", KILLED, fake.url, tests], check=False)
        assert done.returncode == -signal.SIGKILL
        fake.wait_for(lambda fake: response_ids(fake) == wanted_ids(5))


def test_close_gives_up_in_time_on_a_silent_collector(capfd: pytest.CaptureFixture[str]) -> None:
    with collector(hang) as fake, exporting(fake.url, max_batch_size=10) as exporter:
        offer(exporter, 95)
        start = time.monotonic()
        assert not exporter.close(0.3)
        assert time.monotonic() - start < 5
        assert exporter._process.poll() is not None
    assert "0 spans exported, 95 lost: " in capfd.readouterr().err


def test_close_gives_up_in_time_on_a_process_that_sleeps(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with exporting(f"http://127.0.0.1:{closed_port()}/") as exporter:
        exporter._process.send_signal(signal.SIGSTOP)
        offer(exporter, 10)
        start = time.monotonic()
        assert not exporter.close(0.1)
        assert time.monotonic() - start < 5
    assert caplog.messages == [
        "the process that exports spans is gone or did not end in time; "
        "the last 10 spans are lost, and what it held"
    ]


def test_offers_after_the_end_are_dropped() -> None:
    with collector() as fake, exporting(fake.url) as exporter:
        assert exporter.close(10)
        offer(exporter, 200)
        assert exporter.close(10)
    assert fake.requests == []


# The messages

TEXTS = st.none() | st.text(max_size=5)
NUMBERS = st.none() | st.integers(0, 2**64 - 1)


@given(
    st.lists(
        st.builds(
            bare,
            parent=st.sampled_from([None, PARENT]),
            host=TEXTS,
            model=TEXTS,
            seed=NUMBERS,
            temperature=st.none() | st.floats(allow_nan=False) | st.integers(0, 2),
            stream=st.none() | st.booleans(),
        )
    ),
    st.integers(0, 10**12),
    st.none() | st.floats(0, 10),
)
def test_a_handover_is_read_as_it_was_packed(
    records: list[CompletionSpan], overflow: int, deadline: float | None
) -> None:
    groups = [(1, pack_spans(records[:1])), (len(records), pack_spans(records))]
    stream = io.BytesIO(pack(groups, overflow, deadline) * 2)
    for _ in range(2):
        found = read(stream)
        assert found == Handover(groups, overflow, deadline)
        assert list(map(CompletionSpan.of, unpack_spans(found.groups[1][1]))) == records
    with pytest.raises(EOFError):
        read(stream)


def test_a_stream_that_ends_early_is_an_end() -> None:
    groups = [(1, pack_spans([record()]))]
    whole = pack(groups, 0)
    for cut in range(len(whole)):
        with pytest.raises(EOFError):
            read(io.BytesIO(whole[:cut]))
    assert read(io.BytesIO(whole)) == Handover(groups, 0, None)


def test_a_configuration_is_read_as_it_was_packed() -> None:
    config = ExportConfig("http://h/v1/traces", {"api-key": "k"}, sampler=Sampler(0.5, True))
    assert read_config(io.BytesIO(pack_config(config))) == config
    with pytest.raises(EOFError):
        read_config(io.BytesIO(b""))
