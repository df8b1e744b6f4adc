"""The event reader: the corpus of event streams, and the lenient view of a broken one."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from conformance.servers import connected, scripted, sends
from tinyllm.conformance.events import EventStream
from tinyllm.conformance.evidence import CheckFailed, Exchange, Mark
from tinyllm.conformance.response import Framing, Response, read_response

DATA = Path(__file__).parents[1] / "data" / "sse_streams.json"
CASES = [case for case in json.loads(DATA.read_text())["cases"] if case["kind"] == "parser"]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


def stream_of(body: bytes, cuts: list[int]) -> EventStream:
    """Return the events of a body that arrives in pieces."""
    exchange = Exchange("x")
    mark = Mark(exchange, 0, 0)
    response = Response(exchange, 200, "1.1", [], mark, mark, framing=Framing.CLOSE)
    events = EventStream(response)
    ends = [*cuts, len(body)]
    for start, end in zip([0, *cuts], ends, strict=True):
        exchange.received += body[start:end]
        exchange.reads.append((end, float(end)))
        response.pieces.append((start, start))
        response.body += body[start:end]
        events.update()
    return events


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_the_corpus_gives_its_data_however_it_arrives(case: dict[str, Any]) -> None:
    body = base64.b64decode(case["stream_base64"])
    expected = [event["data"] for event in case["events"]]
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        with pytest.raises(CheckFailed, match="not UTF-8"):
            stream_of(body, [])
        return
    for cuts in ([], [len(body) // 2], list(range(1, len(body)))):
        events = stream_of(body, cuts).events
        # Whether a CR that ends the stream is followed by an LF cannot be known: it waits.
        assert [event.data for event in events] == expected[: len(events)]
        assert len(expected) - len(events) <= body.endswith(b"\r")


def test_events_without_blank_lines_are_one_event_and_still_several_payloads() -> None:
    events = stream_of(b'data: {"a":1}\ndata: {"a":2}\ndata: [DONE]\n', [])
    assert events.events == []
    assert events.rest is not None
    assert [payload.text for payload in events.payloads] == ['{"a":1}', '{"a":2}', "[DONE]"]
    assert [payload.text for payload in events.chunks] == ['{"a":1}', '{"a":2}']


def test_one_json_over_several_data_lines_is_one_payload() -> None:
    events = stream_of(b'data: {\ndata: "a": 1\ndata: }\n\n', [])
    (payload,) = events.payloads
    assert payload.json() == {"a": 1}
    assert bytes(events.response.body)[payload.mark.start : payload.mark.end] == (
        b'data: {\ndata: "a": 1\ndata: }'
    )


def test_comments_and_other_fields_are_told_apart() -> None:
    events = stream_of(b": ping\n\nevent: x\nid: 1\ndata: {}\n\n", [])
    assert (events.comments, events.events[0].others, events.rest) == (1, ["event", "id"], None)


def test_each_event_has_the_time_at_which_its_last_byte_came() -> None:
    body = b"data: 1\n\ndata: 2\n\n"
    events = stream_of(body, [4, 9, 17])
    assert [event.time for event in events.events] == [9.0, 18.0]


def test_a_stream_from_the_wire_in_chunks_is_marked_on_the_wire() -> None:
    head = HEAD.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n")
    data = head + b"7\r\ndata: 1\r\n2\r\n\n\n\r\n0\r\n\r\n"
    with scripted(sends(data)) as address:
        connection = connected(address)
        response = read_response(connection)
        connection.close()
    events = EventStream(response)
    events.update()
    (payload,) = events.payloads
    received = bytes(response.exchange.received)
    assert received[payload.mark.start : payload.mark.end] == b"data: 1"
