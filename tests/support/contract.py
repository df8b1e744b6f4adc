"""The v0 contract (docs/openapi/openai-subset.v0.yaml) as a check of real answers.

`check_reply` holds one answer against what the document says of its operation and status:
headers (also that there is none which it does not list), media type, body, and for a stream
each event and their order.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from support.wire import Reply

CONTRACT_FILE = Path(__file__).parents[2] / "docs" / "openapi" / "openai-subset.v0.yaml"
CONTRACT: dict[str, Any] = yaml.safe_load(CONTRACT_FILE.read_text("utf-8"))
COMPONENTS: dict[str, Any] = CONTRACT["components"]
METHODS = ("get", "head", "post")


def resolve(node: dict[str, Any]) -> dict[str, Any]:
    """Follow a reference inside the document."""
    while "$ref" in node:
        target: Any = CONTRACT
        for step in node["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        node = target
    return node


def check(schema: dict[str, Any], value: object) -> None:
    """Raise ValidationError unless the value is what a schema of the document asks for."""
    _validator(json.dumps(schema)).validate(value)


@cache
def _validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator({**json.loads(schema), "components": COMPONENTS})


def responses(method: str, path: str) -> dict[str, Any]:
    """Return the documented responses to a request, by status."""
    item = CONTRACT["paths"].get(path)
    other = CONTRACT["x-other-answers"]
    if item is None:
        return {"404": other["404"]}
    if method.lower() not in item:
        return {"405": other["405"]}
    found: dict[str, Any] = item[method.lower()]["responses"]
    return found


def check_reply(reply: Reply, method: str, path: str) -> list[Any]:
    """Hold an answer against the document; return its JSON values (of a stream: its events')."""
    documented = responses(method, path)
    assert str(reply.status) in documented, f"{reply.status} is not documented: {reply.body!r}"
    response = resolve(documented[str(reply.status)])
    _check_headers(reply, response.get("headers", {}), method)
    if method == "HEAD":
        assert reply.body == b""
        return []
    media_type = reply.headers["content-type"]
    assert media_type in response["content"], f"{media_type} is not documented"
    schema = response["content"][media_type]["schema"]
    if media_type == "text/event-stream":
        return _check_stream(reply, schema)
    value = json.loads(reply.body)
    check(schema, value)
    return [value]


def _check_headers(reply: Reply, documented: dict[str, Any], method: str) -> None:
    headers = {name.lower(): resolve(header) for name, header in documented.items()}
    undocumented = set(reply.headers) - set(headers) - {"content-type"}
    assert not undocumented, f"undocumented headers: {undocumented}"
    for name, header in headers.items():
        if name not in reply.headers:
            assert not header.get("required"), f"{name} is missing"
            continue
        value = reply.headers[name]
        check(header["schema"], int(value) if header["schema"].get("type") == "integer" else value)
    streamed = reply.headers["content-type"] == "text/event-stream"
    assert ("content-length" in reply.headers) is not streamed
    assert ("x-accel-buffering" in reply.headers) is streamed
    assert ("cache-control" in reply.headers) is streamed
    if not streamed and method != "HEAD":
        assert int(reply.headers["content-length"]) == len(reply.body)


def _check_stream(reply: Reply, schema: dict[str, Any]) -> list[Any]:
    """Check each event and their order: chunks, then [DONE], or an error and nothing after it."""
    payloads = reply.events()
    for payload in payloads:
        check(schema, {"data": payload})
    whole = payloads[-1] == "[DONE]"
    values = [json.loads(payload) for payload in (payloads[:-1] if whole else payloads)]
    chunks = values if whole else values[:-1]
    for value in chunks:
        check({"$ref": "#/components/schemas/CompletionChunk"}, value)
    if not whole:
        check({"$ref": "#/components/schemas/Error"}, values[-1])
    assert len({(chunk["id"], chunk["created"], chunk["model"]) for chunk in chunks}) <= 1
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert reasons == [None] * (len(chunks) - whole) + ["length"] * whole
    return values
