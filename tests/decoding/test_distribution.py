"""Logits to probabilities to an id: the specification's formula, and its awkward ends."""

from __future__ import annotations

import math
import random
from bisect import bisect_right

import pytest

from decoding.models import INF, NAN, ROWS
from tinyllm.decoding.distribution import choose, cumulative, greedy, softmax
from tinyllm.decoding.pcg32 import Pcg32
from tinyllm.decoding.rows import lead_guide
from tinyllm.decoding.sampling import SamplingError, sample

LARGEST_UNIFORM = 1 - 2.0**-53
TEMPERATURES = [1e-300, 5e-324, 0.01, 0.5, 0.7, 1.0, 1.3, 2.0, 1e308]


def row_of(values: dict[int, float], others: float) -> list[float]:
    return [values.get(j, others) for j in range(256)]


def softmax_by_the_book(logits: list[float], temperature: float) -> list[float]:
    """Section 2.3 of the specification and CONTRACT 13, transcribed without any care for time."""
    usable = [z for z in logits if not math.isnan(z)]
    largest = max(usable)
    weights = []
    for z in logits:
        if math.isnan(z):
            weights.append(0.0)
        elif largest == INF:
            weights.append(1.0 if z == INF else 0.0)
        else:
            weights.append(math.exp((z - largest) / temperature))
    total = 0.0
    for weight in weights:
        total += weight
    return [weight / total for weight in weights]


def test_greedy_ties_go_to_lowest_id() -> None:
    assert greedy(row_of({10: 3.0, 20: 3.0}, 0.0)) == 10
    assert greedy([1.5] * 256) == 0
    assert greedy(row_of({0: NAN, 10: 3.0, 20: 3.0, 30: NAN}, 0.0)) == 10
    assert greedy(row_of({255: -1e30}, NAN)) == 255
    assert greedy(row_of({7: -0.0, 9: 0.0}, -1.0)) == 7


def test_greedy_takes_infinities_as_numbers() -> None:
    assert greedy(row_of({10: INF, 20: INF}, 0.0)) == 10
    assert greedy(row_of({10: -1e30}, -INF)) == 10


def test_sampling_skips_nan_logits() -> None:
    logits = [NAN if j % 2 == 0 else 0.0 for j in range(256)]
    rng = Pcg32(1)
    drawn = [sample(logits, 1.0, rng) for _ in range(200)]
    assert all(token_id % 2 == 1 for token_id in drawn)
    assert len(set(drawn)) > 50


def test_temperature_sampling_matches_softmax() -> None:
    logits = row_of({65: math.log(0.75), 66: math.log(0.25)}, -30.0)
    rng = Pcg32(42)
    drawn = [sample(logits, 0.5, rng) for _ in range(2000)]
    counts = drawn.count(65), drawn.count(66)
    assert sum(counts) == 2000
    chi_square = sum((n - e) ** 2 / e for n, e in zip(counts, (1800, 200), strict=True))
    assert chi_square < 10.83


def test_worked_example_of_the_walk() -> None:
    logits = row_of({65: math.log(0.75), 66: math.log(0.25)}, -30.0)
    probabilities = softmax(logits, 0.5)
    assert probabilities[65] == pytest.approx(0.9)
    assert probabilities[66] == pytest.approx(0.1)
    assert choose(probabilities, 0.3) == 65
    assert choose(probabilities, 0.95) == 66


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("kind", ROWS)
def test_probabilities_are_the_formula_bit_for_bit(kind: str, temperature: float) -> None:
    for seed in range(3):
        logits = ROWS[kind](random.Random(seed))
        assert softmax(logits, temperature) == softmax_by_the_book(logits, temperature)


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("kind", ROWS)
def test_search_and_guide_find_what_the_walk_finds(kind: str, temperature: float) -> None:
    """At every boundary, the floats beside it, every bucket's ends, and the largest uniform."""
    probabilities = softmax(ROWS[kind](random.Random(5)), temperature)
    sums = cumulative(probabilities)
    guide = lead_guide(sums)
    edges = [s for s in sums if s < 1] + [k / 256 for k in range(256)]
    beside = [math.nextafter(edge, to) for edge in edges for to in (0.0, 1.0)]
    for u in {0.0, LARGEST_UNIFORM, *edges, *beside}:
        if 0 <= u < 1:
            expected = choose(probabilities, u)
            assert bisect_right(sums, u) == expected
            assert guide[int(u * 256)] in (expected, -1)
            assert probabilities[expected] > 0


def test_uniform_beyond_the_last_sum_goes_to_the_last_id_with_a_chance() -> None:
    """0.1 ten times sums to less than 1; what follows has no chance, or too little to count."""
    for tail in ([0.0] * 3, [1e-300, 0.0, 0.0]):
        probabilities = [0.1] * 10 + tail
        last = 10 if tail[0] else 9
        assert choose(probabilities, LARGEST_UNIFORM) == last
        assert bisect_right(cumulative(probabilities), LARGEST_UNIFORM) == last


def test_infinite_logits_share_everything() -> None:
    probabilities = softmax(row_of({3: INF, 5: INF, 9: INF, 200: INF, 7: NAN}, 1e30), 1.0)
    assert [j for j, p in enumerate(probabilities) if p] == [3, 5, 9, 200]
    assert {probabilities[j] for j in (3, 5, 9, 200)} == {0.25}


@pytest.mark.parametrize("temperature", [1e-300, 5e-324])
def test_tiny_temperature_shares_among_the_largest(temperature: float) -> None:
    probabilities = softmax(row_of({3: 1.0, 5: 1.0, 7: 0.999}, -1.0), temperature)
    assert (probabilities[3], probabilities[5], probabilities[7]) == (0.5, 0.5, 0.0)


def test_huge_temperature_makes_all_alike_but_nan_and_minus_infinity() -> None:
    probabilities = softmax(row_of({0: NAN, 1: -INF, 2: 50.0}, 0.0), 1e308)
    assert probabilities == [0.0, 0.0] + [1 / 254] * 254


UNUSABLE = [[NAN] * 256, [-INF] * 256, [NAN, -INF] * 128]


@pytest.mark.parametrize("logits", UNUSABLE, ids=["NaN", "-inf", "both"])
@pytest.mark.parametrize("temperature", [0, 1e-300, 1.0])
def test_row_with_no_usable_logit_is_an_error(logits: list[float], temperature: float) -> None:
    with pytest.raises(SamplingError, match="no usable logit: every one is NaN or -inf"):
        sample(logits, temperature, Pcg32(1))


@pytest.mark.parametrize("temperature", [-1e-9, -1, NAN, INF, -INF])
def test_temperature_is_finite_and_not_negative(temperature: float) -> None:
    with pytest.raises(ValueError, match="a temperature is finite and at least 0, not"):
        sample([0.0] * 256, temperature, Pcg32(1))


@pytest.mark.parametrize("temperature", [0, 0.0, -0.0])
def test_zero_temperature_is_greedy_and_draws_nothing(temperature: float) -> None:
    rng, untouched = Pcg32(1), Pcg32(1)
    assert sample(row_of({10: 3.0, 20: 3.0}, 0.0), temperature, rng) == 10
    assert rng.next_u32() == untouched.next_u32()


def test_sampling_draws_one_uniform() -> None:
    rng, other = Pcg32(1), Pcg32(1)
    sample([0.0] * 256, 1.0, rng)
    other.uniform()
    assert rng.next_u32() == other.next_u32()
