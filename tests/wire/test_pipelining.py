"""Requests behind each other, cut wherever TCP cuts them."""

from __future__ import annotations

import pytest

from tinyllm.wire import RequestParser

GET = b"GET / HTTP/1.1\r\nHost: t\r\n\r\n"
MORE_THAN_A_HEAD = GET * 1000


@pytest.mark.parametrize("left", range(len(GET) + 1))
@pytest.mark.parametrize("after", [GET, MORE_THAN_A_HEAD], ids=["one", "many"])
def test_bytes_left_behind_a_request_begin_the_next(left: int, after: bytes) -> None:
    parser = RequestParser()
    parser.feed(GET + GET[:left])
    requests = 0
    while parser.next_request() is not None:
        requests += 1
    parser.feed(GET[left:] + after)
    while parser.next_request() is not None:
        requests += 1
    assert requests == 2 + len(after) // len(GET)
    assert parser.buffered == 0
