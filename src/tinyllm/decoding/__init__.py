"""Logits to token ids to text: pure functions and small state."""

from tinyllm.decoding.pcg32 import Pcg32
from tinyllm.decoding.sampling import (
    SamplerCache,
    SamplingError,
    TokenSampler,
    greedy,
    next_token,
    sample,
)
from tinyllm.decoding.tokenizer import ByteTokenizer
from tinyllm.decoding.utf8 import Utf8Stream

__all__ = [
    "ByteTokenizer",
    "Pcg32",
    "SamplerCache",
    "SamplingError",
    "TokenSampler",
    "Utf8Stream",
    "greedy",
    "next_token",
    "sample",
]
