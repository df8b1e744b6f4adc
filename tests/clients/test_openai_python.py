"""The official Python client: sync and async, plain and streamed, and its errors."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from openai import AsyncOpenAI, BadRequestError, NotFoundError, OpenAI

from clients.expected import GREEDY, LONG, TEXT, TEXTS, USAGE
from support.accesslog import AccessLog
from support.processes import TlServe


@pytest.fixture(scope="module")
def client(server: TlServe) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{server.base_url}/v1", api_key="sk-test", max_retries=0) as client:
        yield client


def async_client(server: TlServe) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{server.base_url}/v1", api_key="sk-test", max_retries=0)


def test_a_plain_completion(client: OpenAI) -> None:
    completion = client.completions.create(**GREEDY, extra_headers={"X-Request-Id": "py-plain"})
    assert completion.choices[0].text == TEXT
    assert completion.choices[0].finish_reason == "length"
    assert completion.usage is not None
    assert completion.usage.model_dump(include=set(USAGE)) == USAGE
    assert completion.model == "m"
    assert completion._request_id == "py-plain"


def test_a_stream(client: OpenAI) -> None:
    chunks = list(client.completions.create(**GREEDY, stream=True))
    assert [chunk.choices[0].text for chunk in chunks] == TEXTS
    reasons: list[str | None] = [chunk.choices[0].finish_reason for chunk in chunks]
    assert reasons == [None, None, "length"]
    assert len({(chunk.id, chunk.created) for chunk in chunks}) == 1


def test_the_first_chunk_arrives_while_the_stream_runs(client: OpenAI, log: AccessLog) -> None:
    headers = {"X-Request-Id": "py-long"}
    with client.completions.create(**LONG, stream=True, extra_headers=headers) as stream:
        assert next(stream).choices[0].text == "b"
        assert log.still_runs("py-long")
    assert log.end_of("py-long")["ended"] == "client_gone"


def test_connections_are_kept(client: OpenAI, log: AccessLog) -> None:
    ids = ["py-kept-1", "py-kept-2"]
    for request_id in ids:
        client.completions.create(**GREEDY, extra_headers={"X-Request-Id": request_id})
    first, second = [log.end_of(request_id)["client"] for request_id in ids]
    assert first == second


def test_errors_name_the_field(client: OpenAI) -> None:
    with pytest.raises(BadRequestError) as raised:
        client.completions.create(**{**GREEDY, "max_tokens": 4097})
    assert (raised.value.status_code, raised.value.param) == (400, "max_tokens")
    assert raised.value.type == "invalid_request_error"
    assert "max_tokens must be an integer from 1 to 4096, but is 4097" in raised.value.message


def test_what_the_server_does_not_have_is_not_found(client: OpenAI) -> None:
    with pytest.raises(NotFoundError, match="no such path: GET /v1/models"):
        client.models.list()


def test_the_async_client(server: TlServe) -> None:
    async def ask() -> None:
        async with async_client(server) as client:
            completion = await client.completions.create(**GREEDY)
            assert completion.choices[0].text == TEXT
            stream = await client.completions.create(**GREEDY, stream=True)
            assert [chunk.choices[0].text async for chunk in stream] == TEXTS
            many = await asyncio.gather(*(client.completions.create(**GREEDY) for _ in range(20)))
            assert {answer.choices[0].text for answer in many} == {TEXT}

    asyncio.run(ask())


def test_the_async_clients_first_chunk_arrives_while_the_stream_runs(
    server: TlServe, log: AccessLog
) -> None:
    async def ask() -> None:
        headers = {"X-Request-Id": "py-async-long"}
        async with (
            async_client(server) as client,
            await client.completions.create(**LONG, stream=True, extra_headers=headers) as stream,
        ):
            assert (await anext(stream)).choices[0].text == "b"
            assert log.still_runs("py-async-long")

    asyncio.run(ask())
    assert log.end_of("py-async-long")["ended"] == "client_gone"
