"""What stops a training run: an error whose message is the one line the user reads."""

from __future__ import annotations


class TrainingError(Exception):
    """Training, or looking into a model, cannot go on; the message names what and where."""


def explain(error: OSError, subject: str = "") -> str:
    """Return "subject: reason" for a system error; its own file name wins over `subject`."""
    name = error.filename if isinstance(error.filename, str) else subject
    reason = error.strerror or str(error)
    return f"{name}: {reason}" if name else reason
