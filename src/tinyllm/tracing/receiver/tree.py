"""A trace as lines of text: the tree of its spans, with bars on one common axis of time.

    trace 4bf92f3577b34da6a3ce929d0e0e4736 · 2 spans · 12.3 ms
    gateway  POST /complete           ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━  12.3 ms
    └─ engine  POST /v1/completions     ━━◆━━━━━━━━━━━━━━━━━━━━━━◆             8.1 ms
          200 · tracer · 6 → 16 tokens · first token after 0.4 ms

A diamond is an event. What a span says comes from outside: control characters never reach the
terminal, and a missing parent or a circle of parents still gives a tree.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tinyllm.tracing.receiver.received import ReceivedSpan
from tinyllm.tracing.receiver.store import Trace

MIN_WIDTH = 60
LABEL_SHARE = 0.45  # of the width, at most, for the tree; the bars get the rest
TIME_WIDTH = 9
MAX_INDENT = 18  # six levels

BOLD, DIM, RED, GREEN, YELLOW = 1, 2, 31, 32, 33  # ECMA-48, select graphic rendition
PLAIN = str.maketrans("├└─│━◆·→…µ", "|`-|=*->~u")  # for a terminal without Unicode


class Style(NamedTuple):
    """What the terminal can show."""

    width: int = 100
    color: bool = False
    unicode: bool = True

    def paint(self, text: str, color: int) -> str:
        """Return the text in a colour, if there are any."""
        return f"\x1b[{color}m{text}\x1b[0m" if self.color else text


class Row(NamedTuple):
    """A span and its place in the tree."""

    branch: str  # the lines that lead to it
    indent: str  # the lines that go on below it
    span: ReceivedSpan


def render(trace: Trace, style: Style) -> list[str]:
    """Return the lines of a trace."""
    spans = list(trace.spans.values())
    rows = list(tree(spans))
    start = min((span.start for span in spans if span.start), default=0)
    end = max(span.end for span in spans)
    width = max(style.width, MIN_WIDTH)
    labels = [f"{shortened(row.branch)}{_label(row.span)}" for row in rows]
    label_width = min(max(map(columns, labels)), int(width * LABEL_SHARE))
    bar_width = width - label_width - TIME_WIDTH - 4
    lines = [_title(trace, max(end - start, 0), style)]
    for row, label in zip(rows, labels, strict=True):
        span = row.span
        color = RED if span.error else GREEN
        bar = style.paint(_bar(span, start, max(end - start, 1), bar_width), color)
        time = duration(max(span.end - span.start, 0)).rjust(TIME_WIDTH)
        lines.append(f"{fitted(label, label_width)}  {bar}  {time}")
        for note, color in _notes(span, orphan=bool(span.parent_id) and not row.branch):
            text = fitted(f"{shortened(row.indent)}      {note}", width).rstrip()
            lines.append(style.paint(text, color))
    return lines if style.unicode else [line.translate(PLAIN) for line in lines]


def tree(spans: Sequence[ReceivedSpan]) -> Iterator[Row]:
    """Walk from parents to children, each in the order of their start.

    Spans whose parent is not here stand at the top; so does one span of a circle. A stack and
    no recursion: a chain of spans may be as long as its sender likes.
    """
    in_order = sorted(spans, key=lambda span: (span.start, span.end))
    known = {span.span_id for span in spans}
    children: dict[str, list[ReceivedSpan]] = {}
    for span in in_order:
        children.setdefault(span.parent_id if span.parent_id in known else "", []).append(span)
    seen: set[str] = set()
    stack = [Row("", "", span) for span in (*reversed(in_order), *reversed(children.get("", [])))]
    while stack:
        row = stack.pop()
        if row.span.span_id in seen:
            continue
        seen.add(row.span.span_id)
        yield row
        below = [span for span in children.get(row.span.span_id, []) if span.span_id not in seen]
        ends = [("├─ ", "│  ")] * (len(below) - 1) + [("└─ ", "   ")]
        places = zip(ends, below, strict=False)  # of no children, `ends` still has one
        stack += reversed([Row(row.indent + a, row.indent + b, span) for (a, b), span in places])


def duration(nanoseconds: int) -> str:
    """Return a length of time in three digits or so."""
    for unit, size in (("s", 10**9), ("ms", 10**6), ("µs", 10**3)):
        if nanoseconds >= size:
            value = nanoseconds / size
            return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f} {unit}"
    return f"{nanoseconds} ns"


def printable(text: str) -> str:
    """Return text from outside without what could move a cursor or change a colour."""
    return "".join(char if char.isprintable() else "?" for char in text)


def columns(text: str) -> int:
    """Return how many columns a terminal needs: wide characters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def fitted(text: str, width: int) -> str:
    """Return the text cut or padded to a number of columns."""
    missing = width - columns(text)
    if missing >= 0:
        return text + " " * missing
    kept = ""
    for char in text:
        if columns(kept + char) >= width:
            break
        kept += char
    return f"{kept}…" + " " * (width - 1 - columns(kept))


def shortened(lines: str) -> str:
    """Return the tree's lines before a span, the innermost ones if it lies very deep."""
    return lines if len(lines) <= MAX_INDENT else f"… {lines[-MAX_INDENT:]}"


def _title(trace: Trace, length: int, style: Style) -> str:
    count = len(trace.spans)
    parts = [f"{count} span{'s' * (count != 1)}", duration(length)]
    if trace.repeated:
        parts.append(f"{trace.repeated} came twice")
    if trace.left_out:
        parts.append(f"{trace.left_out} more left out")
    return " · ".join([style.paint(f"trace {trace.trace_id}", BOLD), *parts])


def _label(span: ReceivedSpan) -> str:
    return printable(f"{span.service[:40]}  {span.name[:200]}")


def _bar(span: ReceivedSpan, start: int, length: int, width: int) -> str:
    """Return the span's line on the axis, at least one column long, with its events."""

    def column(moment: int) -> int:
        return min(max((moment - start) * width // length, 0), width - 1)

    first, last = column(span.start), max(column(span.end), column(span.start))
    cells = [" "] * first + ["━"] * (last - first + 1) + [" "] * (width - last - 1)
    for moment, _ in span.events:
        cells[column(moment)] = "◆"
    return "".join(cells)


def _notes(span: ReceivedSpan, *, orphan: bool) -> Iterator[tuple[str, int]]:
    """What is worth a line of its own below a span, and its colour."""
    facts = span.attributes
    parts = [str(facts[key]) for key in _NOTED if key in facts]
    if _OUTPUT in facts:
        parts.append(f"{facts.get(_INPUT, '?')} → {facts[_OUTPUT]} tokens")
    first_token = facts.get("tinyllm.time_to_first_token")
    if isinstance(first_token, float) and 0 <= first_token < 1e6:
        parts.append(f"first token after {duration(int(first_token * 1e9))}")
    if parts:
        yield printable(" · ".join(parts)), DIM
    if span.error:
        why = [str(facts.get("error.type", "")), span.status_message]
        yield printable(" ".join(["error", *filter(None, why)])), RED
    if orphan:
        yield f"its parent {span.parent_id} has not arrived", YELLOW
    if span.remark:
        yield span.remark, YELLOW


_NOTED = ("http.response.status_code", "http.status_code", "gen_ai.request.model")
_INPUT, _OUTPUT = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
