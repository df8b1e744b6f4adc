"""Event streams beyond the corpus: the writer's fields, the parser's memory, its cap."""

from __future__ import annotations

import pytest

from tinyllm.wire import SseError, SseEvent, SseParser, sse_comment, sse_event


def test_sse_stream_framing() -> None:
    stream = "".join(map(sse_event, ['{"i":0}', '{"i":1}', "[DONE]"]))
    assert stream == 'data: {"i":0}\n\ndata: {"i":1}\n\ndata: [DONE]\n\n'


@pytest.mark.parametrize(
    ("payload", "written"),
    [
        ("", "data: \n\n"),
        ("a\nb", "data: a\ndata: b\n\n"),
        ("a\rb\r\nc\n\rd", "data: a\ndata: b\ndata: c\ndata: \ndata: d\n\n"),
        ("\n", "data: \ndata: \n\n"),
        (
            "a\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029b",
            "data: a\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029b\n\n",
        ),
        ("data: x\n\nid: 1", "data: data: x\ndata: \ndata: id: 1\n\n"),
        (" led", "data:  led\n\n"),
    ],
)
def test_every_line_of_a_payload_stands_behind_data(payload: str, written: str) -> None:
    assert sse_event(payload) == written


def test_fields_stand_before_the_data() -> None:
    written = sse_event("a\nb", event="add", id="7", retry=1500)
    assert written == "event: add\nid: 7\nretry: 1500\ndata: a\ndata: b\n\n"
    assert sse_event("", id="") == "id: \ndata: \n\n"
    parser = SseParser()
    assert parser.feed(written.encode()) == [SseEvent("add", "a\nb", "7", 1500)]
    assert (parser.last_event_id, parser.retry) == ("7", 1500)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        pytest.param({"event": "a\nb"}, "event is one line", id="event-lf"),
        pytest.param({"event": "a\r"}, "event is one line", id="event-cr"),
        pytest.param({"id": "1\r\ndata: x"}, "id is one line", id="id-crlf"),
        pytest.param({"id": "1\0"}, "NUL", id="id-nul"),
        pytest.param({"retry": -1}, "milliseconds", id="retry-negative"),
    ],
)
def test_field_that_would_break_an_event_is_refused(fields: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        sse_event("x", **fields)  # type: ignore[arg-type]


def test_comment_is_no_event() -> None:
    assert sse_comment("") == ": \n\n"
    assert sse_comment("a\r\nb\rdata: c") == ": a\n: b\n: data: c\n\n"
    parser = SseParser()
    assert parser.feed(sse_comment("data: c\ndata: d").encode()) == []
    assert parser.feed(b"data: x\n\n") == [SseEvent("message", "x", "", None)]


def test_event_is_given_when_its_empty_line_ends() -> None:
    parser = SseParser()
    assert parser.feed(b"data: x\r") == []
    assert parser.feed(b"\n") == []
    assert parser.feed(b"\r") == [SseEvent("message", "x", "", None)]
    assert parser.feed(b"\n") == []
    assert parser.feed(b"data: y\n\n") == [SseEvent("message", "y", "", None)]


def test_pieces_without_bytes_change_nothing() -> None:
    parser = SseParser()
    found = []
    for piece in (b"", b"data: x\r", b"", b"\n", b"", b"\n"):
        found += parser.feed(piece)
    assert found == [SseEvent("message", "x", "", None)]


def test_cut_stream_gives_no_half_event_and_keeps_the_last_whole_id() -> None:
    parser = SseParser()
    events = parser.feed(b"id: 1\ndata: a\n\nid: 2\ndata: b\n")
    assert events == [SseEvent("message", "a", "1", None)]
    assert parser.last_event_id == "1"


def test_id_without_data_is_remembered() -> None:
    parser = SseParser()
    assert parser.feed(b"id: 5\n\n") == []
    assert parser.last_event_id == "5"
    assert parser.feed(b"data: x\n\n") == [SseEvent("message", "x", "5", None)]


@pytest.mark.parametrize(
    ("line", "retry"),
    [
        (b"retry: 0", 0),
        (b"retry:0010", 10),
        (b"retry: " + b"0" * 5000 + b"7", 7),
        (b"retry", None),
        (b"retry: +1", None),
        (b"retry: 1.5", None),
        (b"retry:  1", None),
        (b"retry: 1 ", None),
        (b"retry: \xd9\xa1", None),
        (b"retry: " + b"9" * 5000, None),
    ],
)
def test_retry_takes_ascii_digits_alone(line: bytes, retry: int | None) -> None:
    parser = SseParser()
    parser.feed(line + b"\n")
    assert parser.retry == retry


def test_bytes_that_are_no_utf8_become_replacement_characters() -> None:
    parser = SseParser()
    assert parser.feed(b"data: a\xff\xe2\x82\n\n") == [
        SseEvent("message", "a\ufffd\ufffd", "", None)
    ]


def test_stream_cannot_make_its_reader_hold_more_than_the_cap() -> None:
    for piece in (b"x" * 10, b"data: x\n"):
        parser = SseParser(max_event_bytes=100)
        with pytest.raises(SseError, match="over 100 bytes"):  # noqa: PT012
            for _ in range(1000):
                parser.feed(piece)
    parser = SseParser(max_event_bytes=100)
    for _ in range(1000):
        assert len(parser.feed(b"data: " + b"x" * 80 + b"\n\n: " + b"y" * 80 + b"\n")) == 1
