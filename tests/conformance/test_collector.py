"""The runner's collector: spans as they were posted, and posts that hold none."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator

import pytest

from tinyllm.conformance.collector import Collector

SPAN = {
    "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
    "attributes": [{"key": "http.response.status_code", "value": {"intValue": "200"}}],
}
SERVICE = [{"key": "service.name", "value": {"stringValue": "x"}}]


@pytest.fixture
def collector() -> Iterator[Collector]:
    running = Collector()
    yield running
    running.close()


def post(collector: Collector, body: bytes) -> int:
    url = f"{collector.url}/v1/traces"
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as response:
        status: int = response.status
    return status


def export(*spans: object) -> bytes:
    scopes = [{"scope": {}, "spans": list(spans)}]
    resource = {"resource": {"attributes": SERVICE}, "scopeSpans": scopes}
    return json.dumps({"resourceSpans": [resource]}).encode()


def test_a_span_is_found_with_its_attributes_and_its_resource(collector: Collector) -> None:
    assert post(collector, export({"traceId": "0"}, SPAN)) == 200
    span = collector.wait_for(lambda found: found.fields["traceId"] == SPAN["traceId"], 20)
    assert span is not None
    assert span.attributes == {"http.response.status_code": {"intValue": "200"}}
    assert span.resource == {"service.name": {"stringValue": "x"}}
    assert (collector.posts[0].path, collector.posts[0].content_type) == (
        "/v1/traces",
        "application/json",
    )


def test_a_span_that_does_not_come_is_waited_for_no_longer_than_said(collector: Collector) -> None:
    assert collector.wait_for(lambda _: True, 0.01) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"resourceSpans":1}',
        b'{"resourceSpans":[{"scopeSpans":[{"spans":[1]}]}]}',
        export({"attributes": [1]}),
        export({"attributes": {"a": 1}}),
        b"[" * 100_000,
    ],
    ids=["empty", "cut", "array", "number", "span", "attribute", "object", "deep"],
)
def test_a_post_that_is_no_otlp_holds_no_span(collector: Collector, body: bytes) -> None:
    assert post(collector, body) == 200
    assert collector.wait_for(lambda _: True, 0) is None
    assert [found.body for found in collector.posts] == [body]
