"""What a collector's answers mean, and that no attempt outlives its deadline."""

from __future__ import annotations

import gzip
import json
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from support import collectors
from support.collectors import (
    OK,
    closed_port,
    collector,
    hang,
    hang_up,
    reset,
    response,
    then_close,
    trickle,
)
from tinyllm import __version__
from tinyllm.tracing import ExportConfig
from tinyllm.tracing.transport import Accepted, Answer, Collector, Refused, Unavailable, retry_after

BODY = b'{"resourceSpans":[]}'
PARTIAL = b'{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too\\nold"}}'


@contextmanager
def posting(url: str, **settings: Any) -> Iterator[Collector]:
    poster = Collector(ExportConfig(url, **settings))
    try:
        yield poster
    finally:
        poster.close()


def post(url: str, timeout: float = 5, **settings: Any) -> Answer:
    with posting(url, **settings) as poster:
        return poster.post([BODY], timeout)


@pytest.mark.parametrize(
    ("answer", "meaning"),
    [
        pytest.param(OK, Accepted(), id="200"),
        pytest.param(response(202, b""), Accepted(), id="202-empty"),
        pytest.param(response(200, b"\x0a\x00"), Accepted(), id="200-protobuf"),
        pytest.param(response(200, PARTIAL), Accepted(3, "too old"), id="partial"),
        pytest.param(
            response(200, b'{"partialSuccess":{"rejectedSpans":2}}'), Accepted(2), id="number"
        ),
        pytest.param(
            response(200, b'{"partialSuccess":{"errorMessage":"hm"}}'), Accepted(0, "hm"), id="hint"
        ),
        pytest.param(
            response(200, b'{"partialSuccess":{"rejectedSpans":-1}}'), Accepted(), id="negative"
        ),
        pytest.param(response(200, b'{"partialSuccess":[]}'), Accepted(), id="odd-partial"),
        pytest.param(response(200, b"[1]"), Accepted(), id="odd-json"),
        pytest.param(then_close(response(200, PARTIAL)[:-1]), Accepted(), id="cut-off-after-200"),
        pytest.param(
            response(400, b'{"code":3,"message":"bad id"}'), Refused("HTTP 400: bad id"), id="400"
        ),
        pytest.param(response(404, b"no\nhere"), Refused("HTTP 404: no here"), id="404-text"),
        pytest.param(response(401, b""), Refused("HTTP 401"), id="401-empty"),
        pytest.param(response(500, b"{}"), Refused("HTTP 500: {}"), id="500"),
        pytest.param(
            response(302, b"", "Location: http://other/"), Refused("HTTP 302"), id="redirect"
        ),
        pytest.param(response(502, b""), Unavailable("HTTP 502"), id="502"),
        pytest.param(response(503, b"", "Retry-After: 7"), Unavailable("HTTP 503", 7.0), id="503"),
        pytest.param(response(504, b"x"), Unavailable("HTTP 504: x"), id="504"),
        pytest.param(
            response(429, b"", "Retry-After: soon"), Unavailable("HTTP 429"), id="429-odd-wish"
        ),
        pytest.param(b"SMTP ready\r\n\r\n", Unavailable("BadStatusLine: SMTP ready"), id="no-http"),
        pytest.param(
            b"HTTP/1.1 100 Continue\r\n\r\n" + OK, Accepted(), id="an-interim-answer-is-skipped"
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
            Accepted(),
            id="chunked",
        ),
    ],
)
def test_answers(answer: collectors.Answer, meaning: object) -> None:
    with collector(answer) as fake:
        assert post(fake.url) == meaning


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(reset, "Connection reset by peer", id="reset"),
        pytest.param(hang_up, "Remote end closed connection without response", id="hang-up"),
    ],
)
def test_a_broken_connection_is_worth_another_try(answer: collectors.Answer, reason: str) -> None:
    with collector(answer) as fake:
        found = post(fake.url)
    assert isinstance(found, Unavailable)
    assert reason in found.reason


def test_a_closed_port_is_worth_another_try() -> None:
    assert post(f"http://127.0.0.1:{closed_port()}/") == Unavailable("Connection refused")


@pytest.mark.parametrize("answer", [hang, trickle], ids=["silent", "trickling"])
def test_an_attempt_ends_at_its_deadline(answer: collectors.Answer) -> None:
    with collector(answer) as fake:
        start = time.monotonic()
        assert post(fake.url, timeout=0.3) == Unavailable("no whole answer within 0.3 s")
        assert 0.3 <= time.monotonic() - start < 5


def test_the_request_on_the_wire() -> None:
    with collector() as fake:
        post(f"{fake.endpoint}/base/v1/traces?k=v", headers={"api-key": "x", "User-Agent": "mine"})
    (received,) = fake.requests
    assert received.request_line == "POST /base/v1/traces?k=v HTTP/1.1"
    assert received.headers == {
        "host": fake.endpoint.removeprefix("http://"),
        "accept-encoding": "identity",
        "content-length": str(len(BODY)),
        "content-type": "application/json",
        "user-agent": "mine",
        "api-key": "x",
    }
    assert received.body == BODY


def test_the_user_agent_names_us_and_an_empty_path_is_the_root() -> None:
    with collector() as fake:
        post(fake.endpoint)
    assert fake.requests[0].request_line == "POST / HTTP/1.1"
    assert fake.requests[0].headers["user-agent"] == f"tinyllm/{__version__}"


def test_gzip_bodies_are_smaller_and_whole() -> None:
    body = json.dumps({"resourceSpans": [{}] * 1000}).encode()
    with collector() as fake, posting(fake.url, gzip=True) as poster:
        assert poster.post([body[:100], body[100:]], 5) == Accepted()
    (received,) = fake.requests
    assert received.headers["content-encoding"] == "gzip"
    assert len(received.body) < len(body) / 10
    assert gzip.decompress(received.body) == body


def test_one_connection_serves_all_posts() -> None:
    with collector() as fake, posting(fake.url) as poster:
        assert [poster.post([BODY], 5) for _ in range(3)] == [Accepted()] * 3
        assert (len(fake.requests), fake.connections) == (3, 1)


def test_a_connection_that_the_collector_closed_is_not_used_again() -> None:
    # Without the look before the post, the second one would fail: nobody reads it.
    with collector(then_close(OK)) as fake, posting(fake.url) as poster:
        for number in range(1, 4):
            assert poster.post([BODY], 5) == Accepted()
            fake.wait_for(lambda fake: fake.hung_up == fake.connections)
            assert fake.connections == number


def test_connection_close_is_obeyed() -> None:
    closing = response(200, b"{}", "Connection: close")
    with collector(closing) as fake, posting(fake.url) as poster:
        assert [poster.post([BODY], 5) for _ in range(2)] == [Accepted()] * 2
        assert fake.connections == 2


def test_a_huge_answer_is_not_read_whole() -> None:
    huge = response(200, b" " * 1_000_000)
    with collector(huge, OK) as fake, posting(fake.url) as poster:
        assert [poster.post([BODY], 5) for _ in range(2)] == [Accepted()] * 2
        assert fake.connections == 2


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("0", 0.0),
        ("120", 120.0),
        ("-1", None),
        ("1.5", None),
        ("\u0661", None),
        ("", None),
        ("tomorrow", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wed, 21 Oct 2015 07:28:00 -0000", 0.0),
        ("Wed, 99 Oct 2015 07:28:00 GMT", None),
    ],
)
def test_retry_after(value: str | None, seconds: float | None) -> None:
    assert retry_after(value) == seconds


def test_retry_after_as_a_date_to_come() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    seconds = retry_after(date)
    assert seconds is not None
    assert 55 < seconds <= 60


def test_an_unusable_certificate_is_an_error_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Collector(ExportConfig("https://h/", certificate=str(tmp_path / "missing.pem")))
    (tmp_path / "empty.pem").write_text("nothing")
    with pytest.raises(ssl.SSLError):
        Collector(ExportConfig("https://h/", certificate=str(tmp_path / "empty.pem")))
