"""The same endpoint as a Python user would write it today, as a measure for ours.

FastAPI and pydantic under uvicorn[standard] (uvloop and httptools); an SSE event per token
from an async generator. The sampler keeps each row's cumulative distribution, as ours does.

    MODEL=model.safetensors uvicorn --app-dir benchmarks/anchors fastapi_peer:app --no-access-log
"""

# mypy: disable-error-code="import-not-found, misc, untyped-decorator, assignment"
# (FastAPI lives in an environment of its own, which the type checker does not see.)

from __future__ import annotations

import json
import os
import struct
import time
from bisect import bisect_right
from collections.abc import AsyncIterator, Iterator
from itertools import accumulate
from math import exp
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

MASK = (1 << 64) - 1
VOCABULARY = 256


def read_weight(path: Path) -> memoryview[float]:
    """Return the 256 x 256 float32 logits behind the safetensors header, row by row."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    return memoryview(data)[8 + length :].cast("f")


WEIGHT = read_weight(Path(os.environ["MODEL"]))
app = FastAPI()


class CompletionRequest(BaseModel):
    """A request's body."""

    model: str = Field(min_length=1)
    prompt: str = Field(min_length=1)
    max_tokens: int = Field(16, ge=1, le=4096)
    temperature: float = Field(1.0, ge=0, le=2)
    seed: int | None = None
    stream: bool = False


class Pcg32:
    """PCG-XSH-RR 64/32, as the specification has it."""

    def __init__(self, seed: int, sequence: int = 54) -> None:
        self.increment = (sequence << 1) | 1
        self.state = 0
        self.next_u32()
        self.state = (self.state + seed) & MASK
        self.next_u32()

    def next_u32(self) -> int:
        old = self.state
        self.state = (old * 6364136223846793005 + self.increment) & MASK
        word = (((old >> 18) ^ old) >> 27) & 0xFFFFFFFF
        turn = old >> 59
        return ((word >> turn) | (word << (-turn & 31))) & 0xFFFFFFFF

    def uniform(self) -> float:
        high, low = self.next_u32() >> 5, self.next_u32() >> 6
        return (high * 67108864.0 + low) / 9007199254740992.0


CUMULATIVE: dict[tuple[int, float], list[float]] = {}


def row_of(token_id: int) -> list[float]:
    row: list[float] = WEIGHT[token_id * VOCABULARY : (token_id + 1) * VOCABULARY].tolist()
    return row


def cumulative(token_id: int, temperature: float) -> list[float]:
    key = (token_id, temperature)
    if key not in CUMULATIVE:
        row = row_of(token_id)
        most = max(row)
        weights = [exp((z - most) / temperature) for z in row]
        total = sum(weights)
        CUMULATIVE[key] = list(accumulate(weight / total for weight in weights))
    return CUMULATIVE[key]


def generate(wanted: CompletionRequest) -> Iterator[int]:
    """Yield the token ids of a request."""
    seed = int.from_bytes(os.urandom(8), "little") if wanted.seed is None else wanted.seed
    rng = Pcg32(seed)
    token_id = wanted.prompt.encode()[-1]
    for _ in range(wanted.max_tokens):
        if wanted.temperature == 0:
            row = row_of(token_id)
            token_id = row.index(max(row))
        else:
            token_id = bisect_right(cumulative(token_id, wanted.temperature), rng.uniform())
            token_id = min(VOCABULARY - 1, token_id)
        yield token_id


@app.post("/v1/completions")
async def completions(wanted: CompletionRequest) -> Any:  # noqa: ANN401 - a dict or a stream
    common = {
        "id": "cmpl-" + os.urandom(16).hex(),
        "object": "text_completion",
        "created": int(time.time()),
        "model": wanted.model,
    }
    if wanted.stream:
        return StreamingResponse(events(common, wanted), media_type="text/event-stream")
    text = bytes(generate(wanted)).decode("utf-8", "replace")
    prompt, count = len(wanted.prompt.encode()), wanted.max_tokens
    return {
        **common,
        "choices": [{"index": 0, "text": text, "finish_reason": "length"}],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": count,
            "total_tokens": prompt + count,
        },
    }


async def events(common: dict[str, object], wanted: CompletionRequest) -> AsyncIterator[str]:
    """Yield an SSE event per token, and [DONE]."""
    for count, token_id in enumerate(generate(wanted), 1):
        text = chr(token_id) if token_id < 128 else "\ufffd"
        reason = "length" if count == wanted.max_tokens else None
        choice = {"index": 0, "text": text, "finish_reason": reason}
        yield "data: " + json.dumps({**common, "choices": [choice]}) + "\n\n"
    yield "data: [DONE]\n\n"
