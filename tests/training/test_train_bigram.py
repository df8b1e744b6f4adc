"""From counts to log probabilities: the closed form, finite whatever was counted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyllm.training.bigram import bits_per_byte, count_bigrams, train_bigram

A, B = ord("a"), ord("b")


def test_smoothed_shares_by_hand() -> None:
    # After "a" come one "a" and two "b": with smoothing 1 that is 2 and 3 of 3 + 256.
    weight = train_bigram(count_bigrams(b"aabab"), smoothing=1.0)
    assert weight.shape == (256, 256)
    assert weight.dtype == np.float32
    assert weight[A, A] == np.float32(math.log(2 / 259))
    assert weight[A, B] == np.float32(math.log(3 / 259))
    assert weight[A, 0] == np.float32(math.log(1 / 259))


def test_a_row_that_was_never_seen_is_uniform() -> None:
    weight = train_bigram(count_bigrams(b"ab"))
    np.testing.assert_allclose(weight[0], -math.log(256), rtol=1e-6)
    assert weight[0].min() == weight[0].max()


@settings(max_examples=30, deadline=None)
@given(st.binary(min_size=2, max_size=400), st.floats(1e-6, 1e3))
def test_every_row_is_a_distribution(data: bytes, smoothing: float) -> None:
    weight = train_bigram(count_bigrams(data), smoothing).astype(np.float64)
    np.testing.assert_allclose(np.exp(weight).sum(axis=1), 1.0, rtol=1e-5)


@pytest.mark.parametrize("smoothing", [5e-324, 1e-300, 0.01, 1e6])
@pytest.mark.parametrize("count", [0, 1, 2**62], ids=["unseen", "once", "2^62 times"])
def test_every_logit_is_finite(count: int, smoothing: float) -> None:
    counts = np.zeros((256, 256), dtype=np.int64)
    counts[A, B] = count
    assert np.isfinite(train_bigram(counts, smoothing)).all()


@pytest.mark.parametrize("smoothing", [0.0, -1.0, math.nan, math.inf, 1.1e6])
def test_smoothing_out_of_range_is_refused(smoothing: float) -> None:
    with pytest.raises(ValueError, match="smoothing is above 0 and at most 1e"):
        train_bigram(count_bigrams(b"ab"), smoothing)


def test_no_other_distribution_has_a_lower_cross_entropy() -> None:
    """The closed form is the optimum: whatever is moved in a row costs bits."""
    counts = count_bigrams(b"the theme of the other thesis")
    smoothed = counts + 0.01
    best = train_bigram(counts).astype(np.float64)
    rng = np.random.default_rng(7)
    for scale in (1e-3, 1e-1, 1.0):
        other = best + rng.normal(scale=scale, size=best.shape)
        other -= np.log(np.exp(other).sum(axis=1, keepdims=True))
        assert -(smoothed * other).sum() > -(smoothed * best).sum()


def test_bits_per_byte_of_a_uniform_model_is_eight() -> None:
    uniform = np.full((256, 256), -math.log(256))
    assert bits_per_byte(uniform, count_bigrams(b"any text")) == pytest.approx(8.0)


def test_bits_per_byte_by_hand() -> None:
    # "b" follows "a" three times, each time with probability 1/4: 2 bits a byte.
    weight = np.zeros((256, 256))
    weight[A, B] = math.log(0.25)
    counts = np.zeros((256, 256), dtype=np.int64)
    counts[A, B] = 3
    assert bits_per_byte(weight, counts) == pytest.approx(2.0)


def test_bits_per_byte_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no pair"):
        bits_per_byte(np.zeros((256, 256)), count_bigrams(b""))
