"""Compare the block form of sampling with the plain form over millions of draws.

    python fuzz/compare_sampling.py [DRAWS_PER_TEMPERATURE]

The model is the tests' awkward one: rows with NaN and infinities, all equal, one hot, subnormal.
Every temperature is drawn with searches first and with guides later, in portions of random
lengths, and must give the tokens of `next_token`, called for each.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from decoding.models import awkward_model
from tinyllm.decoding.pcg32 import Pcg32
from tinyllm.decoding.sampling import SamplerCache, TokenSampler, next_token
from tinyllm.model.bigram import Bigram

TEMPERATURES = [1e-300, 0.3, 0.7, 1.0, 1.7, 1e308]


def compare(model: Bigram, temperature: float, draws: int) -> None:
    """Draw from streams of up to 5000 tokens, each with its own seed and prompt."""
    portions = random.Random(temperature)
    cache = SamplerCache(model)
    started, count = time.monotonic(), 0
    while count < draws:
        seed, state = portions.getrandbits(64), portions.randrange(256)
        sampler, rng = TokenSampler(model, [state], temperature, seed, cache), Pcg32(seed)
        left = 5000
        while left:
            taken = sampler.take(min(left, portions.choice((1, 5, 16, 17, 100, 600, 3000))))
            left -= len(taken)
            for token_id in taken:
                state = next_token(model, state, temperature, rng)
                assert token_id == state, (temperature, seed, 5000 - left)
        count += 5000
    guided = len(cache.rows(temperature).guided)
    seconds = time.monotonic() - started
    print(f"temperature {temperature}: {count} draws equal, {guided} guides, {seconds:.0f} s")


def main(draws: int = 500_000) -> None:
    """Run every temperature."""
    model = awkward_model()
    for temperature in TEMPERATURES:
        compare(model, temperature, draws)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
