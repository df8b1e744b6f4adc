"""A training run from its paths to a model in its folder.

Look at every path first, then at the target: what can be known to fail fails before anything
is counted. Then count, then write.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tinyllm.training.bigram import DEFAULT_SMOOTHING, train_bigram
from tinyllm.training.default_text import default_text
from tinyllm.training.holdout import DEFAULT_HOLDOUT
from tinyllm.training.report import Report, make_report
from tinyllm.training.sources import find_sources
from tinyllm.training.staging import Staging
from tinyllm.training.tally import Tally, cut_into_pieces


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """How to train: `paths` are files, folders or "-"; none of them means the default text."""

    paths: Sequence[str] = ()
    smoothing: float = DEFAULT_SMOOTHING
    holdout: float = DEFAULT_HOLDOUT


def train_model(out: str | os.PathLike[str], options: TrainOptions) -> Report:
    """Train a bigram and put it into the folder `out`; raise TrainingError."""
    started = time.monotonic()
    with Staging(out) as staging:
        tally = Tally(options.holdout)
        if options.paths:
            for piece in cut_into_pieces(find_sources(options.paths), options.holdout):
                tally.count(piece, lambda _count: None)
        else:
            tally.count_text(default_text())
        seconds = time.monotonic() - started
        report = make_report(tally, options.smoothing, options.holdout, seconds)
        counts = tally.train.counts + tally.held_out.counts
        staging.publish(train_bigram(counts, options.smoothing))
    return report


def train_default_model(out: str | os.PathLike[str]) -> Report:
    """Train on the default text; about a second of work, most of it imports."""
    return train_model(out, TrainOptions())
