"""The table of attributes: what OpenTelemetry defines, and what docs/tracing.md says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv.attributes import (
    client_attributes,
    error_attributes,
    http_attributes,
    network_attributes,
    server_attributes,
    url_attributes,
    user_agent_attributes,
)

from tinyllm.tracing.attributes import (
    ATTRIBUTES,
    END_OF_STREAM_EVENT,
    FIRST_TOKEN_EVENT,
    Attribute,
    Source,
    Type,
    span_of,
)
from tracing.records import SPAN_ID, TRACE_ID, record

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "tracing.md").read_text("utf-8")
OFFICIAL = {
    value
    for module in (
        client_attributes,
        error_attributes,
        gen_ai_attributes,
        http_attributes,
        network_attributes,
        server_attributes,
        url_attributes,
        user_agent_attributes,
    )
    for name, value in vars(module).items()
    if isinstance(value, str) and not name.startswith("_")
}
NAMES = {Source.HTTP: "HTTP", Source.GEN_AI: "GenAI", Source.OURS: "tinyllm"}


@pytest.mark.parametrize("row", ATTRIBUTES, ids=lambda row: row.key)
def test_official_names_are_official_and_ours_are_marked(row: Attribute) -> None:
    if row.source is Source.OURS:
        assert row.key.startswith("tinyllm.")
    elif row.key.startswith(http_attributes.HTTP_REQUEST_HEADER_TEMPLATE):
        assert row.key == "http.request.header.x-request-id"  # the name in lower case
    else:
        assert row.key in OFFICIAL


def test_no_attribute_comes_twice() -> None:
    assert len({row.key for row in ATTRIBUTES}) == len(ATTRIBUTES)


def test_values_have_the_types_of_the_table() -> None:
    python = {
        Type.STRING: str,
        Type.INT: int,
        Type.DOUBLE: float,
        Type.BOOLEAN: bool,
        Type.STRINGS: list,
    }
    full = record(error="client_gone", method="BREW")
    values = dict(span_of(full, TRACE_ID, SPAN_ID).attributes)
    assert list(values) == [row.key for row in ATTRIBUTES]
    for row in ATTRIBUTES:
        assert type(values[row.key]) is python[row.type], row.key


def test_the_document_has_the_table() -> None:
    wanted = [
        f"| `{row.key}` | {row.type.value} | {row.meaning} | {NAMES[row.source]} |"
        for row in ATTRIBUTES
    ]
    found = re.findall(
        r"^\| `[a-z_.\-]+` \| (?:string|int|double|boolean)\S* \|.*$", DOCUMENT, re.M
    )
    assert found == wanted


def test_the_document_names_the_events_and_every_variable_that_is_read() -> None:
    assert FIRST_TOKEN_EVENT in DOCUMENT
    assert END_OF_STREAM_EVENT in DOCUMENT
    folder = ROOT / "src" / "tinyllm" / "tracing"
    source = "".join((folder / name).read_text("utf-8") for name in ("config.py", "sampling.py"))
    read = set(re.findall(r'"(OTEL_[A-Z_]+[A-Z])"', source))
    read |= {
        f"OTEL_EXPORTER_OTLP_{name}" for name in re.findall(r'_exporter_names\("(\w+)"\)', source)
    }
    assert len(read) == 18
    assert read | {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} == set(
        re.findall(r"`(OTEL_[A-Z_]+)`", DOCUMENT.partition("## Environment")[2].partition("##")[0])
    ) - {"OTEL_EXPORTER_OTLP_X", "OTEL_EXPORTER_OTLP_TRACES_X"}
