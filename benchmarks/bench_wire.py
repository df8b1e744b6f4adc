"""How fast the wire layer reads requests and writes answers, beside h11 and httptools.

Every contender gets the same bytes and gives back the same things: method, target, version, fields
and body. They take turns in rounds of two milliseconds of processor time; a ratio is the median of
the rounds' ratios, so that whatever else the machine does meets all of them alike. Run it with the
`test` extra installed:

    python benchmarks/bench_wire.py
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import h11
import httptools

from tinyllm.wire import (
    MAX_HEAD_BYTES,
    Request,
    RequestParser,
    json_string,
    parse_json,
    response_bytes,
    sse_event,
)

CURL_BODY = b'{"model":"m","prompt":"Once"}'
CURL = (
    b"POST /v1/completions HTTP/1.1\r\n"
    b"Host: localhost:8000\r\n"
    b"User-Agent: curl/7.88.1\r\n"
    b"Accept: */*\r\n"
    b"Content-Length: 29\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n"
    b"\r\n" + CURL_BODY
)
# As openai-python 3.57.0 sends it.
OPENAI_BODY = b'{"model":"tracer","prompt":"Once upon a time","max_tokens":32,"temperature":0}'
OPENAI = (
    b"POST /v1/completions HTTP/1.1\r\n"
    b"Host: 127.0.0.1:8000\r\n"
    b"Accept-Encoding: gzip, deflate\r\n"
    b"Connection: keep-alive\r\n"
    b"authorization: Bearer sk-test\r\n"
    b"accept: application/json\r\n"
    b"content-type: application/json\r\n"
    b"user-agent: OpenAI/Python 3.57.0\r\n"
    b"x-stainless-lang: python\r\n"
    b"x-stainless-package-version: 3.57.0\r\n"
    b"x-stainless-os: Linux\r\n"
    b"x-stainless-arch: x64\r\n"
    b"x-stainless-runtime: CPython\r\n"
    b"x-stainless-runtime-version: 3.11.7\r\n"
    b"x-stainless-async: false\r\n"
    b"x-stainless-retry-count: 0\r\n"
    b"x-stainless-read-timeout: 600\r\n"
    b"Content-Length: 78\r\n"
    b"\r\n" + OPENAI_BODY
)
LARGE_BODY = (
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost:8000\r\nContent-Length: 102400\r\n\r\n"
    + b"x" * 102400
)
ROUNDS, SECONDS_PER_ROUND = 200, 0.002


def with_tinyllm(data: bytes) -> Request:
    parser = RequestParser()
    parser.feed(data)
    request = parser.next_request()
    assert request is not None
    return request


def with_h11(data: bytes) -> tuple[h11.Request, bytes]:
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(data)
    request = connection.next_event()
    assert isinstance(request, h11.Request)
    body = b""
    while isinstance(event := connection.next_event(), h11.Data):
        body += event.data
    assert isinstance(event, h11.EndOfMessage)
    return request, body


class Collected:
    """What httptools' callbacks gave."""

    def __init__(self) -> None:
        self.target = b""
        self.fields: list[tuple[bytes, bytes]] = []
        self.body = b""

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.fields.append((name, value))

    def on_body(self, body: bytes) -> None:
        self.body += body


def with_httptools(data: bytes) -> tuple[bytes, str, Collected]:
    collected = Collected()
    parser = httptools.HttpRequestParser(collected)
    parser.feed_data(data)
    return parser.get_method(), parser.get_http_version(), collected


def in_pieces(pieces: list[bytes]) -> Request:
    parser = RequestParser()
    request = None
    for piece in pieces:
        parser.feed(piece)
        request = parser.next_request()
    assert request is not None
    return request


def largest_head() -> bytes:
    """A head of just under 16 KiB, in field lines like those of a real client."""
    head = bytearray(b"GET / HTTP/1.1\r\nHost: localhost:8000\r\n")
    while len(head) < MAX_HEAD_BYTES - 60:
        head += b"x-stainless-field-%03d: application/json\r\n" % head.count(b"\n")
    return bytes(head + b"\r\n")


class Times:
    """What one call took in each round, by contender."""

    def __init__(self, contenders: dict[str, Callable[[], object]]) -> None:
        calls = {
            name: max(1, int(SECONDS_PER_ROUND / timed(call, 1)))
            for name, call in contenders.items()
        }
        self.rounds = [
            {name: timed(call, calls[name]) for name, call in contenders.items()}
            for _ in range(ROUNDS)
        ]

    def microseconds(self, name: str) -> float:
        return median(times[name] for times in self.rounds) * 1e6

    def ratio(self, name: str, other: str) -> float:
        return median(times[name] / times[other] for times in self.rounds)


def timed(call: Callable[[], object], calls: int) -> float:
    """Processor seconds of one call, over `calls` of them."""
    start = time.process_time()
    for _ in range(calls):
        call()
    return (time.process_time() - start or 1e-9) / calls


def compare_parsers() -> None:
    print(
        f"{'':<14}{'tinyllm':>12}{'httptools':>12}{'h11':>12}{'x httptools':>14}{'h11 / ours':>13}"
    )
    for name, data in (("curl", CURL), ("openai-python", OPENAI), ("100 KB body", LARGE_BODY)):
        times = Times(
            {
                "ours": partial(with_tinyllm, data),
                "httptools": partial(with_httptools, data),
                "h11": partial(with_h11, data),
            }
        )
        columns = "".join(f"{times.microseconds(each):>9.2f} us" for each in times.rounds[0])
        ratios = times.ratio("ours", "httptools"), times.ratio("h11", "ours")
        print(f"{name:<14}{columns}{ratios[0]:>14.2f}{ratios[1]:>13.2f}")


def compare_cuts() -> None:
    head = largest_head()
    pieces = [head[offset : offset + 1] for offset in range(len(head))]
    times = Times({"whole": partial(with_tinyllm, head), "cut": partial(in_pieces, pieces)})
    print(
        f"head of {len(head)} bytes: whole {times.microseconds('whole'):.0f} us, byte by byte "
        f"{times.microseconds('cut'):.0f} us: {times.ratio('cut', 'whole'):.1f} times"
    )


def compare_writers() -> None:
    payloads = [json.dumps({"i": i, "text": "abc"}) for i in range(256)]
    times = Times(
        {
            "256 events framed together": lambda: "".join(map(sse_event, payloads)).encode(),
            "response_bytes": lambda: response_bytes(200, "application/json", (), OPENAI_BODY),
            "parse_json of 78 bytes": lambda: parse_json(OPENAI_BODY),
            "json.loads of the same": lambda: json.loads(OPENAI_BODY),
            "json_string of 16 characters": lambda: json_string("Once upon a time"),
        }
    )
    for name in times.rounds[0]:
        print(f"{name}: {times.microseconds(name):.2f} us")


if __name__ == "__main__":
    compare_parsers()
    compare_cuts()
    compare_writers()
