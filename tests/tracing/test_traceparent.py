"""The caller's place in a trace: the corpus, and every rule of W3C Trace Context by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tinyllm.tracing import TraceContext, parent_from_headers, parse_traceparent
from tinyllm.tracing.traceparent import parse_tracestate
from tinyllm.wire import RequestParser

CORPUS = json.loads((Path(__file__).parent.parent / "data" / "traceparent.json").read_text())
VALUES = [case for case in CORPUS["cases"] if case["kind"] == "value"]
HEADERS = [case for case in CORPUS["cases"] if case["kind"] == "headers"]

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN_ID = "00f067aa0ba902b7"
VALID = f"00-{TRACE_ID}-{SPAN_ID}-01"


def named(cases: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in cases]


def test_the_corpus_is_there() -> None:
    assert len(VALUES) + len(HEADERS) == CORPUS["count"] == 51


@pytest.mark.parametrize("case", named(VALUES))
def test_corpus_values(case: dict[str, Any]) -> None:
    # Where the two differ (later versions), CONTRACT 18 decides for W3C.
    wanted = case["w3c"] if "conflict" in case else case["seed"]
    assert parse_traceparent(case["value"]) == (tuple(wanted) if wanted else None)


@pytest.mark.parametrize("case", named(HEADERS))
def test_corpus_headers(case: dict[str, Any]) -> None:
    lines = "".join(f"{name}: {value}\r\n" for name, value in case["headers"])
    parser = RequestParser()
    parser.feed(f"GET / HTTP/1.1\r\nHost: h\r\n{lines}\r\n".encode("latin-1"))
    request = parser.next_request()
    assert request is not None
    parent = parent_from_headers(
        request.header_values("traceparent"), request.header_values("tracestate")
    )
    # Where the seed is silent (two headers), CONTRACT 18 decides for W3C.
    wanted = case["w3c"] if case["seed"] == "silent" else case["seed"]
    assert (parent and [parent.trace_id, parent.span_id]) == wanted


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(f"01-{TRACE_ID}-{SPAN_ID}-01-", id="nothing-after-the-dash"),
        pytest.param(f"01-{TRACE_ID}-{SPAN_ID}-01-a-b\t\x7f", id="anything-after-the-dash"),
        pytest.param(f"0a-{TRACE_ID}-{SPAN_ID}-00", id="hex-version"),
    ],
)
def test_later_versions_are_read_by_their_first_four_fields(value: str) -> None:
    assert parse_traceparent(value) == (TRACE_ID, SPAN_ID)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(f"00-{'0' * 32}-{SPAN_ID}-01", id="zero-trace-id"),
        pytest.param(f"01-{'0' * 32}-{SPAN_ID}-01", id="zero-trace-id-later-version"),
        pytest.param(f"00-{TRACE_ID}-{'0' * 16}-01", id="zero-span-id"),
        pytest.param(f"01-{TRACE_ID}-{SPAN_ID}-011", id="long-flags-later-version"),
        pytest.param(f"01-{TRACE_ID}-{SPAN_ID}", id="no-flags-later-version"),
        pytest.param(f"FE-{TRACE_ID}-{SPAN_ID}-01", id="upper-version"),
        pytest.param(f"ff-{TRACE_ID}-{SPAN_ID}-01-x", id="ff-with-a-tail"),
        pytest.param(f" {VALID}", id="space-before"),
        pytest.param(f"{VALID} ", id="space-after"),
        pytest.param(f"01{VALID[2:]}-a\nb", id="line-end-in-the-tail"),
        pytest.param(f"00-{TRACE_ID[:-1]}\u0661-{SPAN_ID}-01", id="arabic-digit"),
    ],
)
def test_broken_values_start_a_new_trace(value: str) -> None:
    assert parse_traceparent(value) is None
    assert parent_from_headers([value]) is None


def test_no_header_or_two_of_them_start_a_new_trace() -> None:
    assert parent_from_headers([]) is None
    assert parent_from_headers([VALID, VALID]) is None


def test_parent_carries_flags_and_tracestate() -> None:
    parent = parent_from_headers([f"00-{TRACE_ID}-{SPAN_ID}-02"], ["a=1", "b=2"])
    assert parent == TraceContext(TRACE_ID, SPAN_ID, 2, "a=1,b=2")
    assert not parent.sampled
    assert TraceContext(TRACE_ID, SPAN_ID, 3).sampled


LONG = "k=" + "v" * 127  # 129 characters: over the 128 of section 3.3.1.5


@pytest.mark.parametrize(
    ("values", "combined"),
    [
        pytest.param(["foo=1"], "foo=1", id="one"),
        pytest.param(["foo=1,bar=2"], "foo=1,bar=2", id="two-members"),
        pytest.param(["foo=1", "bar=2"], "foo=1,bar=2", id="two-headers"),
        pytest.param(["foo=1 \t,\t bar=2"], "foo=1,bar=2", id="white-space-around-members"),
        pytest.param(["foo=1,,", "", ",bar=2"], "foo=1,bar=2", id="empty-members"),
        pytest.param(["foo= 1"], "foo= 1", id="space-begins-the-value"),
        pytest.param(["a_-*/0=1"], "a_-*/0=1", id="all-key-characters"),
        pytest.param(["0t-_*/@sys=1"], "0t-_*/@sys=1", id="tenant-may-begin-with-a-digit"),
        pytest.param([f"{'a' * 256}=1"], f"{'a' * 256}=1", id="longest-key"),
        pytest.param([f"{'t' * 241}@{'s' * 14}=1"], f"{'t' * 241}@{'s' * 14}=1", id="long-tenant"),
        pytest.param([f"a={'v' * 256}"], f"a={'v' * 256}", id="longest-value"),
        pytest.param(["foo =1"], "", id="space-before-equals"),
        pytest.param(["FOO=1"], "", id="upper-key"),
        pytest.param(["0foo=1"], "", id="digit-begins-a-simple-key"),
        pytest.param(["foo"], "", id="no-equals"),
        pytest.param(["=1"], "", id="no-key"),
        pytest.param(["foo="], "", id="no-value"),
        pytest.param(["foo=bar=baz"], "", id="equals-in-the-value"),
        pytest.param(["foo=b\x7f"], "", id="del-in-the-value"),
        pytest.param(["foo=\xe9"], "", id="beyond-ascii"),
        pytest.param(["foo@=1"], "", id="no-system"),
        pytest.param(["@foo=1"], "", id="no-tenant"),
        pytest.param(["foo@bar@baz=1"], "", id="two-ats"),
        pytest.param([f"{'a' * 257}=1"], "", id="key-too-long"),
        pytest.param([f"{'t' * 242}@v=1"], "", id="tenant-too-long"),
        pytest.param([f"t@{'s' * 15}=1"], "", id="system-too-long"),
        pytest.param([f"a={'v' * 257}"], "", id="value-too-long"),
        pytest.param(["foo=1,foo=2"], "", id="one-key-twice"),
        pytest.param(["foo=1,b ad=2"], "", id="one-bad-member-spoils-all"),
        pytest.param([",".join(f"k{n}=1" for n in range(33))], "", id="33-members"),
        pytest.param([",".join(f"k{n}=1" for n in range(32))], ",".join(
            f"k{n}=1" for n in range(32)), id="32-members"),
        pytest.param([f"a={'x' * 126},{LONG},c={'x' * 126},d={'x' * 126},e={'x' * 122}"],
            f"a={'x' * 126},c={'x' * 126},d={'x' * 126},e={'x' * 122}", id="long-members-go-first"),
        pytest.param([",".join(f"{key}={'x' * 126}" for key in "abcde")],
            ",".join(f"{key}={'x' * 126}" for key in "abc"), id="then-the-last-ones"),
    ],
)  # fmt: skip
def test_tracestate(values: list[str], combined: str) -> None:
    assert parse_tracestate(values) == combined


def test_bad_tracestate_never_spoils_the_parent() -> None:
    assert parent_from_headers([VALID], ["foo =1"]) == TraceContext(TRACE_ID, SPAN_ID, 1, "")
