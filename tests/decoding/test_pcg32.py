"""PCG32: the published numbers, the corpus, and the block form beside the scalar one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tinyllm.decoding.pcg32 import MAX_BLOCK, Pcg32, first_blocks, next_blocks

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "data" / "pcg32.json").read_text()
)["cases"]
STREAMS = [case for case in CASES if case["kind"] == "stream"]
PUBLISHED = [case for case in CASES if case["kind"] == "published"]


def bounded(rng: Pcg32, bound: int) -> int:
    """The reference library's unbiased integer below a bound: values under 2^32 % bound go."""
    threshold = 2**32 % bound
    while (value := rng.next_u32()) < threshold:
        pass
    return value % bound


def test_pcg32_matches_reference_stream() -> None:
    rng = Pcg32(42, 54)
    assert [rng.next_u32() for _ in range(6)] == [
        0xA15C02B7,
        0x7B47F409,
        0xBA1D3330,
        0x83D2F293,
        0xBFA4784B,
        0xCBED606E,
    ]


@pytest.mark.parametrize("case", STREAMS, ids=lambda case: case["name"])
def test_streams_of_the_corpus(case: dict[str, Any]) -> None:
    rng = Pcg32(int(case["seed"]), int(case["seq"]))
    assert [rng.next_u32() for _ in case["u32"]] == [int(word, 16) for word in case["u32"]]
    expected = [float.fromhex(text) for text in case["uniform53_hex"]]
    rng = Pcg32(int(case["seed"]), int(case["seq"]))
    assert [rng.uniform() for _ in expected] == expected


@pytest.mark.parametrize("case", PUBLISHED, ids=lambda case: case["name"])
def test_published_rounds_with_coins_rolls_and_cards(case: dict[str, Any]) -> None:
    rng = Pcg32(int(case["seed"]), int(case["seq"]))
    for published in case["rounds"]:
        assert [rng.next_u32() for _ in range(6)] == [int(word, 16) for word in published["u32"]]
        coins = "".join("H" if bounded(rng, 2) else "T" for _ in published["coins"])
        assert coins == published["coins"]
        assert [bounded(rng, 6) + 1 for _ in published["rolls"]] == published["rolls"]
        deck = [f"{number}{suit}" for number in "A23456789TJQK" for suit in "hcds"]
        for left in range(len(deck), 1, -1):
            chosen = bounded(rng, left)
            deck[chosen], deck[left - 1] = deck[left - 1], deck[chosen]
        assert deck == published["cards"]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 16, 17, 255, MAX_BLOCK - 1, MAX_BLOCK])
@pytest.mark.parametrize("seed", [0, 1, 42, 2**63, 2**64 - 1])
def test_every_form_makes_the_same_numbers(seed: int, count: int) -> None:
    one_by_one, in_a_loop, in_a_block = Pcg32(seed), Pcg32(seed), Pcg32(seed)
    expected = [one_by_one.uniform() for _ in range(count)]
    assert in_a_loop.uniforms(count) == expected
    state, lead, uniforms = in_a_block.block(count)
    assert list(uniforms) == expected
    assert lead == bytes(int(256 * u) for u in expected)
    assert state == one_by_one.state
    # And all go on from the same place.
    assert one_by_one.next_u32() == in_a_loop.next_u32() == in_a_block.next_u32()


@pytest.mark.parametrize("seq", [0, 1, 53, 2**63, 2**64 - 1])
def test_blocks_know_their_stream(seq: int) -> None:
    assert list(Pcg32(9, seq).block(40).uniforms) == Pcg32(9, seq).uniforms(40)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 63, 64, 1000, 12345])
def test_advance_skips_outputs(count: int) -> None:
    walked, jumped = Pcg32(7), Pcg32(7)
    for _ in range(count):
        walked.next_u32()
    jumped.advance(count)
    assert jumped.next_u32() == walked.next_u32()


def test_advance_comes_full_circle_after_2_to_64_outputs() -> None:
    rng, same = Pcg32(7), Pcg32(7)
    rng.advance(2**64)
    assert rng.next_u32() == same.next_u32()
    rng.advance(-1)
    same.advance(2**64 - 1)
    assert rng.next_u32() == same.next_u32()


@pytest.mark.parametrize(("seed", "seq"), [(-1, 54), (2**64, 54), (0, -1), (0, 2**64)])
def test_seed_and_stream_must_be_u64(seed: int, seq: int) -> None:
    with pytest.raises(ValueError, match="0 to 2\\^64 - 1"):
        Pcg32(seed, seq)


def test_block_has_a_largest_size() -> None:
    with pytest.raises(ValueError, match="at most 2048 uniforms, not 2049"):
        Pcg32(1).block(MAX_BLOCK + 1)


def test_state_can_be_taken_up_again() -> None:
    rng = Pcg32(42)
    rng.uniforms(5)
    again = Pcg32.from_state(rng._state)
    assert again.next_u32() == rng.next_u32()


@pytest.mark.parametrize("count", [1, 16, 256])
def test_blocks_of_many_generators_are_those_of_each(count: int) -> None:
    seeds = [0, 1, 42, 2**63, 2**64 - 1]
    first = first_blocks(seeds, count)
    following = next_blocks([block.state for block in first], count)
    for k, seed in enumerate(seeds):
        rng = Pcg32(seed)
        for state, lead, uniforms in (first[k], following[k]):
            expected = [rng.uniform() for _ in range(count)]
            assert list(uniforms) == expected
            assert lead == bytes(int(256 * u) for u in expected)
            assert state == rng.state
