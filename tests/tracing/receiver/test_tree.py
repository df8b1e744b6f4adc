"""A trace as lines: the tree, the bars, and nothing that could drive a terminal."""

from __future__ import annotations

from typing import Any

import pytest

from tinyllm.tracing.receiver.received import ReceivedSpan
from tinyllm.tracing.receiver.store import Trace
from tinyllm.tracing.receiver.tree import Style, columns, duration, fitted, render, tree

MS = 1_000_000
T0 = 1_791_518_626_000_000_000


def span(name: str, parent: str = "", start: int = 0, end: int = 10, **more: Any) -> ReceivedSpan:
    """A span of service `s` whose id is its name; times in ms after T0."""
    return ReceivedSpan("t" * 32, name, parent, name, "s", T0 + start * MS, T0 + end * MS, **more)


def trace(*spans: ReceivedSpan) -> Trace:
    found = Trace("t" * 32)
    for one in spans:
        found.add(one)
    return found


def shape(*spans: ReceivedSpan) -> list[str]:
    return [f"{row.branch}{row.span.name}" for row in tree(spans)]


def test_gateway_and_engine() -> None:
    gateway = span("gateway", start=0, end=20)
    engine = span(
        "engine",
        "gateway",
        start=5,
        end=15,
        attributes={
            "http.response.status_code": 200,
            "gen_ai.request.model": "tracer",
            "gen_ai.usage.input_tokens": 6,
            "gen_ai.usage.output_tokens": 16,
            "tinyllm.time_to_first_token": 0.005,
        },
        events=[(T0 + 10 * MS, "first"), (T0 + 15 * MS, "end")],
    )
    assert render(trace(engine, gateway), Style(width=60)) == [
        "trace tttttttttttttttttttttttttttttttt · 2 spans · 20.0 ms",
        "s  gateway    ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━    20.0 ms",
        "└─ s  engine          ━━━━━━━━━◆━━━━━━━━◆            10.0 ms",
        "         200 · tracer · 6 → 16 tokens · first token after 5…",
    ]


def test_children_stand_in_the_order_of_their_start() -> None:
    assert shape(
        span("c2", "root", start=5),
        span("root"),
        span("c1", "root", start=1),
        span("g1", "c1", start=2),
        span("c3", "root", start=6),
        span("g2", "c2", start=7),
    ) == ["root", "├─ c1", "│  └─ g1", "├─ c2", "│  └─ g2", "└─ c3"]


def test_a_span_without_its_parent_stands_at_the_top_and_says_so() -> None:
    lines = render(trace(span("orphan", parent="missing")), Style())
    assert lines[1].startswith("s  orphan")
    assert lines[2].strip() == "its parent missing has not arrived"


@pytest.mark.parametrize(
    ("spans", "lines"),
    [
        pytest.param([span("a", "a")], ["a"], id="its-own-parent"),
        pytest.param(
            [span("a", "b"), span("b", "a", start=1)], ["a", "└─ b"], id="two-in-a-circle"
        ),
        pytest.param(
            [
                span("root"),
                span("a", "b", start=1),
                span("b", "a", start=2),
                span("c", "b", start=3),
            ],
            ["root", "a", "└─ b", "   └─ c"],
            id="a-circle-beside-a-root",
        ),
    ],
)
def test_circles_are_cut(spans: list[ReceivedSpan], lines: list[str]) -> None:
    assert shape(*spans) == lines


def test_a_long_chain_is_drawn_without_recursion() -> None:
    spans = [span("0"), *(span(str(n), str(n - 1), end=n) for n in range(1, 1000))]
    lines = render(trace(*spans), Style(width=80))
    assert len(lines) == 1001
    assert all(columns(line) <= 80 for line in lines[1:])
    assert lines[-1].startswith("… ")
    assert "└─ s  999 " in lines[-1]


def test_lines_fit_the_terminal() -> None:
    spans = [
        span("root" * 50),
        span("你好" * 60, "root" * 50, error=True, status_message="x" * 500),
    ]
    for width in (60, 80, 133):
        assert all(columns(line) <= width for line in render(trace(*spans), Style(width=width)))


def test_control_characters_never_reach_the_terminal() -> None:
    nasty = "\x1b[2J\r\n\x07\x9b\u202e"
    found = span("n", status_message=nasty, error=True, attributes={"error.type": nasty})
    found.name = found.service = nasty
    found.attributes["gen_ai.request.model"] = nasty
    text = "\n".join(render(trace(found), Style()))
    assert all(char.isprintable() or char == "\n" for char in text)
    assert text.count("\n") == 3


def test_colors_mark_errors() -> None:
    style = Style(color=True)
    assert "\x1b[32m" in render(trace(span("good")), style)[1]
    bad = render(trace(span("bad", error=True, attributes={"error.type": "500"})), style)
    assert "\x1b[31m" in bad[1]
    assert bad[2] == f"\x1b[31m{' ' * 6}error 500\x1b[0m"


def test_a_terminal_without_unicode_gets_ascii() -> None:
    spans = [span("a"), span("b", "a", attributes={"gen_ai.usage.output_tokens": 1})]
    text = "\n".join(render(trace(*spans), Style(unicode=False)))
    assert text.isascii()
    assert "`- s  b" in text


def test_odd_times_still_give_a_picture() -> None:
    lines = render(trace(span("a", start=10, end=5)), Style())
    assert lines[1].rstrip().endswith("0 ns")
    assert lines[2].strip() == "the span ends before it starts"
    unset = ReceivedSpan("t" * 32, "u", "a", "u", "s", 0, 0)
    lines = render(trace(span("a", start=0, end=5), unset), Style())
    assert "5.00 ms" in lines[0]
    assert all(columns(line) <= 100 for line in lines)


def test_the_title_counts_what_is_not_drawn() -> None:
    found = trace(span("a"), span("a"))
    found.left_out = 3
    assert render(found, Style())[0].endswith("1 span · 10.0 ms · 1 came twice · 3 more left out")


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1000, "1.00 µs"),
        (12_340, "12.3 µs"),
        (123_400, "123 µs"),
        (1_234_000, "1.23 ms"),
        (999_999_999, "1000 ms"),
        (1_500_000_000, "1.50 s"),
        (3_600_000_000_000, "3600 s"),
    ],
)
def test_durations(nanoseconds: int, text: str) -> None:
    assert duration(nanoseconds) == text


@pytest.mark.parametrize(
    ("text", "width", "wanted"),
    [
        ("abc", 5, "abc  "),
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("你好", 4, "你好"),
        ("你好吗", 5, "你好…"),
        ("你好吗", 4, "你… "),
        ("e\u0301", 3, "e\u0301  "),
    ],
)
def test_fitted_counts_columns(text: str, width: int, wanted: str) -> None:
    assert fitted(text, width) == wanted
    assert columns(wanted) == width
