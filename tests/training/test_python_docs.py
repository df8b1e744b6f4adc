"""The text that is always there: the same each time, and English where the topics are missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tinyllm.training.python_docs import default_text, standard_library_docstrings
from tinyllm.training.trainer import train_default_model


def assert_english(text: bytes) -> None:
    assert text.decode()  # it is UTF-8
    assert text.count(b" the ") > len(text) / 1000
    assert text.count(b" ") > len(text) / 10


def test_default_text_is_pythons_own_documentation() -> None:
    text = default_text()
    assert 300_000 < len(text) < 2_000_000
    assert b"while_stmt" in text  # the grammar in the topic on "while"
    assert_english(text)


def test_default_text_is_the_same_each_time() -> None:
    assert default_text() == default_text()


def test_docstrings_stand_in_for_missing_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    text = default_text()
    assert len(text) > 300_000
    assert_english(text)


def test_docstrings_end_when_there_are_enough() -> None:
    text = standard_library_docstrings(enough=1)
    assert 0 < len(text) < 100_000


def test_a_default_model_says_what_it_was_trained_on(tmp_path: Path) -> None:
    report = train_default_model(tmp_path / "model")
    assert report.bytes == len(default_text())
    assert report.held_out is not None
    assert 2.0 < report.held_out.bits_per_byte < 4.5
    assert sorted(p.name for p in (tmp_path / "model").iterdir()) == [
        "config.json",
        "model.safetensors",
    ]
