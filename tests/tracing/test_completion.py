"""From what the server knows to what the HTTP conventions ask: names, errors, hosts."""

from __future__ import annotations

import pytest

from tinyllm.tracing import CLIENT_GONE
from tinyllm.tracing.attributes import span_of
from tracing.records import START, bare, record


def attributes(**facts: object) -> dict[str, object]:
    return dict(span_of(bare(**facts), "a" * 32, "b" * 16).attributes)


@pytest.mark.parametrize(
    ("facts", "error_type"),
    [
        pytest.param({"status": 200}, None, id="200"),
        pytest.param({"status": 400}, None, id="a-4xx-is-the-clients"),
        pytest.param({"status": 408, "error": "timed_out"}, None, id="408-too"),
        pytest.param({"status": 500}, "500", id="500"),
        pytest.param({"status": 503}, "503", id="503"),
        pytest.param({"status": 500, "error": "SamplingError"}, "SamplingError", id="500-named"),
        pytest.param({"status": 200, "error": "SamplingError"}, "SamplingError", id="in-a-stream"),
        pytest.param({"status": 200, "error": CLIENT_GONE}, "client_gone", id="abandoned"),
        pytest.param({"error": CLIENT_GONE}, "client_gone", id="gone-before-the-answer"),
    ],
)
def test_status_is_error_where_the_http_conventions_say_so(
    facts: dict[str, object], error_type: str | None
) -> None:
    span = span_of(bare(**facts), "a" * 32, "b" * 16)
    assert span.error is (error_type is not None)
    assert dict(span.attributes).get("error.type") == error_type


def test_an_abandoned_stream_keeps_the_status_that_was_sent() -> None:
    found = attributes(status=200, stream=True, error=CLIENT_GONE)
    assert found["http.response.status_code"] == 200
    assert found["tinyllm.abandoned"] is True


def test_no_status_line_no_status_attribute() -> None:
    found = attributes(error=CLIENT_GONE)
    assert "http.response.status_code" not in found
    assert found["tinyllm.abandoned"] is True


def test_only_an_abandoned_request_is_marked() -> None:
    assert "tinyllm.abandoned" not in attributes(status=200)
    assert "tinyllm.abandoned" not in attributes(status=500, error="SamplingError")


@pytest.mark.parametrize(
    ("method", "name", "known", "original"),
    [
        ("POST", "POST /v1/completions", "POST", None),
        ("GET", "GET /v1/completions", "GET", None),
        ("BREW", "HTTP /v1/completions", "_OTHER", "BREW"),
        ("post", "HTTP /v1/completions", "_OTHER", "post"),
    ],
)
def test_span_name_has_a_known_method_and_the_route(
    method: str, name: str, known: str, original: str | None
) -> None:
    span = span_of(bare(method=method), "a" * 32, "b" * 16)
    found = dict(span.attributes)
    assert span.name == name
    assert found["http.request.method"] == known
    assert found.get("http.request.method_original") == original


@pytest.mark.parametrize(
    ("host", "address", "port"),
    [
        ("example.com:8000", "example.com", 8000),
        ("example.com", "example.com", 80),
        ("example.com:", "example.com", 80),
        ("127.0.0.1:65535", "127.0.0.1", 65535),
        ("[::1]:8000", "::1", 8000),
        ("[::1]", "::1", 80),
        ("a:b", "a", None),
        ("a:\u0661", "a", None),
        ("a:123456", "a", None),
        ("", "", 80),
    ],
)
def test_server_address_and_port_come_from_host(host: str, address: str, port: int | None) -> None:
    found = attributes(host=host)
    assert found["server.address"] == address
    assert found.get("server.port") == port


def test_times_are_the_start_and_lengths_after_it() -> None:
    span = span_of(record(), "a" * 32, "b" * 16)
    assert (span.start_unix_nano, span.end_unix_nano) == (START, START + 2_500_000)
    assert [(event.name, event.unix_nano - START) for event in span.events] == [
        ("tinyllm.first_token", 1_500_000),
        ("tinyllm.end_of_stream", 2_500_000),
    ]
    assert dict(span.attributes)["tinyllm.time_to_first_token"] == 0.0015


@pytest.mark.parametrize(
    ("facts", "events"),
    [
        pytest.param({"stream": False}, ["tinyllm.first_token"], id="not-a-stream"),
        pytest.param({"error": CLIENT_GONE}, ["tinyllm.first_token"], id="cut-off"),
        pytest.param({"status": 400, "first_token_ns": None}, [], id="refused"),
    ],
)
def test_only_a_whole_stream_has_an_end(facts: dict[str, object], events: list[str]) -> None:
    span = span_of(record(**facts), "a" * 32, "b" * 16)
    assert [event.name for event in span.events] == events


def test_an_integer_temperature_is_a_double() -> None:
    found = attributes(temperature=1)
    assert isinstance(found["gen_ai.request.temperature"], float)
