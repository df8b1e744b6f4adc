"""What an engine tells the process that exports its spans, over a stream of bytes.

First its `ExportConfig`, then any number of `Handover`s. The two processes are one program of one
Python, and nobody else can write to the stream, so the formats are Python's own: pickle for the
configuration, marshal for the rest.

The spans of requests that end together are packed together, at once, while their facts are in the
processor's cache, and are some hundred bytes each from then on. Facts that wait as objects cost
the requests after them their memory in that cache: 2 to 3 us each on the event loop.
"""

from __future__ import annotations

import marshal
import pickle
from collections.abc import Sequence
from itertools import chain
from typing import BinaryIO, Final, NamedTuple

from tinyllm.tracing.completion import CompletionSpan, Facts, bounded
from tinyllm.tracing.config import ExportConfig

LENGTH_BYTES: Final = 4  # before each message
# A span's, packed as it is; of larger ones the texts are cut, since they may wait in memory.
MAX_UNCUT_BYTES: Final = 1024

# Newer versions look each object up among those before it: on a busy loop 4 us a span, not 2.
WITHOUT_REFERENCES: Final = 2


class Handover(NamedTuple):
    """Some spans, and what else the exporter has to know."""

    spans: list[Facts]  # without names
    overflow: int  # spans lost so far because too many waited
    deadline: float | None  # monotonic time, the same in all processes, if this is the last one


def pack_config(config: ExportConfig) -> bytes:
    """Return the first message."""
    return _framed(pickle.dumps(config))


def pack_spans(spans: Sequence[Facts]) -> bytes:
    """Return the facts of some spans as bytes, long texts that a client chose cut.

    Raises ValueError for a fact of a type that CompletionSpan does not have.
    """
    plain = [facts.plain() if isinstance(facts, CompletionSpan) else facts for facts in spans]
    packed = marshal.dumps(plain, WITHOUT_REFERENCES)
    if len(packed) > MAX_UNCUT_BYTES * len(plain):
        packed = marshal.dumps(list(map(bounded, plain)), WITHOUT_REFERENCES)
    return packed


def pack(packed: Sequence[bytes], overflow: int, deadline: float | None = None) -> bytes:
    """Return a handover of spans, as `pack_spans` packed them, as a message."""
    return _framed(marshal.dumps((list(packed), overflow, deadline)))


def read_config(stream: BinaryIO) -> ExportConfig:
    """Return the first message; raise EOFError if the stream ends before it does."""
    config = pickle.loads(_payload(stream))
    assert isinstance(config, ExportConfig)
    return config


def read(stream: BinaryIO) -> Handover:
    """Return the next handover; raise EOFError if the stream ends before it does."""
    packed, overflow, deadline = marshal.loads(_payload(stream))
    return Handover(list(chain.from_iterable(map(marshal.loads, packed))), overflow, deadline)


def _framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(LENGTH_BYTES, "big") + payload


def _payload(stream: BinaryIO) -> bytes:
    length = int.from_bytes(_whole(stream, LENGTH_BYTES), "big")
    return _whole(stream, length)


def _whole(stream: BinaryIO, length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise EOFError("the engine has ended")
    return data
