"""Choosing tokens: the plain form, and the block form that a server's speed hangs on.

The plain form draws one uniform u and returns the first j with p_0 + ... + p_j > u. All that it
computes before that search depends on the state and the temperature alone, so the block form
keeps each row's sums, and a token costs one binary search in them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from tinyllm.decoding.distribution import (
    SamplingError,
    check_temperature,
    cumulative,
    greedy,
    softmax,
)
from tinyllm.decoding.pcg32 import Pcg32

if TYPE_CHECKING:
    from tinyllm.model.base import LanguageModel, State


def sample(logits: Sequence[float], temperature: float, rng: Pcg32) -> int:
    """Return an id drawn at a temperature; 0 is greedy and draws nothing.

    Raises SamplingError when no logit is usable, ValueError for a negative or infinite
    temperature.
    """
    check_temperature(temperature)
    if temperature == 0:
        return greedy(logits)
    probabilities = softmax(logits, temperature)
    u = rng.uniform()
    for token_id, reached in enumerate(accumulate(probabilities)):
        if reached > u:
            return token_id
    # Rounding left u beyond the last sum: it belongs to the last id that can be drawn at all.
    return max(token_id for token_id, p in enumerate(probabilities) if p > 0)


def next_token(model: LanguageModel, state: State, temperature: float, rng: Pcg32) -> int:
    """Return the token that follows a state of the model."""
    return sample(model.logits(state), temperature, rng)


__all__ = ["SamplerCache", "SamplingError", "TokenSampler", "greedy", "next_token", "sample"]


class _Rows(dict[int, list[float]]):
    """The cumulative distributions of one temperature, by state, each computed when asked for."""

    def __init__(self, model: LanguageModel, temperature: float) -> None:
        self._model = model
        self._temperature = temperature

    def __missing__(self, state: int) -> list[float]:
        row = cumulative(softmax(self._model.logits(state), self._temperature))
        self[state] = row
        return row


class _Argmax(dict[int, int]):
    """The greedy choice by state, each computed when asked for."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    def __missing__(self, state: int) -> int:
        token_id = self[state] = greedy(self._model.logits(state))
        return token_id


class SamplerCache:
    """What is known of a model's rows, shared by every stream that samples from it."""

    MAX_TEMPERATURES = 16

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self.argmax = _Argmax(model)
        self._rows: OrderedDict[float, _Rows] = OrderedDict()

    def rows(self, temperature: float) -> _Rows:
        """Return the rows of a temperature, the least recently used one making room."""
        rows = self._rows.get(temperature)
        if rows is None:
            rows = self._rows[temperature] = _Rows(self._model, temperature)
            if len(self._rows) > self.MAX_TEMPERATURES:
                self._rows.popitem(last=False)
        else:
            self._rows.move_to_end(temperature)
        return rows


class TokenSampler:
    """One stream of tokens: the same ones as `next_token` called over and over.

    Raises ValueError for an empty prompt, a bad temperature, or a seed that is no u64.
    """

    def __init__(
        self,
        model: LanguageModel,
        prompt_ids: Sequence[int],
        temperature: float,
        seed: int,
        cache: SamplerCache | None = None,
    ) -> None:
        check_temperature(temperature)
        self._model = model
        self._state = model.start(prompt_ids)
        self._temperature = temperature
        self._rng = Pcg32(seed)
        self._cache = SamplerCache(model) if cache is None else cache

    def take(self, count: int) -> list[int]:
        """Return the next `count` token ids; SamplingError when a row has no usable logit."""
        if self._model.context_length != 1:
            return [self._step() for _ in range(count)]
        state = self._state
        if self._temperature == 0:
            argmax = self._cache.argmax
            tokens = [state := argmax[state] for _ in range(count)]
        else:
            rows, bisect = self._cache.rows(self._temperature), bisect_right
            tokens = [state := bisect(rows[state], u) for u in self._rng.uniforms(count)]
        self._state = state
        return tokens

    def _step(self) -> int:
        """Return the next token of a model whose states cannot be cached."""
        token_id = next_token(self._model, self._state, self._temperature, self._rng)
        self._state = self._model.advance(self._state, token_id)
        return token_id
