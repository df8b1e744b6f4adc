"""One request, from its prompt ids to its generated ids.

A generation is a bounded run of the sampler. It can be taken token by token (a plain
iterator, what `tinyllm generate` prints) or in slices (what the engine hands to a stream);
both give the same ids, because the sampler draws the same numbers however it is cut.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tinyllm.decoding.sampling import SamplerCache, SamplingError, TokenSampler, draw_ahead
from tinyllm.model.base import LanguageModel

# A slice looks at the clock after this many tokens, then after GROWTH times as many, and so on. So
# few tokens of a temperature never seen before (some 20 us each) stay near a slice's time.
FIRST_LOOK = 32
GROWTH = 8
MANY_TOKENS = 64  # from here on, drawing them ahead together with others pays


class SamplingParams(NamedTuple):
    """How to generate: a count of tokens, a temperature (0 is greedy) and the generator's seed."""

    max_tokens: int
    temperature: float = 1.0
    seed: int = 0


class Generation:
    """The tokens of one request, drawn as they are asked for."""

    __slots__ = ("_sampler", "remaining")

    def __init__(
        self,
        model: LanguageModel,
        prompt_ids: Sequence[int],
        params: SamplingParams,
        cache: SamplerCache | None = None,
    ) -> None:
        self._sampler = TokenSampler(model, prompt_ids, params.temperature, params.seed, cache)
        self.remaining = params.max_tokens

    def take(self, limit: int) -> list[int]:
        """Return the next token ids: `limit` of them, or what remains.

        Raises SamplingError when a row of logits has no usable value.
        """
        count = min(limit, self.remaining)
        ids = self._sampler.take(count)
        self.remaining -= count
        return ids

    def take_until(self, deadline: float, limit: int) -> list[int]:
        """Return up to `limit` ids, but stop soon after `deadline` (`time.perf_counter` seconds).

        At least one id is returned, so that a generation always gets on. Raises SamplingError
        when the next row of logits has no usable value: the ids before it have been returned.
        """
        ids: list[int] = []
        try:
            ids += self.take(min(limit, FIRST_LOOK))
            while self.remaining and len(ids) < limit and time.perf_counter() < deadline:
                ids += self.take(min(limit, GROWTH * len(ids)) - len(ids))
        except SamplingError as error:
            ids += error.partial
            if not ids:
                raise
        return ids


def prepare_slices(generations: Sequence[Generation]) -> None:
    """Make at once what the next slices of generations that began together will need."""
    draw_ahead([each._sampler for each in generations if each.remaining >= MANY_TOKENS])


def generate_tokens(
    model: LanguageModel, prompt_ids: Sequence[int], params: SamplingParams
) -> Iterator[int]:
    """Yield the ids that `params` generates after a non-empty prompt (engine spec, section 2.1)."""
    generation = Generation(model, prompt_ids, params)
    while generation.remaining:
        yield from generation.take(1)
