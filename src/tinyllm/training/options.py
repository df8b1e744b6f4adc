"""How to train: the options, their defaults and their limits. No numpy here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

DEFAULT_SMOOTHING = 0.01
MAX_SMOOTHING = 1e6  # far beyond use: every row is uniform by then
DEFAULT_HOLDOUT = 0.1
MAX_HOLDOUT = 0.5  # more would measure a model of the smaller part
MAX_PROCESSES = 256


def check_smoothing(smoothing: float) -> None:
    """Raise ValueError for a smoothing that would not leave every logit finite."""
    if not 0 < smoothing <= MAX_SMOOTHING:
        raise ValueError(f"smoothing is above 0 and at most {MAX_SMOOTHING:g}, not {smoothing:g}")


def check_holdout(holdout: float) -> None:
    """Raise ValueError for a share that cannot be held out."""
    if not 0 <= holdout <= MAX_HOLDOUT:
        raise ValueError(f"the held-out share is 0 to {MAX_HOLDOUT:g}, not {holdout:g}")


def check_processes(processes: int) -> None:
    """Raise ValueError for a number of processes that is none."""
    if not 1 <= processes <= MAX_PROCESSES:
        raise ValueError(f"there can be 1 to {MAX_PROCESSES} processes, not {processes}")


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """How to train a bigram; ValueError when a value is out of its range.

    `paths` are files, folders or "-" for standard input; none of them means the default text.
    `smoothing` is added to every count, `holdout` is the share of each text that the figures
    are measured on, `processes` is how many count (None: as many as the text is worth).
    """

    paths: Sequence[str] = ()
    smoothing: float = DEFAULT_SMOOTHING
    holdout: float = DEFAULT_HOLDOUT
    processes: int | None = None

    def __post_init__(self) -> None:
        check_smoothing(self.smoothing)
        check_holdout(self.holdout)
        if self.processes is not None:
            check_processes(self.processes)
