"""The public test data of this layer, as values; tests/data/NOTICES.md says where it comes from."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parent.parent / "data"
Case = dict[str, Any]
MAX_CUT_BYTES = 1_000_000  # per case, over all its cuts


def load(name: str) -> list[Case]:
    """Return the cases of one file."""
    cases: list[Case] = json.loads((DATA / name).read_bytes())["cases"]
    return cases


def rows(cases: list[Case]) -> list[Any]:
    """Return the cases as table rows, each under its own name."""
    return [pytest.param(case, id=case["name"]) for case in cases]


def raw(case: Case, key: str = "bytes_base64") -> bytes:
    """Return a case's bytes, also those written as a repeated unit."""
    if "repeat" not in case:
        return base64.b64decode(case[key])
    repeat: dict[str, Any] = case["repeat"]
    unit: bytes = base64.b64decode(repeat["unit_base64"])
    return unit * int(repeat["times"]) + base64.b64decode(repeat["tail_base64"])


def single_bytes(data: bytes) -> list[bytes]:
    """Cut after every byte."""
    return [data[at : at + 1] for at in range(len(data))]


def cuts_in_two(data: bytes) -> Iterator[list[bytes]]:
    """Cut in two at every offset; of long data, at both ends and evenly between them."""
    offsets = list(range(1, len(data)))
    at_most = max(MAX_CUT_BYTES // (len(data) or 1), 40)
    if len(offsets) > at_most:
        ends, step = at_most // 4, len(offsets) // (at_most // 2)
        offsets = sorted({*offsets[:ends], *offsets[::step], *offsets[-ends:]})
    for at in offsets:
        yield [data[:at], data[at:]]
