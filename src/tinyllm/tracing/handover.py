"""What an engine tells the process that exports its spans, over a stream of bytes.

First its `ExportConfig`, then any number of `Handover`s. The two processes are one program of one
Python, and nobody else can write to the stream, so the formats are Python's own: pickle for the
configuration, marshal for the rest.

A span is packed when its request ends, while all its facts are in the processor's cache, and is a
few hundred bytes from then on. Facts that wait as objects to be packed together cost the requests
between them their memory in that cache: 2 to 3 us each on the event loop.
"""

from __future__ import annotations

import marshal
import pickle
from collections.abc import Sequence
from typing import BinaryIO, Final, NamedTuple

from tinyllm.tracing.completion import CompletionSpan, Facts, bounded
from tinyllm.tracing.config import ExportConfig

LENGTH_BYTES: Final = 4  # before each message
# Of a packed span as it is; a larger one has its texts cut, since it may wait in memory.
MAX_UNCUT_BYTES: Final = 1024

# The newest version looks each object up among those before it: 4 us a span on a busy loop, not 2.
WITHOUT_REFERENCES: Final = 2


class Handover(NamedTuple):
    """Some spans, and what else the exporter has to know."""

    spans: list[bytes]  # each as `pack_span` packed it
    overflow: int  # spans lost so far because too many waited
    deadline: float | None  # monotonic time, the same in all processes, if this is the last one


def pack_config(config: ExportConfig) -> bytes:
    """Return the first message."""
    return _framed(pickle.dumps(config))


def pack_span(facts: Facts) -> bytes:
    """Return the facts of a span as bytes, long texts that a client chose cut.

    Raises ValueError for a fact of a type that CompletionSpan does not have.
    """
    if isinstance(facts, CompletionSpan):
        facts = facts.plain()
    packed = marshal.dumps(facts, WITHOUT_REFERENCES)
    if len(packed) > MAX_UNCUT_BYTES:
        packed = marshal.dumps(bounded(facts)[:], WITHOUT_REFERENCES)
    return packed


def unpack_span(packed: bytes) -> Facts:
    """Return the facts that `pack_span` was given, without names."""
    facts: Facts = marshal.loads(packed)
    return facts


def pack(spans: Sequence[bytes], overflow: int, deadline: float | None = None) -> bytes:
    """Return a handover of packed spans as a message."""
    return _framed(marshal.dumps((list(spans), overflow, deadline)))


def read_config(stream: BinaryIO) -> ExportConfig:
    """Return the first message; raise EOFError if the stream ends before it does."""
    config = pickle.loads(_payload(stream))
    assert isinstance(config, ExportConfig)
    return config


def read(stream: BinaryIO) -> Handover:
    """Return the next handover; raise EOFError if the stream ends before it does."""
    return Handover(*marshal.loads(_payload(stream)))


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
