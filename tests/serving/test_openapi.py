"""The contract as a document: valid, in step with the code, shipped as it is written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from support.contract import COMPONENTS, CONTRACT, METHODS, check
from tinyllm.serving import routes, schema
from tinyllm.wire import HttpError

REQUEST = COMPONENTS["schemas"]["CompletionRequest"]


def nodes(value: Any, where: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of the document with its place in it."""
    if isinstance(value, dict):
        yield where, value
        for key, member in value.items():
            yield from nodes(member, f"{where}/{key}")
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from nodes(member, f"{where}/{index}")


def kinds(error: type[HttpError]) -> Iterator[type[HttpError]]:
    for kind in error.__subclasses__():
        yield kind
        yield from kinds(kind)


def test_the_contract_is_valid_openapi_3_1() -> None:
    assert list(OpenAPIV31SpecValidator(CONTRACT).iter_errors()) == []


def test_the_shipped_json_is_the_contract() -> None:
    assert json.loads(routes.openapi_document()) == CONTRACT


def test_the_paths_and_methods_are_those_of_the_routes() -> None:
    documented = {
        path: tuple(method.upper() for method in METHODS if method in item)
        for path, item in CONTRACT["paths"].items()
    }
    assert documented == routes.METHODS


def test_every_status_that_the_server_gives_is_documented() -> None:
    """404 and 405 belong to no operation: they are the document's x-other-answers."""
    documented = {
        status
        for item in CONTRACT["paths"].values()
        for method, operation in item.items()
        if method in METHODS
        for status in operation["responses"]
    }
    elsewhere = set(CONTRACT["x-other-answers"])
    of_the_wire = {str(kind.status) for kind in kinds(HttpError)} - {"0"}
    assert documented | elsewhere == of_the_wire | {"200", "404", "405", "500", "503"}


def test_the_limits_of_the_request_are_those_of_the_code() -> None:
    fields = REQUEST["properties"]
    assert tuple(fields) == schema.CompletionRequest._fields
    assert fields["max_tokens"]["maximum"] == schema.MAX_TOKENS_LIMIT
    assert fields["temperature"]["maximum"] == schema.TEMPERATURE_LIMIT
    assert fields["seed"]["maximum"] == schema.SEED_LIMIT
    defaults = schema.CompletionRequest._field_defaults
    assert {name: fields[name].get("default") for name in defaults} == defaults
    assert set(REQUEST["required"]) == set(fields) - set(defaults)


@pytest.mark.parametrize("where", [where for where, node in nodes(CONTRACT) if "examples" in node])
def test_an_example_obeys_its_schema(where: str) -> None:
    node = dict(nodes(CONTRACT))[where]
    for example in node["examples"].values():
        if where.endswith("text/event-stream"):
            events = re.findall(r"data: ([^\n]+)\n\n", example["value"])
            assert "".join(f"data: {event}\n\n" for event in events) == example["value"]
            for event in events:
                check(node["schema"], {"data": event})
        else:
            check(node["schema"], example["value"])


def test_nothing_in_the_document_is_unused() -> None:
    used = {node["$ref"] for _, node in nodes(CONTRACT) if "$ref" in node}
    defined = {f"#/components/{kind}/{name}" for kind in COMPONENTS for name in COMPONENTS[kind]}
    assert used == defined
