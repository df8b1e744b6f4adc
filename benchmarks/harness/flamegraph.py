"""A flame graph: who called whom, as wide as the looks that saw it. An SVG that needs no script.

Width is how often the profiler saw a frame, height is depth, order is by name. A frame's whole
name is its tooltip. Colour says whose code it is.
"""

from __future__ import annotations

import colorsys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final, NamedTuple

WIDTH, ROW, MARGIN, TOP = 1280, 18, 10, 52  # pixels
CHARACTER = 6.6  # pixels of a monospaced one at 11 px
LEAST_WIDTH = 0.6  # pixels below which a frame is left out
# The first mark found in a frame names its colour (hue, saturation, what it is).
COLOURS: Final = (
    ("(tinyllm/", 212, 60, "tinyllm"),
    ("(libc", 18, 75, "system calls and libc"),
    (".py:", 140, 30, "Python's library"),
    ("", 45, 25, "C: interpreter, event loop, numpy"),
)


@dataclass
class Frame:
    """A function called from a certain stack; `looks` counts those it called, too."""

    name: str
    looks: int = 0
    calls: dict[str, Frame] = field(default_factory=dict)

    def add(self, names: Sequence[str], looks: int) -> None:
        """Count a stack of calls below this frame."""
        frame = self
        frame.looks += looks
        for name in names:
            frame = frame.calls.setdefault(name, Frame(name))
            frame.looks += looks


class Box(NamedTuple):
    """A frame with its place: left edge in looks, and depth."""

    frame: Frame
    left: int
    depth: int


def flame_graph(title: str, stacks: Iterable[tuple[Sequence[str], int]]) -> str:
    """Return an SVG of stacks, outermost frame first, with their looks."""
    root = Frame("all")
    for names, looks in stacks:
        root.add(names, looks)
    scale = (WIDTH - 2 * MARGIN) / max(1, root.looks)
    boxes = [box for box in _boxes(root, 0, 0) if box.frame.looks * scale >= LEAST_WIDTH]
    height = TOP + ROW * (1 + max((box.depth for box in boxes), default=0)) + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="monospace" font-size="11"><rect width="100%" height="100%" fill="white"/>',
        f'<text x="{MARGIN}" y="20" font-size="15" font-weight="bold">{escape(title)}</text>',
        *_legend(root.looks),
        *(_drawn(box, scale, root.looks) for box in boxes),
        "</svg>\n",
    ]
    return "\n".join(parts)


def _boxes(frame: Frame, left: int, depth: int) -> Iterator[Box]:
    yield Box(frame, left, depth)
    for name in sorted(frame.calls):
        call = frame.calls[name]
        yield from _boxes(call, left, depth + 1)
        left += call.looks


def _drawn(box: Box, scale: float, total: int) -> str:
    frame = box.frame
    x, y = MARGIN + box.left * scale, TOP + box.depth * ROW
    width = frame.looks * scale
    name = escape(frame.name)
    shown = frame.name[: max(0, int((width - 6) / CHARACTER))]
    label = f'<text x="{x + 3:.1f}" y="{y + 12}">{escape(shown)}</text>' if len(shown) > 2 else ""
    return (
        f"<g><title>{name}: {frame.looks} looks, {frame.looks / total:.1%}</title>"
        f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 1}" rx="1" '
        f'fill="{_colour(frame.name)}"/>{label}</g>'
    )


def _colour(name: str) -> str:
    """Return the colour of whose code it is, a little lighter or darker for each name."""
    hue, saturation = next((h, s) for mark, h, s, _ in COLOURS if mark in name)
    return _hex(hue, saturation, 72 + zlib.crc32(name.encode()) % 12)


def _hex(hue: int, saturation: int, lightness: int) -> str:
    """Return #rrggbb: not every viewer of SVG knows hsl()."""
    parts = colorsys.hls_to_rgb(hue / 360, lightness / 100, saturation / 100)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


def _legend(looks: int) -> Iterator[str]:
    x = MARGIN
    for _, hue, saturation, whose in COLOURS:
        yield f'<rect x="{x}" y="30" width="12" height="12" fill="{_hex(hue, saturation, 76)}"/>'
        yield f'<text x="{x + 17}" y="40">{whose}</text>'
        x += 40 + int(len(whose) * CHARACTER)
    yield f'<text x="{x}" y="40">{looks:,} looks; a tooltip has the whole name</text>'
