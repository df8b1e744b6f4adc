"""parse_completion against the whole corpus of request bodies, and the order of its checks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.corpus import DECIDED, OPENAI_CASES, OpenAICase
from tinyllm.serving.errors import INVALID_REQUEST, ApiError
from tinyllm.serving.schema import CompletionRequest, parse_completion
from tinyllm.wire import JsonError, parse_json

# What the HTTP layer answers by itself (405, 413, 501) never comes to parse_completion.
BODIES = [case for case in OPENAI_CASES if case.status not in (405, 413, 501)]

BAD: dict[str, Any] = {
    "model": "",
    "prompt": ["a"],
    "max_tokens": True,
    "temperature": "hot",
    "seed": -1,
    "stream": 1,
}
GOOD: dict[str, Any] = {
    "model": "m",
    "prompt": "a",
    "max_tokens": 1,
    "temperature": 1,
    "seed": 0,
    "stream": True,
}


def refusal(body: bytes) -> ApiError:
    with pytest.raises(ApiError) as raised:
        parse_completion(body)
    return raised.value


@pytest.mark.parametrize("case", BODIES, ids=lambda case: case.name)
def test_every_body_of_the_corpus(case: OpenAICase) -> None:
    if case.status == 200:
        wanted = dict(case.parsed)
        assert len(wanted["prompt"].encode()) == wanted.pop("prompt_tokens")
        assert parse_completion(case.body) == CompletionRequest(**wanted)
    else:
        error = refusal(case.body)
        assert (error.status, error.error_type) == (400, INVALID_REQUEST)
        assert error.param in case.params
        assert error.message


def test_every_silent_case_is_decided() -> None:
    assert {case.name for case in OPENAI_CASES if case.silent} == set(DECIDED)


@pytest.mark.parametrize("field", BAD)
def test_param_names_the_first_bad_field_whatever_their_order_in_the_body(field: str) -> None:
    """CONTRACT, point 12: in the order model, prompt, max_tokens, temperature, seed, stream."""
    order = list(BAD)
    fields = {name: (GOOD if order.index(name) < order.index(field) else BAD)[name] for name in BAD}
    for body in (fields, dict(reversed(fields.items()))):
        assert refusal(json.dumps(body).encode()).param == field


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("model", "null", "model must be a non-empty string, but is missing or null"),
        ("prompt", '["a"]', 'prompt must be a non-empty string, but is ["a"]'),
        ("max_tokens", "true", "max_tokens must be an integer from 1 to 4096, but is true"),
        ("max_tokens", "4097", "max_tokens must be an integer from 1 to 4096, but is 4097"),
        ("max_tokens", "16.0", "max_tokens must be an integer from 1 to 4096, but is 16.0"),
        ("temperature", "2.5", "temperature must be a number from 0 to 2, but is 2.5"),
        ("seed", "-1", "seed must be an integer from 0 to 18446744073709551615, but is -1"),
        ("stream", '"yes"', 'stream must be true or false, but is "yes"'),
    ],
)
def test_a_message_says_what_was_wanted_and_what_came(field: str, value: str, message: str) -> None:
    members = {name: json.dumps(good) for name, good in GOOD.items()} | {field: value}
    body = "{" + ",".join(f'"{name}":{text}' for name, text in members.items()) + "}"
    error = refusal(body.encode())
    assert (error.param, error.message) == (field, message)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ('"' + "x" * 100 + '"', '"' + "x" * 39 + "..."),
        ("1" + "0" * 399, "an integer of about 399 digits"),
        ("1e400", "a value with a number out of range"),
        ("[-1e400]", "a value with a number out of range"),
    ],
    ids=["long text", "long integer", "overflow", "overflow inside"],
)
def test_a_message_shows_no_more_than_a_glimpse_of_the_value(value: str, shown: str) -> None:
    error = refusal(f'{{"model":"m","prompt":"a","seed":{value}}}'.encode())
    assert error.param == "seed"
    assert error.message.endswith(f"but is {shown}")


def test_a_number_out_of_range_is_refused_unless_the_caller_checks_ranges_itself() -> None:
    with pytest.raises(JsonError, match="out of range"):
        parse_json("[1e400]")
    assert parse_json("[1e400,-1e400,1.5,7]", allow_overflow=True) == [
        float("inf"),
        float("-inf"),
        1.5,
        7,
    ]
    with pytest.raises(JsonError):
        parse_json("[Infinity]", allow_overflow=True)


@pytest.mark.parametrize("zero", ["0", "-0", "0.0", "-0.0", "0e5"])
def test_a_temperature_of_zero_has_no_sign(zero: str) -> None:
    wanted = parse_completion(f'{{"model":"m","prompt":"a","temperature":{zero}}}'.encode())
    assert repr(wanted.temperature) == "0.0"
