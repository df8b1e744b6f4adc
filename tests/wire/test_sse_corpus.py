"""Event streams of public test suites, parsed however they are cut; payloads, written."""

from __future__ import annotations

import itertools

import pytest

from support import wiredata
from tinyllm.wire import SseEvent, SseParser, sse_event

CASES = wiredata.load("sse_streams.json")
STREAMS = [case for case in CASES if case["kind"] == "parser"]
PAYLOADS = [case for case in CASES if case["kind"] == "writer"]


def parse(pieces: list[bytes]) -> tuple[list[SseEvent], str, int | None]:
    parser = SseParser()
    events = list(itertools.chain.from_iterable(map(parser.feed, pieces)))
    return events, parser.last_event_id, parser.retry


def cut_at(data: bytes, offsets: list[int]) -> list[bytes]:
    edges = [0, *offsets, len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


@pytest.mark.parametrize("case", wiredata.rows(STREAMS))
def test_stream_gives_the_events_of_the_standard_however_it_is_cut(case: wiredata.Case) -> None:
    data = wiredata.raw(case, "stream_base64")
    events = [SseEvent(**event) for event in case["events"]]
    expected = (events, case["last_id"], case["retry"])
    assert parse([data]) == expected
    assert parse(wiredata.single_bytes(data)) == expected
    for offsets in case.get("chunkings", []):
        assert parse(cut_at(data, offsets)) == expected
    for pieces in wiredata.cuts_in_two(data):
        assert parse(pieces) == expected


@pytest.mark.parametrize("case", wiredata.rows(PAYLOADS))
def test_payload_is_written_as_data_lines(case: wiredata.Case) -> None:
    written = sse_event(case["payload"]).encode()
    assert written == wiredata.raw(case)
    assert parse([written]) == ([SseEvent("message", case["parsed_back"], "", None)], "", None)


def test_corpus_is_whole() -> None:
    assert (len(STREAMS), len(PAYLOADS)) == (53, 10)
