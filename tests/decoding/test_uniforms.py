"""A seed's uniforms are the generator's, however they are taken, kept, and made ahead."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyllm.decoding import uniforms as module
from tinyllm.decoding.pcg32 import Block, Pcg32, next_blocks
from tinyllm.decoding.uniforms import FIRST_BLOCK, FIRST_COUNT, SeedPool, UniformStream, make_ahead

SEEDS = st.integers(0, 2**64 - 1)
LIMITS = st.lists(st.integers(1, 600), min_size=1, max_size=8)


def taken(stream: UniformStream, limits: list[int]) -> list[float]:
    found: list[float] = []
    for limit in limits:
        lead, some = stream.take(limit)
        assert 1 <= len(some) <= limit
        assert list(lead) == [int(256 * u) for u in some]
        found += some
    return found


@given(st.lists(st.tuples(SEEDS, LIMITS, st.booleans()), min_size=1, max_size=6), st.data())
def test_a_pool_s_uniforms_are_the_generator_s(
    wanted: list[tuple[int, list[int], bool]], data: st.DataObject
) -> None:
    pool = SeedPool()
    few = data.draw(st.lists(SEEDS, min_size=1, max_size=3), "seeds that come again and again")
    for seed, limits, ahead in wanted:
        seeds = [seed, *few, *few]
        streams = [pool.uniforms(each) for each in seeds]
        if ahead:
            make_ahead(streams)
        for each, stream in zip(seeds, streams, strict=True):
            found = taken(stream, limits)
            assert found == Pcg32(each).uniforms(len(found))


def test_what_a_seed_gave_once_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = SeedPool()
    limits = [FIRST_COUNT, FIRST_BLOCK]
    first = taken(pool.uniforms(7), limits)
    monkeypatch.setattr(module, "Pcg32", None)  # nothing can be made
    assert taken(pool.uniforms(7), limits) == first
    make_ahead([pool.uniforms(7), pool.uniforms(7)])


def test_a_seed_of_several_streams_is_made_ahead_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def counted(states: list[int], count: int) -> list[Block]:
        made.extend(states)
        return next_blocks(states, count)

    monkeypatch.setattr(module, "next_blocks", counted)
    pool = SeedPool()
    make_ahead([pool.uniforms(seed) for seed in (7, 8, 7, 8, 7)])
    assert len(made) == 2


def test_the_seeds_that_are_kept_are_bounded() -> None:
    pool = SeedPool()
    for seed in range(module.SEEDS_KEPT + 1):
        pool.uniforms(seed)
    assert pool._start.cache_info().currsize == module.SEEDS_KEPT
