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
from tinyllm.training.tally import Tally
from tinyllm.wire.jsontext import dump_json

UNIFORM_BITS = 8.0


@dataclass(frozen=True, slots=True)
class PartReport:
    """One part of the text: its size, and the bits per predicted byte under two models.

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
    """A training run; `held_out` is None when there was nothing to hold out."""

    bytes: int
    pairs: int
    train: PartReport
    held_out: PartReport | None
    smoothing: float
    holdout: float
    seconds: float

    def to_json(self) -> str:
        """Return the report as one JSON object."""
        uniform = {"bits_per_byte": UNIFORM_BITS, "perplexity": 2.0**UNIFORM_BITS}
        return dump_json({**asdict(self), "uniform": uniform})

    def to_text(self) -> str:
        """Return the report as a few lines with a table."""
        rate = self.bytes / max(self.seconds, 1e-9) / 1e6
        return "\n".join(
            [
                f"Counted {self.bytes:,} bytes in {self.seconds:.2f} s ({rate:,.0f} MB/s).",
                "",
                f"{'bits per byte':<16}{'training':>12}{'held-out':>12}{'perplexity':>13}",
                *self._rows(),
                "",
            ]
        )

    def _rows(self) -> list[str]:
        """Return the table's rows; perplexity is that of the held-out part if there is one."""
        parts = (self.train, self.held_out)
        models = {
            "uniform": [UNIFORM_BITS if part else None for part in parts],
            "order 0": [part.order0_bits_per_byte if part else None for part in parts],
            "bigram": [part.bits_per_byte if part else None for part in parts],
        }
        rows = []
        for name, (train, held_out) in models.items():
            bits = train if held_out is None else held_out
            cells = ["-" if value is None else f"{value:.3f}" for value in (train, held_out)]
            assert bits is not None  # the training part is always there
            rows.append(f"{name:<16}{cells[0]:>12}{cells[1]:>12}{2**bits:>13.1f}")
        return rows


def make_report(tally: Tally, smoothing: float, holdout: float, seconds: float) -> Report:
    """Return the report on what was counted; raise TrainingError when that makes no model."""
    parts = [(part.counts, part.text_bytes) for part in (tally.train, tally.held_out)]
    trained, _ = parts[0]
    total_bytes = sum(size for _, size in parts)
    pairs = int(sum(counts.sum() for counts, _ in parts))
    if pairs == 0:
        amount = "is empty" if total_bytes == 0 else "has no two bytes in a row"
        raise TrainingError(f"the text {amount}: there is nothing to learn from")
    reports = [_part_report(counts, size, trained, smoothing) for counts, size in parts]
    return Report(total_bytes, pairs, reports[0], reports[1], smoothing, holdout, seconds)


def _part_report(
    counts: Counts, text_bytes: int, trained: Counts, smoothing: float
) -> PartReport | None:
    """Return one part's figures under the models of the trained counts, None without a pair."""
    pairs = int(counts.sum())
    if pairs == 0:
        return None
    bits = bits_per_byte(train_bigram(trained, smoothing), counts)
    order0_bits = bits_per_byte(order0_log_probabilities(trained, smoothing), counts)
    return PartReport(text_bytes, pairs, bits, 2**bits, order0_bits, 2**order0_bits)


def order0_log_probabilities(counts: Counts, smoothing: float) -> npt.NDArray[np.float64]:
    """Return log p(next) without looking back, [256], smoothed like the bigram's rows."""
    totals = counts.sum(axis=0)
    return np.log(totals + smoothing) - np.log(totals.sum() + VOCAB_SIZE * smoothing)
