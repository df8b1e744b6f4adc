"""Flame graphs: widths, names, and what does not fit."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from benchmarks.harness.flamegraph import flame_graph

SVG = "{http://www.w3.org/2000/svg}"
STACKS = [
    (["run", "a<b> (tinyllm/x.py:1)", "send (libc.so.6)"], 6),
    (["run", "a<b> (tinyllm/x.py:1)"], 2),
    (["run", "other"], 2),
]


def test_a_frame_is_as_wide_as_the_looks_that_saw_it() -> None:
    root = ElementTree.fromstring(flame_graph("A & B", STACKS))
    widths = {
        group.findtext(f"{SVG}title"): float(group.find(f"{SVG}rect").attrib["width"])  # type: ignore[union-attr]
        for group in root.iter(f"{SVG}g")
    }
    assert widths == {
        "all: 10 looks, 100.0%": 1260.0,
        "run: 10 looks, 100.0%": 1260.0,
        "a<b> (tinyllm/x.py:1): 8 looks, 80.0%": 1008.0,
        "send (libc.so.6): 6 looks, 60.0%": 756.0,
        "other: 2 looks, 20.0%": 252.0,
    }


def test_frames_too_narrow_to_be_seen_are_left_out() -> None:
    svg = flame_graph("t", [(["wide"], 100_000), (["narrow"], 1)])
    assert re.findall(r"<title>(\w+)", svg) == ["all", "wide"]


def test_an_empty_profile_is_a_picture_too() -> None:
    assert ElementTree.fromstring(flame_graph("t", [])) is not None
