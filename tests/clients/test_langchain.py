"""LangChain's OpenAI LLM: its `stream` speaks v0; its `invoke` sends a list of prompts."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from langchain_openai import OpenAI
from openai import BadRequestError
from pydantic import SecretStr

from clients.expected import LONG, TEXT, TEXTS
from support.accesslog import AccessLog
from support.processes import TlServe


def llm(server: TlServe, **arguments: Any) -> OpenAI:
    settings = {"model": "m", "max_tokens": 3, "temperature": 0, "max_retries": 0, **arguments}
    return OpenAI(base_url=f"{server.base_url}/v1", api_key=SecretStr("sk-test"), **settings)


def test_stream(server: TlServe) -> None:
    assert list(llm(server).stream("a")) == TEXTS


def test_astream(server: TlServe) -> None:
    async def ask() -> list[str]:
        return [text async for text in llm(server).astream("a")]

    assert asyncio.run(ask()) == TEXTS


def test_the_first_text_arrives_while_the_stream_runs(server: TlServe, log: AccessLog) -> None:
    arguments = {"model": LONG["model"], "max_tokens": LONG["max_tokens"]}
    # LangChain leaves an abandoned stream open, so the connection is closed below it.
    with httpx.Client(headers={"X-Request-Id": "lc-long"}) as http_client:
        texts = llm(server, http_client=http_client, **arguments).stream("a")
        assert next(texts) == "b"
        assert log.still_runs("lc-long")
    assert log.end_of("lc-long")["ended"] == "client_gone"


def test_invoke_with_streaming_is_a_stream_inside(server: TlServe) -> None:
    assert llm(server, streaming=True).invoke("a") == TEXT


def test_plain_invoke_sends_a_list_of_prompts_which_v0_refuses(server: TlServe) -> None:
    with pytest.raises(BadRequestError, match=r'but is \["a"\]') as raised:
        llm(server).invoke("a")
    assert raised.value.param == "prompt"
