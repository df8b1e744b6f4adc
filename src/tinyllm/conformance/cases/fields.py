"""The request's fields: what each may be, and that the error names the one that is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterable

from tinyllm.conformance.case import REQUIRED, case
from tinyllm.conformance.cases.errors import expect_error
from tinyllm.conformance.cases.usage import counts
from tinyllm.conformance.evidence import check
from tinyllm.conformance.session import OMIT, Session, read_completion

RULE = "Engine specification, section 2.7; contract, points 11 and 12"
WHY = "param is how a form or a tool shows the caller which value to change."


def _raw(session: Session, name: str, literal: str) -> bytes:
    """Return a body with one field written as this JSON literal."""
    fields: dict[str, object] = {"model": session.settings.model, "prompt": "a", "max_tokens": 1}
    spelled = {key: json.dumps(value) for key, value in fields.items()} | {name: literal}
    return ("{" + ",".join(f'"{key}":{text}' for key, text in spelled.items()) + "}").encode()


def _each(session: Session, name: str, bad: Iterable[str], good: Iterable[str]) -> None:
    for literal in session.rows(bad):
        response = session.post(_raw(session, name, literal))
        said = f"{name} {literal}: status {response.status}, not 400"
        check(response.status == 400, said, response.status_line)
        expect_error(response, 400, name)
    for literal in session.rows(good):
        response = session.post(_raw(session, name, literal))
        said = f"{name} {literal}: status {response.status}, not 200"
        check(response.status == 200, said, response.status_line)


@case("v0.fields.model", rule=RULE, why=WHY)
def model(session: Session) -> None:
    """model is a non-empty string: missing, empty, null, numbers and arrays are 400."""
    expect_error(session.post(session.completion_body(model=OMIT)), 400, "model")
    _each(session, "model", ('""', "null", "7", '["m"]', "true"), ('"gpt-4"',))


@case("v0.fields.prompt", rule=RULE, why=WHY)
def prompt(session: Session) -> None:
    """prompt is a non-empty string: missing, empty, null, token ids and arrays are 400."""
    expect_error(session.post(session.completion_body(prompt=OMIT)), 400, "prompt")
    bad = ('""', "null", "7", '["a"]', "[72, 105]", "[]", "true")
    _each(session, "prompt", bad, ('"\\u0000"', '" "', '"\\uffff"', '"\\u2028"'))


@case("v0.fields.max_tokens", rule=RULE, why=WHY)
def max_tokens(session: Session) -> None:
    """max_tokens is an integer from 1 to 4096; 16.0 and 1e1 are no integers, nor is true."""
    bad = ("0", "-1", "-0", "4097", "1" + "0" * 20, '"5"', "2.5", "16.0", "1e1", "{}", "true")
    _each(session, "max_tokens", bad, ("1", "16", "4096"))


@case("v0.fields.temperature", rule=RULE, why=WHY)
def temperature(session: Session) -> None:
    """temperature is a number from 0 to 2; integers and tiny numbers are fine, true is not."""
    bad = ("-0.1", "2.0001", "3", '"1"', "true", "[]", "{}", "-1e300")
    _each(session, "temperature", bad, ("0", "2", "1.5", "5e-324", "1e-9", "2.0"))


@case("v0.fields.seed", rule=RULE, why=WHY)
def seed(session: Session) -> None:
    """seed is an integer from 0 to 2^64-1."""
    bad = ("-1", "18446744073709551616", '"1"', "1.5", "1.0", "1e3", "[]", "true")
    _each(session, "seed", bad, ("0", "9223372036854775808", "18446744073709551615"))


@case("v0.fields.stream", rule=RULE, why=WHY)
def stream(session: Session) -> None:
    """stream is true or false, not 0, 1 or a string."""
    _each(session, "stream", ("1", "0", '"true"', '""', "[]"), ("true", "false"))


@case("v0.fields.order", rule=RULE, why="Of several wrong fields, every engine names the same.")
def order(session: Session) -> None:
    """param names the first bad field: model, prompt, max_tokens, temperature, seed, stream."""
    bad: dict[str, object] = {
        "model": "",
        "prompt": "",
        "max_tokens": 0,
        "temperature": 3,
        "seed": -1,
        "stream": 1,
    }
    names = list(bad)
    for first in session.rows(names):
        later = {name: bad[name] for name in names[names.index(first) :]}
        body = session.completion_body(**dict(reversed(later.items())))
        expect_error(session.post(body), 400, first)


@case(
    "v0.fields.null",
    rule="Contract, point 11; OpenAI API reference: optional parameters may be null",
    why="The official client sends null for an argument that is None.",
    openai=REQUIRED,
)
def null(session: Session) -> None:
    """null for temperature, seed and stream means that they were not given."""
    body = session.completion_body(max_tokens=1, temperature=None, seed=None, stream=None)
    read_completion(session.post(body))


@case(
    "v0.fields.null_max_tokens",
    rule="Contract, point 11: null for an optional field means not given",
    why="The official client sends null for an argument that is None.",
)
def null_max_tokens(session: Session) -> None:
    """null for max_tokens gives the default, 16 tokens."""
    answer = read_completion(session.post(session.completion_body(max_tokens=None)))
    check(counts(answer)[1] == 16, f"{counts(answer)[1]} tokens", answer.response.body_mark())


@case(
    "v0.fields.unknown",
    rule="Engine specification, section 2.7: unknown fields are ignored",
    why="A client written for a later version still works with this one.",
)
def unknown(session: Session) -> None:
    """Fields that v0 does not know change nothing, whatever they hold."""
    more = {"stop": ["x"], "nested": {"a": [1, {"b": None}]}, "": 1, "__proto__": {"x": 1}}
    plain = session.complete(max_tokens=3, temperature=0)
    other = session.complete(max_tokens=3, temperature=0, **more)
    check(plain.text == other.text, "the text changed", other.response.body_mark())


@case(
    "v0.fields.defaults",
    rule="OpenAI API reference, create completion",
    why="Client libraries and frameworks send the defaults along with what the caller set.",
    openai=REQUIRED,
)
def defaults(session: Session) -> None:
    """Parameters of the public API at their defaults are accepted and, in `tinyllm`, change
    nothing.
    """
    plain = session.complete(max_tokens=3, temperature=0)
    given = {"top_p": 1, "n": 1, "presence_penalty": 0, "frequency_penalty": 0, "user": "u-1"}
    other = session.complete(max_tokens=3, temperature=0, echo=False, stop=None, **given)
    same = plain.text == other.text or not session.repeats_itself
    check(same, "the text changed", other.response.body_mark())
