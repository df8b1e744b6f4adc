"""What a bigram checkpoint holds: its tensor, and how sure each row is of the next byte.

Rows are logits, and need not be log probabilities: a checkpoint may come from elsewhere. They
are made probabilities as decoding does at temperature 1: NaN is nothing, -inf is never, and
infinities share all of it between them.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tinyllm.model.bigram import VOCAB_SIZE, Bigram
from tinyllm.model.errors import CheckpointError
from tinyllm.model.safetensors import read_index
from tinyllm.model.source import FileSource
from tinyllm.training.errors import TrainingError, one_line
from tinyllm.training.staging import WEIGHT_FILE

Row = npt.NDArray[np.float64]  # [256]: probabilities, all NaN when no logit can be used
NEXT_SHOWN = 5  # likeliest bytes in a line of the table of rows


class Inspection:
    """A checkpoint, loaded to be looked at; raises TrainingError when it cannot be."""

    def __init__(self, model_dir: str | os.PathLike[str]) -> None:
        self._dir = Path(model_dir)
        try:
            model = Bigram.load(self._dir)
            with FileSource(self._dir / WEIGHT_FILE) as source:
                self._index, self._file_bytes = read_index(source), source.length
        except CheckpointError as error:
            raise TrainingError(str(error)) from error
        self.rows = np.array([probabilities(model.logits(prev)) for prev in range(VOCAB_SIZE)])

    def summary(self) -> str:
        """Return what is in the file and a table with a line for each row that is not uniform."""
        lines = [f"{one_line(str(self._dir / WEIGHT_FILE))}: {self._file_bytes:,} bytes"]
        for name, value in self._index.metadata.items():
            lines.append(one_line(f"  {name}: {value}"))
        for tensor in self._index.tensors.values():
            lines.append(f"  {tensor.name}: {tensor.dtype} {list(tensor.shape)}")
        return "\n".join([*lines, "", *self._table()])

    def _table(self) -> list[str]:
        """Return a line for each row that says something, and one for all that do not."""
        lines = [f"{'after':<12}{'entropy':>8}  likeliest next bytes"]
        uniform = []
        for prev, row in enumerate(self.rows):
            if row.min() == row.max():
                uniform.append(prev)
            else:
                likely = [b for b in likeliest(row)[:NEXT_SHOWN] if row[b] > row.min()]
                nexts = "  ".join(f"{byte_text(byte)} {row[byte]:.1%}" for byte in likely)
                lines.append(f"{prev:>3} {byte_text(prev):<8}{entropy_bits(row):>8.3f}  {nexts}")
        if uniform:
            lines += ["", f"{len(uniform)} rows are uniform, 8 bits: {ranges_text(uniform)}"]
        return lines

    def after(self, prev: int, count: int) -> str:
        """Return a table of the `count` likeliest bytes after byte `prev`."""
        row = self.rows[prev]
        bits = entropy_bits(row)
        lines = [
            f"after {byte_text(prev)} (byte {prev}): entropy {bits:.3f} bits, "
            f"like a choice among {2**bits:.1f}",
            "",
            f"{'rank':>4}  {'next':<12}{'probability':>12}{'together':>12}",
        ]
        together = 0.0
        for rank, byte in enumerate(likeliest(row)[:count], 1):
            together += row[byte]
            lines.append(
                f"{rank:>4}  {byte:>3} {byte_text(byte):<8}{row[byte]:>12.4%}{together:>12.4%}"
            )
        return "\n".join(lines)


def probabilities(logits: list[float]) -> Row:
    """Return the softmax of a row in float64, as decoding reads it at temperature 1."""
    z = np.array(logits, dtype=np.float64)
    usable = np.where(np.isnan(z), -np.inf, z)
    top = usable.max()
    if top == -np.inf:
        return np.full(len(z), np.nan)
    shares = (usable == top) if top == np.inf else np.exp(usable - top)
    return np.asarray(shares / shares.sum(), dtype=np.float64)


def entropy_bits(row: Row) -> float:
    """Return the entropy in bits, NaN for a row that has no probabilities."""
    some = row[row != 0]
    return abs(float((some * np.log2(some)).sum()))  # a certain row has 0.0, not -0.0


def likeliest(row: Row) -> list[int]:
    """Return the bytes, likeliest first; of equals the lowest, as greedy decoding does."""
    return [int(byte) for byte in np.argsort(-row, kind="stable")]


def byte_text(byte: int) -> str:
    r"""Return a byte as it is best read: 'e', '\n', or 0xc3 for what is no ASCII character."""
    if byte < 0x80:
        return repr(chr(byte))
    return f"0x{byte:02x}"


def ranges_text(numbers: list[int]) -> str:
    """Return rising numbers with runs drawn together: 0-8, 11, 14-31."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)
