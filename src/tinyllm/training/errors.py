"""What stops a training run: an error whose message is the one line the user reads."""

from __future__ import annotations

import os


class TrainingError(Exception):
    """Training, or looking into a model, cannot go on; the message names what and where."""


def explain(error: OSError, subject: str = "") -> str:
    """Return "file: reason" for a system error; `subject` stands in where it names no file."""
    named = isinstance(error.filename, str | bytes | os.PathLike)
    name = os.fsdecode(error.filename) if named else subject
    reason = error.strerror or str(error)
    return f"{name}: {reason}" if name else reason


def one_line(text: str) -> str:
    """Return text with what is no printable character escaped; a path may hold any byte but NUL."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
