"""A training run, from paths to a model in its folder.

Every path is looked at first, and the place for the model is made: what can be known to fail
fails before anything is counted. Workers, if there are any, are started before numpy is
imported, since they import it too. Then the text is counted, and last the model is written.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tinyllm.training.options import TrainOptions
from tinyllm.training.pieces import cut_into_pieces
from tinyllm.training.progress import Progress
from tinyllm.training.python_docs import default_text
from tinyllm.training.sources import Source, find_sources
from tinyllm.training.staging import Staging
from tinyllm.training.workers import Worker, count_pieces, started_workers, worthwhile_processes

if TYPE_CHECKING:
    from tinyllm.training.report import Report
    from tinyllm.training.tally import Tally


def train_model(
    out: str | os.PathLike[str], options: TrainOptions, progress: Progress | None = None
) -> Report:
    """Train a bigram and put it into the folder `out`; raise TrainingError.

    The model is counted on all of the text, the report is measured as report.py says.
    """
    skip = os.path.realpath(out)  # the model's own files are no text
    survey = Survey.of(find_sources(options.paths, skip))
    processes = options.processes or worthwhile_processes(survey.stored_bytes)
    with Staging(out) as staging, started_workers(processes - 1, options.holdout) as workers:
        from tinyllm.training.bigram import train_bigram
        from tinyllm.training.report import make_report
        from tinyllm.training.tally import Tally

        tally = Tally(options.holdout)
        started = time.monotonic()
        if options.paths:
            sources = find_sources(options.paths, skip)
            _count_sources(sources, survey, tally, progress or Progress(), workers)
        else:
            tally.count_text(default_text())
        report = make_report(tally, options, time.monotonic() - started)
        counts = tally.train.counts + tally.held_out.counts
        staging.publish(train_bigram(counts, options.smoothing))
    return report


def train_default_model(out: str | os.PathLike[str]) -> Report:
    """Train on the text that every Python brings along; about a tenth of a second of work."""
    return train_model(out, TrainOptions())


@dataclass(frozen=True, slots=True)
class Survey:
    """How much there is to read: bytes on disk, and whether that is all."""

    stored_bytes: int
    is_all: bool

    @classmethod
    def of(cls, sources: Iterable[Source]) -> Survey:
        """Look at every source; raise TrainingError for one that is not there."""
        total, is_all = 0, True
        for source in sources:
            total += source.stored_bytes or 0
            is_all = is_all and source.stored_bytes is not None
        return cls(total, is_all)


def _count_sources(
    sources: Iterable[Source],
    survey: Survey,
    tally: Tally,
    progress: Progress,
    workers: Sequence[Worker],
) -> None:
    """Count all sources, and show how far it is."""
    progress.start(survey.stored_bytes if survey.is_all else None)
    try:
        count_pieces(cut_into_pieces(sources, tally.holdout), tally, progress, workers)
    finally:
        progress.finish()
