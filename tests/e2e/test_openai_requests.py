"""The whole corpus of requests over real sockets: real clients' bytes, and bodies good and bad.

What is compared: the status, the error's `param`, every documented field and header (against
the contract), the echoed request id, and the text itself, which the library computes anew from
the same model wherever the request fixes it (a seed, or temperature 0).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.contract import check_reply
from support.corpus import OPENAI_CASES, OpenAICase
from support.processes import TlServe
from support.wire import Reply, connect, read_reply
from tinyllm.engine import SamplingParams, generate_tokens
from tinyllm.model import LanguageModel, load_model


@pytest.fixture(scope="module")
def model(succ_model: Path) -> LanguageModel:
    return load_model(succ_model)


@pytest.mark.parametrize("case", OPENAI_CASES, ids=lambda case: case.name)
def test_every_request_of_the_corpus(
    succ_server: TlServe, model: LanguageModel, case: OpenAICase
) -> None:
    with connect(succ_server.address) as connection:
        connection.sendall(case.request())
        reply = read_reply(connection, head_only=case.method == "HEAD")
    assert reply.status == case.status, reply.body
    values = check_reply(reply, case.method, case.target)
    assert reply.headers["connection"] == ("keep-alive" if keeps(case) else "close")
    if case.echo is not None:
        assert ("x-request-id" in reply.headers) == case.echo
    sent = {name.lower(): value for name, value in case.headers}
    assert reply.headers.get("x-request-id") in (None, sent.get("x-request-id"))
    if case.status == 200:
        check_completion(reply, values, case.parsed, model)
    elif case.method != "HEAD":
        [answer] = values
        assert answer["error"]["param"] in case.params


def keeps(case: OpenAICase) -> bool:
    """CONTRACT, point 6: a client that asks for it keeps its connection, unless it streams."""
    if case.status in (413, 501):  # the body was not read, so no request can follow it
        return False
    asked = ("connection", "keep-alive") in [(name.lower(), value) for name, value in case.headers]
    return asked and not case.parsed.get("stream", False)


def check_completion(
    reply: Reply, values: list[Any], parsed: dict[str, Any], model: LanguageModel
) -> None:
    texts = [value["choices"][0]["text"] for value in values]
    assert {value["model"] for value in values} == {parsed["model"]}
    assert (reply.headers["content-type"] == "text/event-stream") is parsed["stream"]
    if parsed["stream"]:
        assert len(values) == parsed["max_tokens"]
    else:
        usage = values[0]["usage"]
        assert usage["prompt_tokens"] == parsed["prompt_tokens"]
        assert usage["completion_tokens"] == parsed["max_tokens"]
        assert usage["total_tokens"] == parsed["prompt_tokens"] + parsed["max_tokens"]
    if parsed["seed"] is not None or parsed["temperature"] == 0:
        params = SamplingParams(parsed["max_tokens"], parsed["temperature"], parsed["seed"] or 0)
        ids = bytes(generate_tokens(model, parsed["prompt"].encode(), params))
        assert "".join(texts) == ids.decode("utf-8", "replace")
