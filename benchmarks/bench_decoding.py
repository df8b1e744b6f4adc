"""How fast a checkpoint loads, tokens are sampled and bytes become text.

The contenders of a table take turns in short rounds and each one's best round counts, in
processor time, so that a busy machine disturbs all of them alike. The model is the default one,
a bigram trained on this Python's own documentation. Run it with the `test` extra installed:

    python -m benchmarks.bench_decoding
"""

from __future__ import annotations

import codecs
import itertools
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import psutil
import safetensors.numpy

from tinyllm.decoding.pcg32 import Pcg32
from tinyllm.decoding.rows import HEAVY_USE_TOKENS
from tinyllm.decoding.sampling import SamplerCache, TokenSampler, next_token
from tinyllm.decoding.utf8 import Utf8Stream
from tinyllm.model.bigram import Bigram
from tinyllm.model.loader import load_model
from tinyllm.training.bigram import count_bigrams, train_bigram
from tinyllm.training.python_docs import default_text
from tinyllm.training.staging import write_bigram

ROUNDS = 25
ROUND_NS = 4_000_000  # long enough for the clock, short enough that some go undisturbed
LOADS = 1000

TEXTS = {
    "English": "The quick brown fox jumps over the lazy dog. ",
    "German": "Über größere Äpfel läuft der schöne Käfer öfter müde nach Hause. ",
    "Russian": "Съешь ещё этих мягких французских булок, да выпей же чаю. ",
    "Chinese": "我能吞下玻璃而不伤身体，他们说的都是真的。",
}

Contenders: TypeAlias = Mapping[str, Callable[[], object]]


def best_ns(contenders: Contenders) -> dict[str, float]:
    """The best round of each contender, in ns of processor time for one call."""
    calls = dict.fromkeys(contenders, 1)
    best = {name: float("inf") for name in contenders}
    for name, call in itertools.chain(*(contenders.items() for _ in range(ROUNDS))):
        started = time.thread_time_ns()
        for _ in range(calls[name]):
            call()
        spent = time.thread_time_ns() - started
        best[name] = min(best[name], spent / calls[name])
        calls[name] = max(1, int(ROUND_NS / max(spent / calls[name], 1)))
    return best


def per_unit(
    title: str, unit: str, count: int, contenders: Mapping[str, Callable[[], object]]
) -> None:
    """Print a table of contenders that each handle `count` units per call."""
    print(f"\n{title}\n")
    for name, ns in best_ns(contenders).items():
        each = ns / count
        print(f"    {name:<52} {each:9.0f} ns/{unit}   {1e3 / each:8.3f} M/s")


def per_call(title: str, contenders: Contenders) -> None:
    """Print a table of contenders, a call each."""
    print(f"\n{title}\n")
    for name, ns in best_ns(contenders).items():
        print(f"    {name:<52} {ns / 1e3:9.1f} us")


@contextmanager
def trained_model() -> Iterator[Path]:
    """The default model in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        write_bigram(Path(folder), train_bigram(count_bigrams(default_text())))
        yield Path(folder)


def bench_loading(folder: Path) -> None:
    weights = folder / "model.safetensors"
    per_call(
        "Loading a checkpoint",
        {
            "load_model: both files, every check": lambda: load_model(folder),
            "safetensors.numpy.load_file: the weights alone": (
                lambda: safetensors.numpy.load_file(weights)
            ),
            "Path.read_bytes: the weights, no check": weights.read_bytes,
        },
    )
    process = psutil.Process()
    for _ in range(10):
        load_model(folder)
    before = process.memory_info().rss
    for _ in range(LOADS):
        load_model(folder)
    grown = process.memory_info().rss - before
    print(f"    {LOADS} loads: resident memory grew by {grown / 1024:.0f} KiB")


def bench_uniforms() -> None:
    rng = Pcg32(1)
    for count in (1, 16, 32, 256, 2048):
        per_unit(
            f"Uniforms, {count} at a time",
            "uniform",
            count,
            {
                "uniforms: the scalar loop": lambda n=count: rng.uniforms(n),  # type: ignore[misc]
                "block: numpy": lambda n=count: rng.block(n),  # type: ignore[misc]
            },
        )


def plain_form(model: Bigram, count: int, temperature: float) -> None:
    rng, state = Pcg32(7), 97
    for _ in range(count):
        state = next_token(model, state, temperature, rng)


def bench_stream(model: Bigram) -> None:
    cache = SamplerCache(model)
    heavy = SamplerCache(model)
    heavy.rows(1.0).drawn = HEAVY_USE_TOKENS + 1

    def searches() -> None:
        cache.rows(1.0).drawn = 0  # so that it never comes into heavy use
        TokenSampler(model, b"a", 1.0, 7, cache).take(4096)

    per_unit(
        "One stream of 4096 tokens, temperature 1",
        "token",
        4096,
        {
            "TokenSampler.take, temperature in heavy use": (
                lambda: TokenSampler(model, b"a", 1.0, 7, heavy).take(4096)
            ),
            "TokenSampler.take, rows known": searches,
            "greedy": lambda: TokenSampler(model, b"a", 0, 7, heavy).take(4096),
        },
    )
    per_unit(
        "The plain form, 64 tokens",
        "token",
        64,
        {"next_token, over and over": lambda: plain_form(model, 64, 1.0)},
    )


def bench_requests(model: Bigram) -> None:
    cache = SamplerCache(model)
    pooled, heavy = SamplerCache(model), SamplerCache(model)
    for each in (pooled, heavy):
        each.seeds.prepare()
    heavy.rows(1.0).drawn = HEAVY_USE_TOKENS + 1

    def request(cache: SamplerCache, temperature: float, seed: int, count: int = 16) -> None:
        TokenSampler(model, b"a", temperature, seed, cache).take(count)

    fresh = itertools.count(1000)
    small = SamplerCache(model, max_bytes=1)
    per_call(
        "Requests of 16 tokens: sampler and tokens",
        {
            "greedy": lambda: request(cache, 0, 7),
            "temperature 1, a random seed from the pool": (
                lambda: request(pooled, 1.0, pooled.seeds.random_seed())
            ),
            "the same, the temperature in heavy use": (
                lambda: request(heavy, 1.0, heavy.seeds.random_seed())
            ),
            "temperature 1, a client's seed, sent before": lambda: request(cache, 1.0, 7),
            "temperature 1, a client's seed, never sent before": (
                lambda: request(cache, 1.0, next(fresh))
            ),
            "a temperature never seen before, rows kept": (
                lambda: request(cache, 0.5 + next(fresh) / 1e6, 7)
            ),
            "a temperature never seen before, rows forgotten": (
                lambda: request(small, 0.5 + next(fresh) / 1e6, 7)
            ),
            "the plain form": lambda: plain_form(model, 16, 0.9),
        },
    )
    per_call(
        "The first token",
        {
            "of a fresh temperature": lambda: request(cache, 0.5 + next(fresh) / 1e6, 7, 1),
            "of a known one": lambda: request(cache, 1.0, 7, 1),
        },
    )


def bench_text() -> None:
    incremental = codecs.getincrementaldecoder("utf-8")
    for name, text in TEXTS.items():
        data = (text * 20).encode()[:256]

        def byte_by_byte(data: bytes = data) -> list[str]:
            stream = Utf8Stream()
            return [stream.push(byte) for byte in data]

        def by_codecs(data: bytes = data) -> list[str]:
            decoder = incremental("replace")
            return [decoder.decode(data[i : i + 1]) for i in range(len(data))]

        per_unit(
            f"256 bytes of {name} to pieces of text",
            "byte",
            len(data),
            {
                "push_block": lambda data=data: Utf8Stream().push_block(data),  # type: ignore[misc]
                "push": byte_by_byte,
                "codecs' incremental decoder (another rule)": by_codecs,
            },
        )


def main() -> None:
    with trained_model() as folder:
        bench_loading(folder)
        model = Bigram.load(folder)
    bench_stream(model)
    bench_requests(model)
    bench_uniforms()
    bench_text()


if __name__ == "__main__":
    main()
