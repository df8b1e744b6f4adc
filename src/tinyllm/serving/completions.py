"""POST /v1/completions: from a request's body to its answer (engine spec, section 2.7)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from tinyllm.engine import Generation, SamplingParams
from tinyllm.serving.exchange import Exchange
from tinyllm.serving.responses import EventStream, Pending, PlainCompletion, Response
from tinyllm.serving.schema import ChunkFrame, completion_body, parse_completion
from tinyllm.tracing import random_hex
from tinyllm.wire import Request

if TYPE_CHECKING:
    from tinyllm.serving.server import Server

# A plain answer of at most this many tokens is made at once (some 10 us); a longer one takes
# turns with the streams, so that it delays nobody by more than a slice.
INLINE_TOKENS: Final = 64


def create_completion(request: Request, server: Server, exchange: Exchange) -> Response | Pending:
    """Return the answer, or what will become it. Raises ApiError, SamplingError."""
    wanted = parse_completion(request.body)
    prompt_ids = server.tokenizer.encode(wanted.prompt)
    seed = server.cache.seeds.random_seed() if wanted.seed is None else wanted.seed
    exchange.completion = wanted
    exchange.seed = seed
    exchange.prompt_tokens = prompt_tokens = len(prompt_ids)

    params = SamplingParams(wanted.max_tokens, wanted.temperature, seed)
    generation = Generation(server.model, prompt_ids, params, server.cache)
    exchange.completion_id = completion_id = f"cmpl-{random_hex(16)}"
    created = exchange.started_unix_nano // 1_000_000_000
    if wanted.stream:
        frame = ChunkFrame(completion_id, created, wanted.model)
        return EventStream(generation, frame, exchange.echoed)

    render = partial(_plain_body, completion_id, created, wanted.model, prompt_tokens)
    if wanted.max_tokens > INLINE_TOKENS:
        return PlainCompletion(generation, render, exchange.echoed)
    ids = generation.take(wanted.max_tokens)
    exchange.completion_tokens = len(ids)
    exchange.mark_first_token()
    return Response(200, render(bytes(ids)), exchange.echoed)


def _plain_body(
    completion_id: str, created: int, model: str, prompt_tokens: int, ids: bytes
) -> bytes:
    # The joined text of an incremental decode equals the whole decode (CONTRACT, point 16).
    text = ids.decode("utf-8", "replace")
    return completion_body(completion_id, created, model, text, prompt_tokens, len(ids)).encode()
