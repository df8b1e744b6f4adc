"""Choosing tokens: the plain form, and the block form that a server's speed hangs on.

The plain form draws one uniform u and returns the first j with p_0 + ... + p_j > u. All that it
computes before that search depends on the state and the temperature alone, so the block form
keeps each row's sums (rows.py), and a token costs one binary search, or in rows in heavy use
one look into a table. Both forms give the same tokens; the tests compare millions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tinyllm.decoding.distribution import SamplingError, check_temperature, choose, greedy, softmax
from tinyllm.decoding.pcg32 import Pcg32
from tinyllm.decoding.rows import PATH_TOKENS, SamplerCache
from tinyllm.decoding.uniforms import make_ahead

if TYPE_CHECKING:
    from tinyllm.model.base import LanguageModel, State

__all__ = ["SamplerCache", "SamplingError", "TokenSampler", "greedy", "next_token", "sample"]


def sample(logits: Sequence[float], temperature: float, rng: Pcg32) -> int:
    """Return an id drawn at a temperature; 0 is greedy and draws nothing.

    Raises SamplingError when no logit is usable, ValueError for a temperature that is
    negative or not finite.
    """
    check_temperature(temperature)
    if temperature == 0:
        return greedy(logits)
    return choose(softmax(logits, temperature), rng.uniform())


def next_token(model: LanguageModel, state: State, temperature: float, rng: Pcg32) -> int:
    """Return the token that follows a state of the model."""
    return sample(model.logits(state), temperature, rng)


class TokenSampler:
    """One stream of tokens: the ones that `next_token` gives, called over and over.

    Raises ValueError for a prompt that the model refuses (an empty one), a bad temperature, a
    seed that is no u64, or a cache of another model.
    """

    __slots__ = ("_cache", "_model", "_state", "_temperature", "_uniforms")

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
        if cache is None:
            cache = SamplerCache(model)
        elif cache.model is not model:
            raise ValueError("the cache belongs to another model")
        self._cache = cache
        self._uniforms = cache.seeds.uniforms(seed)

    def take(self, count: int) -> list[int]:
        """Return the next `count` token ids.

        Raises SamplingError at a row with no usable logit, as does every call after it; the
        ids that this call had drawn before are in the error's `partial`.
        """
        tokens: list[int] = []
        try:
            while len(tokens) < count:
                self._extend(tokens, count - len(tokens))
        except SamplingError as error:
            error.partial = tokens
            raise
        return tokens

    def _extend(self, tokens: list[int], limit: int) -> None:
        """Append 1 to `limit` tokens; at a SamplingError, those that came before it."""
        if self._model.context_length != 1:
            self._extend_by_one(tokens)
        elif self._temperature == 0:
            self._extend_greedily(tokens, limit)
        else:
            self._extend_by_rows(tokens, limit)

    def _extend_by_one(self, tokens: list[int]) -> None:
        """Append a token of a model whose states are its own: nothing can be kept for them."""
        logits = self._model.logits(self._state)
        if self._temperature == 0:
            token_id = greedy(logits)
        else:
            _, (u,) = self._uniforms.take(1)
            token_id = choose(softmax(logits, self._temperature), u)
        self._state = self._model.advance(self._state, token_id)
        tokens.append(token_id)

    def _extend_greedily(self, tokens: list[int], limit: int) -> None:
        """Append the likeliest tokens, whole paths as far as they fit."""
        cache, state = self._cache, self._state
        paths, argmax = cache.paths, cache.argmax
        try:
            singles = limit % PATH_TOKENS
            for _ in range(limit // PATH_TOKENS):
                path = paths[state] or cache.find_path(state)
                if not path:  # it leads to an error, before which its tokens are to be had
                    singles = PATH_TOKENS
                    break
                tokens += path
                state = path[-1]
            for _ in range(singles):
                token_id = argmax[state]
                if token_id < 0:
                    token_id = cache.find_argmax(state)
                tokens.append(token_id)
                state = token_id
        finally:
            self._state = state

    def _extend_by_rows(self, tokens: list[int], limit: int) -> None:
        """Append tokens found in the rows of this temperature; the loops a server lives in."""
        lead, uniforms = self._uniforms.take(limit)
        rows, state, bisect = self._cache.rows(self._temperature), self._state, bisect_right
        rows.drawn += len(uniforms)
        try:
            if rows.in_heavy_use:
                guide, guided, begin = rows.guide, rows.guided, len(tokens)
                for k in lead:  # few uniforms are looked at: a fifth less than a zip of both
                    token_id = guide[state][k]
                    if token_id < 0:
                        token_id = bisect(guided[state], uniforms[len(tokens) - begin])
                    tokens.append(token_id)
                    state = token_id
            else:
                sums = rows.sums
                for u in uniforms:
                    state = bisect(sums[state], u)
                    tokens.append(state)
        finally:
            self._state = state


def draw_ahead(samplers: Sequence[TokenSampler]) -> None:
    """Make what samplers that began together will draw soon, for all of them at once.

    It changes no token, only what tokens cost: for samplers that have hundreds of them to give.
    """
    make_ahead([sampler._uniforms for sampler in samplers if sampler._temperature > 0])
