"""What must hold for any input: requests, JSON values, payloads, however they are cut."""

from __future__ import annotations

import itertools
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from tinyllm.wire import (
    ClientGone,
    HttpError,
    Json,
    JsonError,
    Request,
    RequestParser,
    SseEvent,
    SseParser,
    dump_json,
    json_string,
    parse_json,
    sse_comment,
    sse_event,
)

SOME, MANY = settings(max_examples=50, deadline=None), settings(max_examples=200, deadline=None)
CUTS = st.lists(st.integers(0, 400), max_size=12)
TEXT = st.text(max_size=60)
LINES = st.text(alphabet=st.sampled_from("ab:\r\n \0\u2028é😀"), max_size=40)
TCHAR = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]"


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges) if start < end]


def outcome(parts: list[bytes]) -> list[object]:
    """All requests, then the error, as the parser gives them for the pieces and their end."""
    parser = RequestParser(max_head_bytes=200, max_body_bytes=20)
    found: list[object] = []
    for part in [*parts, b""]:
        parser.feed(part)
        try:
            while (request := parser.next_request()) is not None:
                found.append(request)
        except HttpError as error:
            return [*found, type(error), error.message]
    raise AssertionError("more bytes wanted after the end of the stream")


@SOME
@given(st.binary(max_size=300), CUTS)
def test_any_bytes_give_the_same_however_they_are_cut(data: bytes, cuts: list[int]) -> None:
    assert outcome(pieces(data, cuts)) == outcome([data] if data else [])


FRAGMENTS = [b"GET / HTTP/1.1\r\nHost: a\r\n", b"POST /a HTTP/1.0\r\n", b"Content-Length: 3\r\n"]
FRAGMENTS += [b"X: y\r\n", b"X:\r\n", b"\r\n", *(b"%c" % byte for byte in b"\r\n\t :a\0\xff")]
REQUEST_BYTES = st.lists(st.sampled_from(FRAGMENTS), max_size=16).map(b"".join)


@MANY
@given(REQUEST_BYTES, CUTS)
def test_almost_requests_give_the_same_however_they_are_cut(data: bytes, cuts: list[int]) -> None:
    assert outcome(pieces(data, cuts)) == outcome([data] if data else [])


@SOME
@given(
    method=st.from_regex(TCHAR + rb"{1,8}", fullmatch=True).filter(lambda m: m != b"CONNECT"),
    target=st.from_regex(rb"/[!-~]{0,20}", fullmatch=True),
    names=st.lists(st.from_regex(TCHAR + rb"{1,8}", fullmatch=True), max_size=5),
    value=st.from_regex(
        rb"([!-~\x80-\xff]([\t -~\x80-\xff]{0,9}[!-~\x80-\xff])?)?", fullmatch=True
    ),
    pad=st.sampled_from([b"", b" ", b"\t", b" \t ", b"  "]),
    body=st.binary(max_size=20),
    cuts=CUTS,
)
def test_any_request_of_the_grammar_is_read_as_written(
    method: bytes,
    target: bytes,
    names: list[bytes],
    value: bytes,
    pad: bytes,
    body: bytes,
    cuts: list[int],
) -> None:
    fields = [(b"Host", b"a"), (b"Content-Length", b"%d" % len(body))]
    fields += [(b"x-" + name, value) for name in names]
    lines = b"".join(name + b":" + pad + value + pad + b"\r\n" for name, value in fields)
    data = method + b" " + target + b" HTTP/1.1\r\n" + lines + b"\r\n" + body
    parser = RequestParser()
    for part in pieces(data * 2, cuts):
        parser.feed(part)
    expected = Request(method.decode(), target.decode(), fields, body)
    assert [parser.next_request(), parser.next_request(), parser.next_request()] == [
        expected,
        expected,
        None,
    ]


def test_the_end_of_nothing_is_a_client_that_has_gone() -> None:
    assert outcome([])[0] is ClientGone


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=20,
)


@SOME
@given(JSON_VALUES)
def test_any_json_value_survives_dump_and_parse(value: Json) -> None:
    written = dump_json(value)
    assert repr(parse_json(written)) == repr(value)
    assert repr(parse_json(written.encode(), reject_duplicates=True)) == repr(value)


@SOME
@given(TEXT)
def test_any_text_survives_json_string(text: str) -> None:
    written = json_string(text)
    assert parse_json(written) == text
    assert re.search("[\0-\x1f\x7f\x85\u2028\u2029]", written) is None


@SOME
@given(st.binary(max_size=60) | st.text(alphabet='[]{}",:\\u0d8e1-.tfn ', max_size=60))
def test_any_bytes_are_json_or_a_json_error(data: bytes | str) -> None:
    try:
        value = parse_json(data)
    except JsonError:
        return
    assert repr(parse_json(dump_json(value))) == repr(value)


@SOME
@given(LINES, LINES, st.none() | TEXT, st.none() | TEXT, st.none() | st.integers(0, 10**6), CUTS)
def test_any_payload_survives_writer_and_parser(
    payload: str,
    comment: str,
    event: str | None,
    id: str | None,
    retry: int | None,
    cuts: list[int],
) -> None:
    event, id = (text and re.sub("[\r\n\0]", "", text) for text in (event, id))
    written = sse_comment(comment) + sse_event(payload, event=event, id=id, retry=retry)
    parser = SseParser()
    found = [each for part in pieces(written.encode(), cuts) for each in parser.feed(part)]
    expected = re.sub("\r\n|\r", "\n", payload)
    assert found == [SseEvent(event or "message", expected, id or "", retry)]


STREAM_FRAGMENTS = [
    b"data",
    b"event",
    b"id",
    b"retry",
    b": ",
    b"\r\n",
    b"\xef\xbb\xbf",
    b"\xe2\x82",
]
STREAM_FRAGMENTS += [b"%c" % byte for byte in b":\r\n 1x\0\xac"]


@MANY
@given(st.lists(st.sampled_from(STREAM_FRAGMENTS), max_size=40).map(b"".join), CUTS)
def test_any_stream_gives_the_same_events_however_it_is_cut(data: bytes, cuts: list[int]) -> None:
    whole, cut = SseParser(), SseParser()
    events = whole.feed(data)
    assert [event for part in pieces(data, cuts) for event in cut.feed(part)] == events
    assert (cut.last_event_id, cut.retry) == (whole.last_event_id, whole.retry)
