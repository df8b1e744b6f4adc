"""What a training run found out, in numbers and in words.

The figures are those of a model counted on the training part alone, so that the held-out ones
say what text of this kind costs that was never seen. The model that is written is counted on
both parts: counting the tail too costs nothing and can only help. For comparison stand a
uniform model (8 bits, perplexity 256) and one of order 0, which knows how frequent each byte
is and does not look at the byte before. Perplexity is 2 to the power of the bits: among how
many equally likely bytes the model still hesitates.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from tinyllm.training.bigram import VOCAB_SIZE, Counts, bits_per_byte, train_bigram
from tinyllm.training.errors import TrainingError
from tinyllm.training.holdout import Part
from tinyllm.training.options import TrainOptions
from tinyllm.training.progress import size_text
from tinyllm.training.tally import Tally
from tinyllm.wire.jsontext import dump_json

UNIFORM_BITS = 8.0  # log2 of 256 bytes


@dataclass(frozen=True, slots=True)
class PartReport:
    """One part of the text: its size, and what a predicted byte costs under two models.

    `pairs` is how many bytes were predicted: all but the first of each text.
    """

    bytes: int
    pairs: int
    bits_per_byte: float
    perplexity: float
    order0_bits_per_byte: float
    order0_perplexity: float


@dataclass(frozen=True, slots=True)
class Report:
    """A training run; a part without a pair to predict is None."""

    bytes: int
    pairs: int
    train: PartReport | None
    held_out: PartReport | None
    smoothing: float
    holdout: float
    seconds: float

    def to_json(self) -> str:
        """Return the report as one JSON object."""
        uniform = {"bits_per_byte": UNIFORM_BITS, "perplexity": 2**UNIFORM_BITS}
        return dump_json({**asdict(self), "uniform": uniform})

    def to_text(self) -> str:
        """Return the report as a few lines with a table."""
        rate = size_text(self.bytes / max(self.seconds, 1e-9))
        parts = {"training": self.train, "held-out": self.held_out}
        size = f"{self.bytes:,} bytes, {self.pairs:,} pairs"
        lines = [
            f"{size} in {self.seconds:.2f} s ({rate}/s)",
            "",
            "bits per byte (perplexity)",
            f"{'':<10}{'bytes':>18}{'uniform':>16}{'order 0':>16}{'bigram':>16}",
        ]
        for name, part in parts.items():
            if part is not None:
                bits = (UNIFORM_BITS, part.order0_bits_per_byte, part.bits_per_byte)
                cells = "".join(f"{f'{b:.3f} ({2**b:.1f})':>16}" for b in bits)
                lines.append(f"{name:<10}{part.bytes:>18,}{cells}")
        return "\n".join(lines)


def make_report(tally: Tally, options: TrainOptions, seconds: float) -> Report:
    """Return the report on what was counted; raise TrainingError when that makes no model."""
    parts = (tally.train, tally.held_out)
    text_bytes = sum(part.text_bytes for part in parts)
    pairs = sum(int(part.counts.sum()) for part in parts)
    if text_bytes == 0:
        raise TrainingError("the text is empty: there is nothing to learn from")
    if pairs == 0:
        raise TrainingError("no text has two bytes in a row: there is no pair to learn from")
    train, held_out = (_part_report(part, tally.train.counts, options.smoothing) for part in parts)
    return Report(text_bytes, pairs, train, held_out, options.smoothing, options.holdout, seconds)


def _part_report(part: Part, trained: Counts, smoothing: float) -> PartReport | None:
    """Return a part's figures under models of the trained counts, None when it has no pair."""
    counts = part.counts
    pairs = int(counts.sum())
    if pairs == 0:
        return None
    bits = bits_per_byte(train_bigram(trained, smoothing), counts)
    order0_bits = bits_per_byte(order0_log_probabilities(trained, smoothing), counts)
    return PartReport(part.text_bytes, pairs, bits, 2**bits, order0_bits, 2**order0_bits)


def order0_log_probabilities(counts: Counts, smoothing: float) -> npt.NDArray[np.float64]:
    """Return log p(next) without a look back, [256], smoothed like the bigram's rows."""
    totals = counts.sum(axis=0)
    return np.asarray(np.log(totals + smoothing) - np.log(totals.sum() + VOCAB_SIZE * smoothing))
