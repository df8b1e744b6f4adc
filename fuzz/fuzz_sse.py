"""Any bytes give the same events however they are cut; any payload survives writer and parser."""

from __future__ import annotations

import re

from tinyllm.wire import SseEvent, SseParser, sse_comment, sse_event


def events(stream: bytes, size: int) -> tuple[list[SseEvent], str, int | None]:
    """Parse a stream in pieces of `size` bytes; return what a client would know then."""
    parser = SseParser()
    found = []
    for at in range(0, len(stream), size):
        found += parser.feed(stream[at : at + size])
    return found, parser.last_event_id, parser.retry


def check(data: bytes) -> None:
    """The first byte says how to cut, the rest is a stream, and as text a payload."""
    cut, stream = data[:1], data[1:]
    size = len(stream) // 16 + (cut[0] % 8 if cut else 0) + 1  # 16 pieces at most
    whole = events(stream, len(stream) or 1)
    assert events(stream, size) == whole
    assert all("\r" not in event.data + event.event + event.id for event in whole[0])
    check_writer(stream.decode("utf-8", "replace"), size)


def check_writer(text: str, size: int) -> None:
    """A payload comes back with its line ends as LF, whatever else the block holds."""
    payload = re.sub("\r\n|\r", "\n", text)
    plain = sse_event(text).encode()
    assert events(plain, size)[0] == [SseEvent("message", payload, "", None)]
    kind, _, rest = text.partition("\n")
    try:
        full = sse_comment(text) + sse_event(rest, event=kind, id=kind, retry=len(text))
    except ValueError:
        assert "\r" in kind or "\0" in kind
        return
    payload = re.sub("\r\n|\r", "\n", rest)
    expected = SseEvent(kind or "message", payload, kind, len(text))
    assert events(full.encode() + plain, size)[0][0] == expected
