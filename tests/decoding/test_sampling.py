"""The block form of sampling is the plain form, faster: same tokens, same errors, and a bound."""

from __future__ import annotations

import gc
import itertools
import sys
import weakref
from collections.abc import Iterable

import pytest

from decoding.models import NAN, TwoByteModel, awkward_model
from tinyllm.decoding import rows as rows_module
from tinyllm.decoding.pcg32 import Pcg32
from tinyllm.decoding.rows import SamplerCache
from tinyllm.decoding.sampling import SamplingError, TokenSampler, draw_ahead, next_token
from tinyllm.model.bigram import Bigram

TEMPERATURES = [0, 1e-300, 0.5, 1, 1.7, 1e308]


def plain_tokens(model: Bigram, state: int, temperature: float, seed: int, count: int) -> list[int]:
    rng, tokens = Pcg32(seed), []
    for _ in range(count):
        state = next_token(model, state, temperature, rng)
        tokens.append(state)
    return tokens


def taken(sampler: TokenSampler, portions: Iterable[int]) -> list[int]:
    return [token_id for count in portions for token_id in sampler.take(count)]


@pytest.fixture(scope="module")
def model() -> Bigram:
    return awkward_model()


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_block_form_gives_the_plain_tokens(model: Bigram, temperature: float) -> None:
    cache = SamplerCache(model)
    for seed in (0, 2**64 - 1):
        sampler = TokenSampler(model, b"a", temperature, seed, cache)
        assert sampler.take(400) == plain_tokens(model, 97, temperature, seed, 400)


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_tokens_do_not_depend_on_how_they_are_taken(model: Bigram, temperature: float) -> None:
    cache = SamplerCache(model)
    expected = TokenSampler(model, b"a", temperature, 7, cache).take(6000)
    for portions in (
        [1] * 6000,
        [16, 5984],
        [17, 1, 16, 5966],
        [5, 0, 11, 1, 240, 256, 257, 2047, 2048, 1135],
        [1, 32, 32, 64, 128, 256, 512, 4975],
    ):
        assert taken(TokenSampler(model, b"a", temperature, 7, cache), portions) == expected


@pytest.mark.parametrize("begun", [0, 1, 16, 17, 300], ids=lambda n: f"{n} tokens in")
@pytest.mark.parametrize("count", [0, 1, 2, 8, 9, 10, 40])
def test_drawing_ahead_changes_no_token(model: Bigram, begun: int, count: int) -> None:
    cache = SamplerCache(model)
    temperatures = list(itertools.islice(itertools.cycle((0.5, 0, 1)), count))
    samplers = [TokenSampler(model, b"a", t, seed, cache) for seed, t in enumerate(temperatures)]
    taken_before = [sampler.take(begun) for sampler in samplers]
    draw_ahead(samplers)
    draw_ahead(samplers[::2])  # once more changes nothing
    for seed, sampler in enumerate(samplers):
        alone = TokenSampler(model, b"a", temperatures[seed], seed, cache)
        assert taken_before[seed] + sampler.take(600) == alone.take(begun + 600)


def test_heavy_use_changes_no_token(model: Bigram) -> None:
    """Past HEAVY_USE_TOKENS the guides are in use; before, the searches were."""
    cache = SamplerCache(model)
    sampler = TokenSampler(model, b"a", 0.9, 11, cache)
    expected = sampler.take(rows_module.HEAVY_USE_TOKENS)
    assert not cache.rows(0.9).in_heavy_use
    sampler.take(4096)
    assert cache.rows(0.9).in_heavy_use
    again = TokenSampler(model, b"a", 0.9, 11, cache).take(len(expected))
    assert len(cache.rows(0.9).guided) > 200
    assert again == expected


def test_random_seeds_repeat_their_tokens(model: Bigram) -> None:
    """Whether the first uniforms of a seed were made in a pool changes nothing."""
    cache = SamplerCache(model)
    picked = [cache.seeds.random_seed() for _ in range(3)]
    cache.seeds.prepare()
    picked += [cache.seeds.random_seed() for _ in range(66)]
    assert len(set(picked)) == len(picked)
    for seed in picked:
        pooled = taken(TokenSampler(model, b"a", 1, seed, cache), [1, 10, 9])
        assert pooled == plain_tokens(model, 97, 1, seed, 20)


def test_prepared_uniforms_serve_one_request(model: Bigram) -> None:
    cache = SamplerCache(model)
    cache.seeds.prepare()
    seed = [cache.seeds.random_seed() for _ in range(65)][-1]
    first, second = (TokenSampler(model, b"a", 1, seed, cache).take(20) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("temperature", [0, 1.0])
@pytest.mark.parametrize("count", [16, 600])
@pytest.mark.parametrize("heavy", [False, True])
def test_unusable_row_ends_a_stream_where_the_plain_form_would(
    temperature: float, count: int, heavy: bool
) -> None:
    """a to j lead to the next letter; the row of k is NaN."""
    weight = [-1e30] * 65536
    for byte in range(ord("a"), ord("k")):
        weight[256 * byte + byte + 1] = 0.0
    weight[256 * ord("k") : 256 * (ord("k") + 1)] = [NAN] * 256
    model = Bigram.from_weight(weight)
    cache = SamplerCache(model)
    if heavy:
        cache.rows(1.0).drawn = rows_module.HEAVY_USE_TOKENS
    sampler = TokenSampler(model, b"a", temperature, 1, cache)
    assert bytes(sampler.take(3)) == b"bcd"
    with pytest.raises(SamplingError) as caught:
        sampler.take(count)
    assert bytes(caught.value.partial) == b"efghijk"
    for _ in range(2):
        with pytest.raises(SamplingError) as caught:
            sampler.take(1)
        assert caught.value.partial == []


@pytest.mark.parametrize("temperature", [0, 0.8])
def test_model_with_a_longer_context_is_asked_for_every_token(temperature: float) -> None:
    model = TwoByteModel()
    rng, state, expected = Pcg32(3), model.start([1, 2]), []
    for _ in range(300):
        try:
            token_id = next_token(model, state, temperature, rng)
        except SamplingError:
            break
        expected.append(token_id)
        state = model.advance(state, token_id)
    sampler = TokenSampler(model, [1, 2], temperature, 3)
    tokens = sampler.take(5)
    if len(expected) < 300:
        with pytest.raises(SamplingError) as caught:
            sampler.take(295)
        tokens += caught.value.partial
    else:
        tokens += sampler.take(295)
    assert tokens == expected


def test_arguments_are_checked_before_anything_is_drawn(model: Bigram) -> None:
    for prompt, temperature, seed in [(b"", 1, 1), (b"a", -1, 1), (b"a", NAN, 1), (b"a", 1, -1)]:
        with pytest.raises(ValueError, match=r"prompt|temperature|seed"):
            TokenSampler(model, prompt, temperature, seed)
    for ids in ([97, -5], [97, 256]):
        with pytest.raises(ValueError, match="a byte is 0 to 255"):
            TokenSampler(model, ids, 1, 1)


def test_cache_of_another_model_is_refused(model: Bigram) -> None:
    with pytest.raises(ValueError, match="the cache belongs to another model"):
        TokenSampler(model, b"a", 1, 1, SamplerCache(awkward_model()))


def test_zero_tokens_are_none(model: Bigram) -> None:
    assert TokenSampler(model, b"a", 1, 1).take(0) == []


def measured_bytes(cache: SamplerCache) -> int:
    """What the rows of a cache really hold."""
    total = 0
    for rows in cache._by_temperature.values():
        lists = {id(row): row for row in [*rows.sums.values(), *rows.guide]}
        lists.pop(id(rows_module.UNKNOWN), None)
        held = [*lists.values(), rows.guide, rows.sums, rows.guided]
        total += sum(sys.getsizeof(each) for each in held)
    return total


def test_cache_counts_its_bytes(model: Bigram) -> None:
    cache = SamplerCache(model)
    cache.rows(0.6).drawn = rows_module.HEAVY_USE_TOKENS
    for temperature in (0.5, 0.6):
        TokenSampler(model, b"a", temperature, 1, cache).take(3000)
    assert cache.bytes == pytest.approx(measured_bytes(cache), rel=0.03)


def test_a_new_temperature_with_every_request_keeps_memory_flat(model: Bigram) -> None:
    limit = 300_000
    cache = SamplerCache(model, max_bytes=limit)
    for number in range(60):
        TokenSampler(model, b"a", 1 + number / 1000, number, cache).take(16)
        newest = next(reversed(cache._by_temperature.values()))
        assert cache.bytes <= limit + newest.bytes
        assert cache.bytes == sum(rows.bytes for rows in cache._by_temperature.values())
    assert 3 < len(cache._by_temperature) < 40


def test_forgotten_rows_are_freed_at_once(model: Bigram) -> None:
    """Not when the cycle collector comes by: a server may have put it off."""
    cache = SamplerCache(model, max_bytes=1)
    cache.rows(0.5).drawn = rows_module.HEAVY_USE_TOKENS
    TokenSampler(model, b"a", 0.5, 1, cache).take(300)
    gone = weakref.ref(cache.rows(0.5).sums)
    gc.disable()
    try:
        cache.rows(0.6)
        assert gone() is None
    finally:
        gc.enable()


def test_the_temperature_in_use_is_kept_whatever_its_size(model: Bigram) -> None:
    cache = SamplerCache(model, max_bytes=1)
    samplers = [TokenSampler(model, b"a", temperature, 1, cache) for temperature in (0.5, 0.6)]
    tokens = [[*itertools.chain(*(s.take(50) for _ in range(4)))] for s in samplers]
    assert len(cache._by_temperature) == 1
    assert tokens == [plain_tokens(model, 97, temperature, 1, 200) for temperature in (0.5, 0.6)]


def test_the_least_recently_used_temperature_goes_first(model: Bigram) -> None:
    cache = SamplerCache(model, max_bytes=20_000)
    TokenSampler(model, b"a", 0.5, 1, cache).take(1)
    TokenSampler(model, b"a", 0.6, 1, cache).take(1)
    TokenSampler(model, b"a", 0.5, 1, cache).take(1)
    TokenSampler(model, b"a", 0.7, 1, cache).take(5)
    assert list(cache._by_temperature) == [0.6, 0.5, 0.7]
    cache.rows(0.8)
    assert list(cache._by_temperature) == [0.5, 0.7, 0.8]
