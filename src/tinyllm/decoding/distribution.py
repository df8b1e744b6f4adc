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
from itertools import accumulate
from math import exp, inf, isfinite, isnan


class SamplingError(ValueError):
    """A row has no usable logit: every one is NaN or -inf."""


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
        weights = [0.0 if isnan(z) else exp((z - largest) / temperature) for z in logits]
    *_, total = accumulate(weights)
    return [weight / total for weight in weights]


def cumulative(probabilities: Sequence[float]) -> list[float]:
    """Return the sums p_0 + ... + p_j, in which bisect_right finds the first one above u.

    From the last id with p > 0 on they are inf: rounding may leave the last sum below 1 and
    the uniform beyond it, and such a uniform belongs to that id.
    """
    last = max(j for j, p in enumerate(probabilities) if p > 0)
    return [*accumulate(probabilities[:last]), *[inf] * (len(probabilities) - last)]


def check_temperature(temperature: float) -> None:
    """Raise ValueError unless the temperature is finite and not negative."""
    if not (isfinite(temperature) and temperature >= 0):
        raise ValueError(f"a temperature is finite and at least 0, not {temperature}")


def _largest(logits: Sequence[float]) -> float:
    """Return the largest logit; SamplingError when every one is NaN or -inf."""
    largest = max((z for z in logits if not isnan(z)), default=-inf)
    if largest == -inf:
        raise SamplingError("no usable logit: every one is NaN or -inf")
    return largest
