"""The one boundary that an architecture implements; decoding sees nothing else of a model.

A *state* stands for the context read so far. Decoding gets the first one from the prompt, asks
for the logits after it, picks a token and advances. What a state is, the model alone knows: the
previous token for a bigram, a key-value cache for a model with a long context.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

State: TypeAlias = Any  # opaque to decoding, except as context_length says


class LanguageModel(Protocol):
    """Next-token logits over a vocabulary."""

    vocab_size: int
    """Token ids are 0 to vocab_size - 1."""

    context_length: int | None
    """How many of the last tokens the logits depend on; None: all of them.

    1 is a promise: the state is the last token id itself, and the logits after it never
    change, so decoding may keep what it computed per state.
    """

    def start(self, prompt_ids: Sequence[int]) -> State:
        """Return the state after a prompt; ValueError when it is empty."""

    def logits(self, state: State) -> Sequence[float]:
        """Return vocab_size float32 values, the logits of the token that follows."""

    def advance(self, state: State, token_id: int) -> State:
        """Return the state after one more token."""
