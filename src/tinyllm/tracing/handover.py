"""What an engine tells the process that exports its spans, over a stream of bytes.

First its `ExportConfig`, then any number of `Handover`s. The two processes are one program of one
Python, and nobody else can write to the stream, so the formats are Python's own: pickle for the
configuration, marshal for the rest.
"""

from __future__ import annotations

import marshal
import pickle
from typing import BinaryIO, Final, NamedTuple

from tinyllm.tracing.config import ExportConfig
from tinyllm.tracing.queue import Group

LENGTH_BYTES: Final = 4  # before each message


class Handover(NamedTuple):
    """Some spans, and what else the exporter has to know."""

    groups: list[Group]
    overflow: int  # spans lost so far because too many waited
    deadline: float | None  # monotonic time, the same in all processes, if this is the last one


def pack_config(config: ExportConfig) -> bytes:
    """Return the first message."""
    return _framed(pickle.dumps(config))


def pack(groups: list[Group], overflow: int, deadline: float | None = None) -> bytes:
    """Return a handover as a message."""
    return _framed(marshal.dumps((groups, overflow, deadline)))


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
