"""What samplers of one model share: what is kept per state and per temperature, and the seeds.

- The sums of a row's probabilities, for a binary search. A row costs as much as one token of
  the plain form, so even a temperature that is used once loses nothing by it. It is an array:
  a list is searched a fifth faster, at four times the memory.
- For a temperature in heavy use, also a guide per row: for each value of a uniform's leading
  byte the id that all such uniforms pick, or UNKNOWN where a boundary lies between them. In
  real text seven uniforms of eight find their id there, at half the time of a search.
- The greedy choice, which knows no temperature, and the path of choices that follows it: each token
  leads to the next, so 16 are looked up at once (256 tokens in 1.5 us, one by one in 8).

Memory is bounded by bytes: besides the temperature in use, what was not used for longest is
forgotten. A stream asks for its rows whenever it goes on and holds none in between, so the
bound holds for any number of streams. Nothing here refers back to what holds it, so what is
forgotten is freed at once.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tinyllm.decoding.distribution import SamplingError, cumulative, greedy, softmax
from tinyllm.decoding.uniforms import SeedPool

if TYPE_CHECKING:
    from tinyllm.model.base import LanguageModel

LEADS = 256  # values of a leading byte
MAX_CACHE_BYTES = 64 * 1024 * 1024  # 120 temperatures with every row of a byte model, no guides
HEAVY_USE_TOKENS = 32 * 1024  # after so many tokens a temperature's guides are worth their making
ITEM_BYTES = 8  # a double of an array, a pointer of a list
ROW_BYTES = 128  # an array or a list without its items, and its place in a dict
UNKNOWN = -1  # no token's id
PATH_TOKENS = 16
NO_GUIDE = [UNKNOWN] * LEADS  # the guide of a row that has none yet


class SamplerCache:
    """The rows of one model, shared by every stream that samples from it on one thread."""

    def __init__(self, model: LanguageModel, max_bytes: int = MAX_CACHE_BYTES) -> None:
        self.model = model
        self.argmax = [UNKNOWN] * model.vocab_size  # the greedy choice by state
        self.paths: list[list[int]] = [[]] * model.vocab_size  # PATH_TOKENS of them, or none yet
        self.seeds = SeedPool()
        self._max_bytes = max_bytes
        self._by_temperature: OrderedDict[float, TemperatureRows] = OrderedDict()
        self._settled_bytes = 0  # of all temperatures but the newest
        self._newest: TemperatureRows | None = None

    @property
    def bytes(self) -> int:
        """How much memory the rows take."""
        return self._settled_bytes + (self._newest.bytes if self._newest else 0)

    def find_argmax(self, state: int) -> int:
        """Return the greedy choice of a state that `argmax` does not know yet, and note it.

        Raises SamplingError when no logit is usable.
        """
        token_id = self.argmax[state] = greedy(self.model.logits(state))
        return token_id

    def find_path(self, state: int) -> list[int]:
        """Return the PATH_TOKENS greedy choices that follow a state, and note them.

        The path is empty when a row on it has no usable logit.
        """
        path: list[int] = []
        follows = state
        try:
            while len(path) < PATH_TOKENS:
                token_id = self.argmax[follows]
                follows = token_id if token_id >= 0 else self.find_argmax(follows)
                path.append(follows)
        except SamplingError:
            return []
        self.paths[state] = path
        return path

    def rows(self, temperature: float) -> TemperatureRows:
        """Return the rows of a temperature above 0, making room if another one has grown.

        They are the caller's until the next call; then they may be forgotten.
        """
        newest = self._newest
        if newest is not None:
            if newest.temperature == temperature:
                return newest
            self._settled_bytes += newest.bytes
            self._make_room()
        rows = self._by_temperature.get(temperature)
        if rows is None:
            rows = TemperatureRows(self.model, temperature)
            self._by_temperature[temperature] = rows
        else:
            self._by_temperature.move_to_end(temperature)
            self._settled_bytes -= rows.bytes
        self._newest = rows
        return rows

    def _make_room(self) -> None:
        """Forget the temperatures that were not used for longest."""
        while self._settled_bytes > self._max_bytes:
            _, forgotten = self._by_temperature.popitem(last=False)
            self._settled_bytes -= forgotten.bytes


class TemperatureRows:
    """The rows of one temperature, each made when it is first looked up.

    `sums[state]` is for bisect_right. In heavy use `guide[state][leading byte]` comes first, and
    where it is UNKNOWN, `guided[state]`, which is the same as `sums[state]` but sees to it that
    the row has a guide the next time.
    """

    __slots__ = ("_vocab_size", "drawn", "guide", "guided", "sums", "temperature")

    def __init__(self, model: LanguageModel, temperature: float) -> None:
        self.temperature = temperature
        self.sums = _Sums(model, temperature)
        self.guide: list[list[int]] = [NO_GUIDE] * model.vocab_size
        self.guided = _Guided(self.sums, self.guide)
        self.drawn = 0  # tokens, counted by those who draw them
        self._vocab_size = model.vocab_size

    @property
    def in_heavy_use(self) -> bool:
        """Tell whether guides are worth their making."""
        return self.drawn > HEAVY_USE_TOKENS

    @property
    def bytes(self) -> int:
        """How much memory these rows take."""
        row_bytes = ROW_BYTES + self._vocab_size * ITEM_BYTES
        guide_bytes = ROW_BYTES + LEADS * ITEM_BYTES
        return row_bytes * (1 + len(self.sums)) + guide_bytes * len(self.guided)


class _Sums(dict[int, "array[float]"]):
    """The cumulative distribution by state."""

    def __init__(self, model: LanguageModel, temperature: float) -> None:
        self._model = model
        self._temperature = temperature

    def __missing__(self, state: int) -> array[float]:
        row = array("d", cumulative(softmax(self._model.logits(state), self._temperature)))
        self[state] = row
        return row


class _Guided(dict[int, "array[float]"]):
    """The sums of those states that have a guide; looking one up gives the state its guide."""

    def __init__(self, sums: _Sums, guide: list[list[int]]) -> None:
        self._sums = sums
        self._guide = guide

    def __missing__(self, state: int) -> array[float]:
        row = self[state] = self._sums[state]
        self._guide[state] = lead_guide(row)
        return row


def lead_guide(sums: Sequence[float]) -> list[int]:
    """Return, for each value of floor(256 u), the id that every such u picks, or UNKNOWN."""
    return [
        token_id if sums[token_id := bisect_right(sums, k / LEADS)] >= (k + 1) / LEADS else UNKNOWN
        for k in range(LEADS)
    ]
