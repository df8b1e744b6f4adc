"""A real server held against the contract: each status, each header, each example it documents.

The examples of the document are not made up: the request that stands beside each gives that
very answer, but for the answer's id and its time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import models
from support.contract import COMPONENTS, CONTRACT, check_reply
from support.processes import TlServe, running
from support.wire import Address, complete, connect, exchange, get, post, read_all, read_reply

COMPLETIONS = "/v1/completions"
OPERATION = CONTRACT["paths"][COMPLETIONS]["post"]
REQUESTS = OPERATION["requestBody"]["content"]["application/json"]["examples"]
ANSWERS = OPERATION["responses"]["200"]["content"]

ERRORS = [
    ("BadRequest", "missing field", post(COMPLETIONS, {"model": "m"})),
    (
        "BadRequest",
        "bad field",
        post(COMPLETIONS, {"model": "m", "prompt": "a", "max_tokens": 4097}),
    ),
    ("BadRequest", "not JSON", post(COMPLETIONS, b"model=m")),
    ("BadRequest", "broken HTTP", b"POST /v1/completions HTTP/1.1\r\nContent-Length: 0\r\n\r\n"),
    ("NotFound", "unknown path", get("/v1/models")),
    ("MethodNotAllowed", "GET on a POST path", get(COMPLETIONS)),
    ("LengthRequired", "no length", b"POST /v1/completions HTTP/1.1\r\nHost: t\r\n\r\n"),
    (
        "ContentTooLarge",
        "too long",
        b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 1048577\r\n\r\n",
    ),
    ("ExpectationFailed", "unknown expectation", post(COMPLETIONS, b"{}", "Expect: tea")),
    ("HeaderFieldsTooLarge", "too long", get("/healthz", f"A: {'b' * 16384}")),
    (
        "TransferCodingUnsupported",
        "chunked",
        b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
]


@pytest.fixture(scope="module")
def address(succ_server: TlServe) -> Address:
    return succ_server.address


@pytest.fixture(scope="module")
def hasty_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlServe]:
    """A server with little patience, and a model with a broken row."""
    model = models.write_model(tmp_path_factory.mktemp("broken"), models.broken_after_a)
    with running(model, "--head-timeout", "0.3", "--body-timeout", "0.3") as server:
        yield server


def path_of(request: bytes) -> tuple[str, str]:
    method, target, _ = request.split(b"\r\n", 1)[0].decode().split(" ")
    return method, target


def documented_error(response: str, example: str) -> Any:
    content = COMPONENTS["responses"][response]["content"]["application/json"]
    return content["examples"][example]["value"]


def anonymous(body: bytes) -> str:
    """A body without what differs from answer to answer."""
    text = re.sub(r"cmpl-[0-9a-f]{32}", "cmpl-", body.decode())
    return re.sub(r'"created": ?\d+', '"created":0', text)


@pytest.mark.parametrize("name", REQUESTS)
def test_a_documented_request_gets_an_answer_as_documented(address: Address, name: str) -> None:
    reply = exchange(address, post(COMPLETIONS, REQUESTS[name]["value"]))
    assert reply.status == 200
    check_reply(reply, "POST", COMPLETIONS)


def test_the_documented_answers_are_those_of_the_server(address: Address) -> None:
    greedy = exchange(address, post(COMPLETIONS, REQUESTS["greedy"]["value"]))
    documented = ANSWERS["application/json"]["examples"]["greedy"]["value"]
    assert anonymous(greedy.body) == anonymous(
        json.dumps(documented, separators=(",", ":")).encode()
    )
    streamed = exchange(address, post(COMPLETIONS, REQUESTS["streamed"]["value"]))
    documented = ANSWERS["text/event-stream"]["examples"]["streamed"]["value"]
    assert anonymous(streamed.body) == anonymous(documented.encode())


@pytest.mark.parametrize("count", [1, 64, 65, 1000])
@pytest.mark.parametrize("keep_alive", [False, True], ids=["close", "keep-alive"])
def test_answers_and_streams_obey_the_contract(
    address: Address, count: int, keep_alive: bool
) -> None:
    headers = ["X-Request-Id: r-1", *(["Connection: keep-alive"] if keep_alive else [])]
    for stream in (False, True):
        fields = {"model": "mé", "prompt": "Zoë", "max_tokens": count, "stream": stream}
        with connect(address) as connection:
            connection.sendall(post(COMPLETIONS, fields, *headers))
            reply = read_reply(connection)
        values = check_reply(reply, "POST", COMPLETIONS)
        assert len(values) == (count if stream else 1)
        kept = keep_alive and not stream
        assert reply.headers["connection"] == ("keep-alive" if kept else "close")
        assert reply.headers["x-request-id"] == "r-1"


@pytest.mark.parametrize(
    ("response", "example", "request_bytes"),
    ERRORS,
    ids=[f"{name}: {what}" for name, what, _ in ERRORS],
)
def test_a_documented_error_is_what_the_server_says(
    address: Address, response: str, example: str, request_bytes: bytes
) -> None:
    reply = exchange(address, request_bytes)
    [error] = check_reply(reply, *path_of(request_bytes))
    assert error == documented_error(response, example)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", ["/healthz", "/openapi.json"])
def test_the_paths_for_operations_obey_the_contract(
    address: Address, method: str, path: str
) -> None:
    reply = exchange(address, f"{method} {path} HTTP/1.1\r\nHost: t\r\n\r\n".encode())
    assert reply.status == 200
    values = check_reply(reply, method, path)
    if method == "GET" and path == "/openapi.json":
        assert values == [CONTRACT]


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "POST", "BREW"])
def test_other_methods_are_refused_as_documented(address: Address, method: str) -> None:
    for path, item in CONTRACT["paths"].items():
        if method.lower() not in item:
            request = f"{method} {path} HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n"
            reply = exchange(address, request.encode())
            check_reply(reply, method, path)
            allowed = [name.upper() for name in ("get", "head", "post") if name in item]
            assert reply.headers["allow"] == ", ".join(allowed)


@pytest.mark.parametrize(
    ("example", "half"),
    [
        ("slow head", b"POST /v1/completions HTTP/1.1\r\nHost"),
        ("slow body", b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n\r\n{"),
    ],
)
def test_a_request_that_does_not_arrive_is_answered_as_documented(
    hasty_server: TlServe, example: str, half: bytes
) -> None:
    reply = exchange(hasty_server.address, half)
    [error] = check_reply(reply, "POST", COMPLETIONS)
    assert (reply.status, error) == (408, documented_error("RequestTimeout", example))


def test_one_client_too_many_is_refused_as_documented(succ_model: Path) -> None:
    with running(succ_model, "--max-connections", "1") as server, connect(server.address) as first:
        first.sendall(get("/healthz", "Connection: keep-alive"))
        assert read_reply(first).status == 200  # so it is counted, and it stays
        reply = exchange(server.address, get("/healthz"))
    [error] = check_reply(reply, "GET", "/healthz")
    assert (reply.status, error) == (503, documented_error("Unavailable", "too many connections"))
    assert reply.headers["retry-after"] == "1"


def test_a_broken_model_is_a_documented_error(hasty_server: TlServe) -> None:
    address = hasty_server.address
    wanted = documented_error("InternalError", "broken model")
    plain = complete(address, prompt="c", max_tokens=9, temperature=0)
    assert (plain.status, check_reply(plain, "POST", COMPLETIONS)) == (500, [wanted])
    stream = complete(address, prompt="a", max_tokens=9, temperature=0, stream=True)
    *chunks, last = check_reply(stream, "POST", COMPLETIONS)
    assert ([chunk["choices"][0]["text"] for chunk in chunks], last) == (["b", "c"], wanted)


def test_a_stream_breaks_off_with_the_connection(address: Address) -> None:
    """What HTTP/1.0 clients and proxies rely on: no length, the close is the end."""
    request = {"model": "m", "prompt": "a", "max_tokens": 2, "stream": True}
    with connect(address) as connection:
        connection.sendall(post(COMPLETIONS, request, "Connection: keep-alive"))
        assert read_all(connection).endswith(b"data: [DONE]\n\n")
