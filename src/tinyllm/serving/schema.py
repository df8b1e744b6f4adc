"""The v0 contract as values and text: request in, answer and chunk out.

docs/openapi/openai-subset.v0.yaml is the contract itself; this file obeys it and engine spec,
section 2.7, and the tests hold one against the other. Fields are checked in the contract's
order, so that the error names the first bad one (CONTRACT, points 11 and 12).

Answers are written as text, not built as objects: a stream repeats the same 150 bytes around
every token's text, so they are made once (`ChunkFrame`) and joined at C speed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from tinyllm.serving.errors import ApiError
from tinyllm.wire import Json, JsonError, dump_json, json_string, parse_json

MAX_TOKENS_DEFAULT: Final = 16
MAX_TOKENS_LIMIT: Final = 4096
TEMPERATURE_DEFAULT: Final = 1.0
TEMPERATURE_LIMIT: Final = 2
SEED_LIMIT: Final = 2**64 - 1  # the generator's state is one unsigned 64-bit integer
SHOWN_CHARACTERS: Final = 40  # of a bad value; an error message is not a mirror

DONE_EVENT: Final = "data: [DONE]\n\n"


class CompletionRequest(NamedTuple):
    """A valid request. `seed` is None when the server is to pick one."""

    model: str
    prompt: str
    max_tokens: int = MAX_TOKENS_DEFAULT
    temperature: float = TEMPERATURE_DEFAULT
    seed: int | None = None
    stream: bool = False


def parse_completion(body: bytes) -> CompletionRequest:
    """Return the request that a body spells, or raise the ApiError (400) that names its fault.

    `null` means "not given" for the optional fields. Unknown fields are ignored, even if they
    hold a 1e400: hence `allow_overflow`, after which each known field checks its own range.
    """
    try:
        fields = parse_json(body, allow_overflow=True)
    except JsonError as error:
        raise ApiError.invalid(None, f"the body is not valid JSON: {error}") from None
    if type(fields) is not dict:
        raise ApiError.invalid(None, f"the body must be a JSON object, but is {_shown(fields)}")
    get = fields.get
    # Checked in line, not by a helper each: that is 4 us of every request's 11.
    model, prompt = get("model"), get("prompt")
    if type(model) is not str or not model:
        raise _wrong("model", "a non-empty string", model)
    if type(prompt) is not str or not prompt:
        raise _wrong("prompt", "a non-empty string", prompt)
    max_tokens = get("max_tokens")
    if max_tokens is None:
        max_tokens = MAX_TOKENS_DEFAULT
    # `type(...) is int`: true is not an integer, and 16.0 is a float (CONTRACT, point 12).
    elif type(max_tokens) is not int or not 1 <= max_tokens <= MAX_TOKENS_LIMIT:
        raise _wrong("max_tokens", f"an integer from 1 to {MAX_TOKENS_LIMIT}", max_tokens)
    temperature = get("temperature")
    if temperature is None:
        temperature = TEMPERATURE_DEFAULT
    elif type(temperature) not in (int, float) or not 0 <= temperature <= TEMPERATURE_LIMIT:
        raise _wrong("temperature", f"a number from 0 to {TEMPERATURE_LIMIT}", temperature)
    seed = get("seed")
    if seed is not None and (type(seed) is not int or not 0 <= seed <= SEED_LIMIT):
        raise _wrong("seed", f"an integer from 0 to {SEED_LIMIT}", seed)
    stream = get("stream")
    if stream is not None and type(stream) is not bool:
        raise _wrong("stream", "true or false", stream)
    # + 0.0 makes a float of an integer, and of -0.0 the 0.0 that it equals.
    return CompletionRequest(model, prompt, max_tokens, temperature + 0.0, seed, bool(stream))


def _wrong(name: str, wanted: str, value: Json) -> ApiError:
    came = "is missing or null" if value is None else f"is {_shown(value)}"
    return ApiError.invalid(name, f"{name} must be {wanted}, but {came}")


def _shown(value: Json) -> str:
    """Return a value as JSON, cut where it gets long."""
    if type(value) is int and abs(value) >= 10**SHOWN_CHARACTERS:
        return f"an integer of about {value.bit_length() * 30103 // 100_000} digits"
    try:
        text = dump_json(value)
    except JsonError:  # an infinity, here or deeper inside
        return "a value with a number out of range"
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."


def completion_body(
    completion_id: str, created: int, model: str, text: str, prompt_tokens: int, count: int
) -> str:
    """Return the plain answer (`Completion`) as JSON text."""
    return (
        f'{{"id":"{completion_id}","object":"text_completion","created":{created},'
        f'"model":{json_string(model)},"choices":[{{"index":0,"text":{json_string(text)},'
        f'"finish_reason":"length"}}],"usage":{{"prompt_tokens":{prompt_tokens},'
        f'"completion_tokens":{count},"total_tokens":{prompt_tokens + count}}}}}'
    )


def completion_chunk(
    completion_id: str, created: int, model: str, text: str, finish_reason: str | None
) -> str:
    """Return one event's payload (`CompletionChunk`) as JSON text."""
    head, tail = _chunk_sides(completion_id, created, model, finish_reason)
    return f"{head}{json_string(text)}{tail}"


def _chunk_sides(
    completion_id: str, created: int, model: str, finish_reason: str | None
) -> tuple[str, str]:
    """Return what stands before and after the token's text in a chunk."""
    reason = "null" if finish_reason is None else json_string(finish_reason)
    return (
        f'{{"id":"{completion_id}","object":"text_completion","created":{created},'
        f'"model":{json_string(model)},"choices":[{{"index":0,"text":',
        f',"finish_reason":{reason}}}]}}',
    )


class _JsonTexts(dict[str, bytes]):
    """A token's text to its JSON string. Characters beyond ASCII are looked up anew each time."""

    def __missing__(self, text: str) -> bytes:
        return json_string(text).encode()


_JSON_TEXTS = _JsonTexts(
    {text: json_string(text).encode() for text in ["", "\ufffd", *map(chr, range(128))]}
)
_JSON_TEXT_OF = _JSON_TEXTS.__getitem__


class ChunkFrame:
    """A stream's constant bytes, and the events made with them.

    An event is one `data:` line, since JSON text holds no line end (CONTRACT, point 10):
    so framing is two constants around each token's text, and many events are one
    `bytes.join`: 50 ns an event, where framing each by itself costs 900. Texts are joined as
    bytes, because one character beyond Latin-1 makes a `str` twice as wide and its encoding
    slow: 600 ns an event of a slice of 512.
    """

    __slots__ = ("_between", "_head", "_last", "_tail")

    def __init__(self, completion_id: str, created: int, model: str) -> None:
        head, tail = _chunk_sides(completion_id, created, model, None)
        _, last = _chunk_sides(completion_id, created, model, "length")
        self._head = f"data: {head}".encode()
        self._tail = f"{tail}\n\n".encode()
        self._last = f"{last}\n\n{DONE_EVENT}".encode()
        self._between = self._tail + self._head

    @property
    def event_length(self) -> int:
        """How many bytes an event has beside its token's text."""
        return len(self._between)

    def events(self, texts: Iterable[str], finished: bool) -> bytes:
        """Return one event for each token's text, of which there is at least one.

        With `finished`, the last event carries the finish reason and [DONE] follows.
        """
        events = self._between.join(map(_JSON_TEXT_OF, texts))
        return self._head + events + (self._last if finished else self._tail)
