"""docs/conformance.md lists the cases that there are; its tables name cases that exist."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tinyllm.conformance.case import Profile, Suite, all_cases, select
from tinyllm.conformance.catalogue import BEGIN, main, renewed

DOCUMENT = Path(__file__).parents[2] / "docs" / "conformance.md"
TEXT = DOCUMENT.read_text("utf-8")


def test_the_list_in_the_document_is_up_to_date() -> None:
    assert renewed(TEXT) == TEXT


def test_the_list_is_renewed_in_place(tmp_path: Path) -> None:
    stale = tmp_path / "conformance.md"
    shutil.copy(DOCUMENT, stale)
    stale.write_text(stale.read_text("utf-8").replace("#### `v0.seed`", "#### `v0.sead`"), "utf-8")
    assert main([str(stale)]) == 0
    assert stale.read_text("utf-8") == TEXT


def test_a_document_without_a_place_for_the_list_is_refused() -> None:
    with pytest.raises(ValueError, match="has no"):
        renewed("# Nothing here\n")


def test_what_is_said_of_other_servers_names_cases_of_their_profile() -> None:
    by_hand = TEXT[: TEXT.index(BEGIN)]
    named = set(re.findall(r"`(v0\.[a-z0-9_.]+)`", by_hand))
    fair = {case.id for case in select(Suite.ENGINE, Profile.OPENAI)}
    assert len(named) > 20
    assert named <= fair


def test_every_case_is_in_the_list() -> None:
    listed = set(re.findall(r"`((?:v0|wire)\.[a-z0-9_.]+)`", TEXT[TEXT.index(BEGIN) :]))
    assert {case.id for case in all_cases()} <= listed
