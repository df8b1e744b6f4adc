"""One generation, however it is taken."""

from __future__ import annotations

import time

import pytest

from support.models import broken_after_a, succ
from tinyllm.decoding import Pcg32, SamplingError, next_token
from tinyllm.engine import Generation, SamplingParams, generate_tokens
from tinyllm.model import Bigram


@pytest.fixture(scope="module")
def model() -> Bigram:
    return Bigram.from_weight(
        [succ(before, after) for before in range(256) for after in range(256)]
    )


@pytest.mark.parametrize("temperature", [0.0, 0.7, 2.0])
@pytest.mark.parametrize("size", [1, 2, 7, 32, 500])
def test_slices_give_the_tokens_of_the_plain_form(
    model: Bigram, temperature: float, size: int
) -> None:
    rng, state, plain = Pcg32(7), ord("a"), []
    for _ in range(500):
        state = next_token(model, state, temperature, rng)
        plain.append(state)
    generation = Generation(model, b"a", SamplingParams(500, temperature, 7))
    taken: list[int] = []
    while generation.remaining:
        taken += generation.take(size)
    assert taken == plain
    assert list(generate_tokens(model, b"a", SamplingParams(500, temperature, 7))) == plain


def test_a_slice_ends_at_its_limit(model: Bigram) -> None:
    generation = Generation(model, b"a", SamplingParams(1000, 1.0, 1))
    assert len(generation.take_until(time.perf_counter() + 60, 300)) == 300
    assert generation.remaining == 700


def test_a_slice_whose_time_is_over_still_gets_on(model: Bigram) -> None:
    generation = Generation(model, b"a", SamplingParams(1000, 1.0, 1))
    ids = generation.take_until(time.perf_counter() - 1, 512)
    assert 1 <= len(ids) < 512


def test_no_more_tokens_than_asked_for(model: Bigram) -> None:
    generation = Generation(model, b"a", SamplingParams(3, 0.0))
    assert bytes(generation.take(100)) == b"bcd"
    assert generation.remaining == 0
    assert generation.take(100) == []


@pytest.mark.parametrize("temperature", [0.0, 1e-9], ids=["greedy", "sampled"])
def test_a_slice_that_meets_a_broken_row_returns_what_came_before_it(temperature: float) -> None:
    logits = [broken_after_a(before, after) for before in range(256) for after in range(256)]
    params = SamplingParams(100, temperature, 1)
    generation = Generation(Bigram.from_weight(logits), b"a", params)
    assert bytes(generation.take_until(time.perf_counter() + 60, 50)) == b"bc"
    with pytest.raises(SamplingError):
        generation.take_until(time.perf_counter() + 60, 50)
