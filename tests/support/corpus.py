"""The corpus of requests to POST /v1/completions (tests/data/openai_requests.json) as values.

Cases that say `silent` leave the answer to CONTRACT, points 9, 11 and 12; `DECIDED` holds what
those points say of each, in the corpus's own form of an expectation.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any, NamedTuple

CORPUS = Path(__file__).parent.parent / "data" / "openai_requests.json"


def _accepted(**fields: Any) -> dict[str, Any]:
    parsed = {"model": "m", "prompt": "a", "max_tokens": 16, "temperature": 1.0, "seed": None}
    parsed |= {"stream": False, "prompt_tokens": 1, **fields}
    return {"status": 200, "parsed": parsed}


def _refused(param: str | None) -> dict[str, Any]:
    return {"status": 400, "param": [param]}


DECIDED = {
    # Point 11: null means "not given".
    "client-openai-python-nulls": _accepted(model="tracer", prompt="Hi", prompt_tokens=2),
    "max-tokens-null": _accepted(),
    "temperature-null": _accepted(),
    # Point 12: what is written with a point or an exponent is no integer.
    "max-tokens-1-dot-0": _refused("max_tokens"),
    "max-tokens-1e1": _refused("max_tokens"),
    "seed-1-dot-0": _refused("seed"),
    "seed-1e3": _refused("seed"),
    # Point 12: a seed is 0 to 2^64-1.
    "seed-2pow63": _accepted(seed=2**63),
    "seed-400-digits": _refused("seed"),
    # Points 9 and 12: the last of two equal keys wins, and only it is looked at.
    "dup-prompt": _accepted(prompt="b"),
    "dup-max-tokens-first-bad": _accepted(max_tokens=5),
    "dup-stream": _accepted(stream=True),
    # Point 12: unknown fields do not matter; point 9: but the depth of the whole text does.
    "unknown-big-number": _accepted(),
    "unknown-depth-10000": _refused(None),
}


class OpenAICase(NamedTuple):
    """One request and what must come back."""

    name: str
    method: str
    target: str
    headers: list[tuple[str, str]]  # as captured or built; maybe without a length
    body: bytes
    silent: bool  # the specification does not say; DECIDED does
    status: int
    parsed: dict[str, Any]  # CompletionRequest's fields and prompt_tokens, for a 200
    params: list[str | None]  # any of which the error may name
    echo: bool | None  # whether X-Request-Id comes back; None: the case does not say

    def request(self) -> bytes:
        """Return the bytes on the wire; header values beyond ASCII are sent as UTF-8."""
        headers = list(self.headers)
        names = {name.lower() for name, _ in headers}
        if self.method == "POST" and not names & {"content-length", "transfer-encoding"}:
            headers.append(("Content-Length", str(len(self.body))))
        lines = [f"{self.method} {self.target} HTTP/1.1", *(f"{n}: {v}" for n, v in headers)]
        return "\r\n".join([*lines, "", ""]).encode() + self.body


def _body(case: dict[str, Any]) -> bytes:
    recipe = case.get("body_recipe")
    if recipe is None:
        return base64.b64decode(case["body_base64"])
    unit, count = recipe["repeat"]
    body: bytes = (recipe["prefix"] + unit * count + recipe["suffix"]).encode()
    return body  # its `length` is one short in unknown-depth-10000


def _case(case: dict[str, Any]) -> OpenAICase:
    silent = case["expect"] == "silent"
    # A silent case without a decision expects a status that no answer has, so it fails.
    expect = DECIDED.get(case["name"], {"status": 0}) if silent else case["expect"]
    return OpenAICase(
        case["name"],
        case["method"],
        case["target"],
        [(name, value) for name, value in case["headers"]],
        _body(case),
        silent,
        expect["status"],
        expect.get("parsed", {}),
        expect.get("param", []),
        case.get("echo_x_request_id"),
    )


OPENAI_CASES = [_case(case) for case in json.loads(CORPUS.read_bytes())["cases"]]
