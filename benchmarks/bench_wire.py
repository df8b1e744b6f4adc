"""How fast the wire layer reads requests and writes answers, beside h11 and httptools.

Every contender gets the same bytes and gives back the same things: method, target, version,
fields and body.
The contenders take turns in short rounds and each one's best round counts, in processor time, so
that a busy machine disturbs all of them alike. Run it with the `test` extra installed:

    python benchmarks/bench_wire.py
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial

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


def best_seconds(contenders: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The best processor time of one call, per contender."""
    best = dict.fromkeys(contenders, float("inf"))
    calls = {
        name: max(1, int(SECONDS_PER_ROUND / timed(call, 1))) for name, call in contenders.items()
    }
    for _ in range(ROUNDS):
        for name, call in contenders.items():
            best[name] = min(best[name], timed(call, calls[name]))
    return best


def timed(call: Callable[[], object], calls: int) -> float:
    start = time.process_time()
    for _ in range(calls):
        call()
    return (time.process_time() - start or 1e-9) / calls


def compare_parsers() -> None:
    print(
        f"{'':<14}{'tinyllm':>12}{'httptools':>12}{'h11':>12}{'x httptools':>14}{'h11 / ours':>13}"
    )
    for name, data in (("curl", CURL), ("openai-python", OPENAI), ("100 KB body", LARGE_BODY)):
        best = best_seconds(
            {
                "tinyllm": partial(with_tinyllm, data),
                "httptools": partial(with_httptools, data),
                "h11": partial(with_h11, data),
            }
        )
        ours, tools, slow = best.values()
        print(
            f"{name:<14}{ours * 1e6:>9.2f} us{tools * 1e6:>9.2f} us{slow * 1e6:>9.2f} us"
            f"{ours / tools:>14.2f}{slow / ours:>13.2f}"
        )


def compare_cuts() -> None:
    head = largest_head()
    pieces = [head[offset : offset + 1] for offset in range(len(head))]
    best = best_seconds({"whole": partial(with_tinyllm, head), "bytes": partial(in_pieces, pieces)})
    whole, cut = best.values()
    print(
        f"head of {len(head)} bytes: whole {whole * 1e6:.0f} us, "
        f"byte by byte {cut * 1e6:.0f} us: {cut / whole:.1f} times"
    )


def writers() -> None:
    payloads = [json.dumps({"i": i, "text": "abc"}) for i in range(256)]
    best = best_seconds(
        {
            "sse": lambda: "".join(map(sse_event, payloads)).encode(),
            "response": lambda: response_bytes(200, "application/json", (), OPENAI_BODY),
            "parse_json": lambda: parse_json(OPENAI_BODY),
            "json.loads": lambda: json.loads(OPENAI_BODY),
            "json_string": lambda: json_string("Once upon a time"),
        }
    )
    print(f"one event of 256 framed together: {best['sse'] / 256 * 1e6:.3f} us")
    print(f"response_bytes: {best['response'] * 1e6:.2f} us")
    print(f"parse_json: {best['parse_json'] * 1e6:.2f} us")
    print(f"json.loads: {best['json.loads'] * 1e6:.2f} us")
    print(f"json_string: {best['json_string'] * 1e6:.3f} us")


if __name__ == "__main__":
    compare_parsers()
    compare_cuts()
    writers()
