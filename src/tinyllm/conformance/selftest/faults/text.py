"""Faults of the text: its characters, its JSON, its sampling, its model."""

# ruff: noqa: D102 (a method is explained where it is right; its class says what is wrong here)

from __future__ import annotations

import array
import itertools
import json
import math
import secrets
from collections.abc import Iterator

from tinyllm.conformance.checkpoint import Checkpoint
from tinyllm.conformance.selftest.engine import Engine, Job
from tinyllm.conformance.selftest.fault import caught_by
from tinyllm.conformance.selftest.faults.plain import ANY_TEXT
from tinyllm.conformance.selftest.model import weights


@caught_by(
    "v0.stream.equals_nonstream",
    shared=("v0.stream.equals_seeded", "v0.crowd.own_answers", "v0.checkpoint.chunks"),
)
class StreamStartsLate(Engine):
    """The stream leaves the first character of the text out."""

    def pieces(self, job: Job) -> Iterator[str]:
        found = super().pieces(job)
        next(found)
        return itertools.chain([""], found)


@caught_by(
    "v0.stream.equals_seeded",
    shared=("v0.checkpoint.chunks",),
    may=("v0.stream.whole_characters",),
)
class StreamSeedsAnew(Engine):
    """A stream does not use the seed."""

    def pieces(self, job: Job) -> Iterator[str]:
        job.seed = secrets.randbits(64)
        return super().pieces(job)


@caught_by(
    "v0.stream.whole_characters",
    "v0.checkpoint.chunks",
    shared=("v0.stream.equals_nonstream", "v0.stream.equals_seeded"),
)
class DecodesEachByte(Engine):
    """Each byte is decoded on its own: characters of several bytes break (mutant s06)."""

    def pieces(self, job: Job) -> Iterator[str]:
        for token in self.tokens(job):
            yield bytes([token]).decode("utf-8", "replace")


@caught_by("v0.checkpoint.chunks")
class HoldsBackOneToken(Engine):
    """Text comes a token late: whole, but not when it could."""

    def pieces(self, job: Job) -> Iterator[str]:
        held = ""
        for number, text in enumerate(super().pieces(job), 1):
            yield held if number < job.max_tokens else held + text
            held = text


@caught_by(
    "v0.stream.json_text",
    "v0.plain.json_text",
    "v0.plain.model_echo",
    shared=("v0.checkpoint.chunks", "v0.stream.whole_characters"),
    may=ANY_TEXT,
)
class RawControls(Engine):
    """Control characters are written raw in JSON (mutant s05)."""

    def dump(self, value: object) -> str:
        text = super().dump(value)
        for code in range(1, 32):
            escape = json.dumps(chr(code))[1:-1]
            text = text.replace(escape, chr(code) if code not in (10, 13) else escape)
        return text


@caught_by("v0.plain.json_text")
class QuoteUnescapedOnce(Engine):
    """In plain answers of more than 60 tokens, the text is put between quotes as it is."""

    def plain_body(self, job: Job) -> bytes:
        body = super().plain_body(job)
        text = self.plain_text(job)
        return (
            body.replace(self.dump(text).encode(), f'"{text}"'.encode())
            if job.max_tokens == 64
            else body
        )


@caught_by(
    "v0.greedy.repeatable",
    shared=(
        *("v0.stream.equals_nonstream", "v0.checkpoint.greedy", "v0.checkpoint.ties"),
        *("v0.crowd.own_answers", "v0.fields.defaults", "v0.fields.unknown"),
    ),
    may=("v0.stream.whole_characters", "v0.json.escapes"),
)
class NeverGreedy(Engine):
    """Temperature 0 is taken for 2."""

    def temperature(self, job: Job) -> float:
        return 2.0 if job.temperature == 0 else job.temperature


@caught_by(
    "v0.seed",
    shared=("v0.stream.equals_seeded", "v0.checkpoint.seeded", "v0.checkpoint.chunks"),
    may=("v0.stream.whole_characters",),
)
class SeedIgnored(Engine):
    """The seed has no effect."""

    def tokens(self, job: Job) -> Iterator[int]:
        job.seed = secrets.randbits(64)
        return super().tokens(job)


@caught_by("v0.seed", shared=("v0.checkpoint.seeded", "v0.checkpoint.chunks", "v0.seed.absent"))
class OneSeedForAll(Engine):
    """Every request has the same seed, whatever it asks for."""

    def tokens(self, job: Job) -> Iterator[int]:
        job.seed = 7
        return super().tokens(job)


@caught_by("v0.seed.absent")
class DefaultSeed(Engine):
    """Without a seed, it is always 0."""

    def parse(self, body: bytes) -> Job:
        job = super().parse(body)
        if b'"seed"' not in body:
            job.seed = 0
        return job


@caught_by("v0.temperature", shared=("v0.checkpoint.seeded", "v0.checkpoint.chunks"))
class MultipliesByTemperature(Engine):
    """The logits are multiplied by the temperature instead of divided (mutant s03)."""

    def temperature(self, job: Job) -> float:
        return 1 / job.temperature if job.temperature > 1e-3 else job.temperature


@caught_by("v0.checkpoint.seeded", "v0.checkpoint.chunks")
class AnotherGenerator(Engine):
    """The generator is seeded with another stream number."""

    def tokens(self, job: Job) -> Iterator[int]:
        job.seed = (job.seed + 2 * 109) % 2**64
        return super().tokens(job)


class _OtherWeights(Engine):
    """Serves weights that were read wrongly."""

    def __init__(self, checkpoint: Checkpoint, collector_url: str | None) -> None:
        super().__init__(Checkpoint(self.read(weights())), collector_url)

    def read(self, table: array.array[float]) -> array.array[float]:
        """Return the 65536 weights as this server reads them."""
        return table


@caught_by(
    "v0.checkpoint.greedy",
    shared=("v0.checkpoint.seeded", "v0.checkpoint.chunks"),
    may=("v0.checkpoint.ties",),
)
class OffsetFromFileStart(_OtherWeights):
    """data_offsets are taken from the start of the file: 32 weights too early (mutant s01)."""

    def read(self, table: array.array[float]) -> array.array[float]:
        return table[-32:] + table[:-32]


@caught_by(
    "v0.checkpoint.greedy",
    shared=("v0.checkpoint.seeded", "v0.checkpoint.chunks"),
    may=("v0.checkpoint.ties",),
)
class ColumnForRow(_OtherWeights):
    """The logits are the column of the last byte, not its row (mutant s02)."""

    def read(self, table: array.array[float]) -> array.array[float]:
        turned = table[:0]
        for i in range(256):
            turned.extend(table[i::256])
        return turned


@caught_by("v0.checkpoint.ties", shared=("v0.checkpoint.greedy",))
class TiesGoHigh(Engine):
    """Of several largest logits the last one wins (mutant s04)."""

    def tokens(self, job: Job) -> Iterator[int]:
        if job.temperature > 0:
            return super().tokens(job)
        return itertools.islice(self._highest(job.prompt.encode()[-1]), job.max_tokens)

    def _highest(self, previous: int) -> Iterator[int]:
        while True:
            row = self.checkpoint.rows[previous]
            largest = max(logit for logit in row if not math.isnan(logit))
            previous = max(i for i, logit in enumerate(row) if logit == largest)
            yield previous
