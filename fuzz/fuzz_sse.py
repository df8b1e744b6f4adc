"""Any bytes give the same events however they are cut; any payload survives writer and parser."""

from __future__ import annotations

import re

from tinyllm.wire import SseEvent, SseParser, sse_comment, sse_event


def events(parts: list[bytes]) -> tuple[list[SseEvent], str, int | None]:
    """Parse a stream in pieces; return what a client would know then."""
    parser = SseParser()
    found = [event for part in parts for event in parser.feed(part)]
    return found, parser.last_event_id, parser.retry


def pieces(cut: int, stream: bytes) -> list[bytes]:
    """Cut in two at an offset, or, for every eighth `cut`, after every byte of the first 64."""
    if cut % 8:
        at = cut % (len(stream) + 1)
        return [stream[:at], stream[at:]]
    return [*(stream[at : at + 1] for at in range(min(len(stream), 64))), stream[64:]]


def check(data: bytes) -> None:
    """The first byte says how to cut, the rest is a stream, and as text a payload."""
    cut, stream = data[0] if data else 0, data[1:]
    whole = events([stream])
    assert events(pieces(cut, stream)) == whole
    assert all("\r" not in event.data + event.event + event.id for event in whole[0])
    check_writer(stream.decode("utf-8", "replace"), cut)


def check_writer(text: str, cut: int) -> None:
    """A payload comes back with its line ends as LF, whatever else the block holds."""
    payload = re.sub("\r\n|\r", "\n", text)
    plain = sse_event(text).encode()
    assert events(pieces(cut, plain))[0] == [SseEvent("message", payload, "", None)]
    kind, _, rest = text.partition("\n")
    try:
        full = sse_comment(text) + sse_event(rest, event=kind, id=kind, retry=len(text))
    except ValueError:
        assert "\r" in kind or "\0" in kind
        return
    payload = re.sub("\r\n|\r", "\n", rest)
    expected = SseEvent(kind or "message", payload, kind, len(text))
    assert events(pieces(cut, full.encode() + plain))[0][0] == expected
