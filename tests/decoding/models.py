"""Models whose rows are hard to sample from, and one whose state is more than its last token."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from tinyllm.model.bigram import Bigram

NAN, INF = math.nan, math.inf


def _sprinkled(rng: random.Random, *values: float) -> list[float]:
    """A row of ordinary logits with the given values at every second place."""
    return [rng.choice(values) if j % 2 else rng.gauss(0, 3) for j in range(256)]


def _one(rng: random.Random, value: float, others: float) -> list[float]:
    """A row with one value that differs."""
    row = [others] * 256
    row[rng.randrange(256)] = value
    return row


# Each makes a row with at least one usable logit.
ROWS: dict[str, Callable[[random.Random], list[float]]] = {
    "ordinary": lambda rng: [rng.gauss(0, 3) for _ in range(256)],
    "with NaN": lambda rng: _sprinkled(rng, NAN),
    "with -inf": lambda rng: _sprinkled(rng, -INF),
    "with NaN and -inf": lambda rng: _sprinkled(rng, NAN, -INF),
    "with some +inf": lambda rng: _sprinkled(rng, INF, NAN, -INF),
    "all +inf": lambda _: [INF] * 256,
    "one +inf among NaN": lambda rng: _one(rng, INF, NAN),
    "one usable among NaN": lambda rng: _one(rng, -1e30, NAN),
    "one usable among -inf": lambda rng: _one(rng, 0.0, -INF),
    "all equal": lambda _: [-7.25] * 256,
    "zeros of both signs": lambda rng: [rng.choice((0.0, -0.0)) for _ in range(256)],
    "one hot": lambda rng: _one(rng, 2.0, 0.0),
    "wide": lambda rng: [rng.choice((-1, 1)) * 3e38 * rng.random() for _ in range(256)],
    "subnormal": lambda rng: [rng.choice((0.0, 1e-45, -1e-45, 7e-42)) for _ in range(256)],
    "falling": lambda _: [-j / 2.0 for j in range(256)],
    "rising": lambda _: [j / 2.0 for j in range(256)],
}


def awkward_model(seed: int = 1) -> Bigram:
    """A bigram in whose rows every kind comes in turn."""
    rng = random.Random(seed)
    kinds = list(ROWS.values())
    weight = [z for i in range(256) for z in kinds[i % len(kinds)](rng)]
    return Bigram.from_weight(weight)


class TwoByteModel:
    """A model whose logits depend on the last two tokens; its state is both of them."""

    vocab_size = 5
    context_length: int | None = 2

    def start(self, prompt_ids: Sequence[int]) -> tuple[int, int]:
        if not prompt_ids:
            raise ValueError("the prompt is empty")
        padded = [0, *prompt_ids]
        return padded[-2], padded[-1]

    def logits(self, state: tuple[int, int]) -> list[float]:
        before, last = state
        if state == (4, 4):
            return [NAN] * 5
        return [math.sin(7 * before + 3 * last + j) * 3 for j in range(5)]

    def advance(self, state: tuple[int, int], token_id: int) -> tuple[int, int]:
        return state[1], token_id
