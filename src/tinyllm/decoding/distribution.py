"""What a row of logits says about the next token: the likeliest id, or a probability for each.

The probabilities at a temperature T > 0 are p_j = exp((z_j - m) / T) / total, m being the
largest logit (specification, section 2.3). NaN is skipped and -inf has probability 0; if some
logits are +inf, they share all of it (CONTRACT, point 13).

The same seed must give the same text on every machine and Python: exp is the C library's,
one value at a time, and sums are added from left to right (the built-in sum() is compensated
from Python 3.12 on).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import accumulate
from math import exp, inf, isfinite, isnan
from operator import add


class SamplingError(ValueError):
    """A row has no usable logit: every one is NaN or -inf.

    `partial` holds the ids that the call had drawn before it came to that row.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.partial: list[int] = []


def greedy(logits: Sequence[float]) -> int:
    """Return the id of the largest logit, the lowest one if several share it; NaN is skipped.

    Raises SamplingError when no logit is usable.
    """
    return logits.index(_largest(logits))


def softmax(logits: Sequence[float], temperature: float) -> list[float]:
    """Return one probability per id, in float64; `temperature` is finite and above 0.

    Raises SamplingError when no logit is usable.
    """
    largest = _largest(logits)
    if largest == inf:
        weights = [1.0 if z == inf else 0.0 for z in logits]
    else:
        # (z - m) / T and not z / T - m / T: a tiny T would make that inf - inf.
        weights = [exp((z - largest) / temperature) for z in logits]
    total = reduce(add, weights)
    if isnan(total):
        weights = [0.0 if isnan(weight) else weight for weight in weights]
        total = reduce(add, weights)
    return [weight / total for weight in weights]


def choose(probabilities: Sequence[float], u: float) -> int:
    """Return the first id j with p_0 + ... + p_j > u, for u in [0, 1)."""
    for token_id, reached in enumerate(accumulate(probabilities)):
        if reached > u:
            return token_id
    # Rounding left u beyond the last sum: it belongs to the last id that can be drawn at all.
    return _last_possible(probabilities)


def cumulative(probabilities: Sequence[float]) -> list[float]:
    """Return the sums p_0 + ... + p_j, in which bisect_right finds the first one above u.

    It finds what `choose` returns: from the last id with p > 0 on, the sums are inf.
    """
    last = _last_possible(probabilities)
    return [*accumulate(probabilities[:last]), *[inf] * (len(probabilities) - last)]


def _last_possible(probabilities: Sequence[float]) -> int:
    """Return the last id with p > 0; there is one."""
    last = len(probabilities) - 1
    while not probabilities[last]:
        last -= 1
    return last


def check_temperature(temperature: float) -> None:
    """Raise ValueError unless the temperature is finite and not negative."""
    if not 0 <= temperature < inf:  # false for NaN too
        raise ValueError(f"a temperature is finite and at least 0, not {temperature}")


def _largest(logits: Sequence[float]) -> float:
    """Return the largest logit; SamplingError when every one is NaN or -inf."""
    largest = max(logits)
    if not isfinite(sum(logits)):  # a NaN or an infinity is there, and max() may have seen NaN
        largest = max((z for z in logits if not isnan(z)), default=-inf)
        if largest == -inf:
            raise SamplingError("no usable logit: every one is NaN or -inf")
    return largest
