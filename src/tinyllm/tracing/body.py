"""The body of one export, put together in memory that is kept from batch to batch.

A body of 512 spans is near a megabyte. Fresh memory of that size comes from the operating
system with a page fault per 4 KiB, which costs more than the writing; so there is one buffer, and
each batch overwrites the one before.
"""

from __future__ import annotations

from collections.abc import Mapping

from tinyllm.tracing.span import SCOPE, AttrValue, attribute_message
from tinyllm.wire.jsontext import dump_json


class BodyWriter:
    """Writes ExportTraceServiceRequest, one after the other. For one thread."""

    def __init__(self, resource: Mapping[str, AttrValue]) -> None:
        attributes = [attribute_message(key, value) for key, value in resource.items()]
        resource_text = dump_json({"attributes": attributes})
        head = f'{{"resourceSpans":[{{"resource":{resource_text},"scopeSpans":[{{"scope":'
        self._buffer = bytearray(f'{head}{dump_json(SCOPE)},"spans":['.encode())
        self._head_length = len(self._buffer)
        self.clear()

    def clear(self) -> None:
        """Begin a new body, without spans."""
        self._length = self._head_length
        self.spans = 0

    def add(self, span: str) -> None:
        """Add an encoded span."""
        self._append(f",{span}".encode() if self.spans else span.encode())
        self.spans += 1

    def finish(self) -> memoryview:
        """Return the whole body; release it before the next one is begun."""
        self._append(b"]}]}]}")
        return memoryview(self._buffer)[: self._length]

    def _append(self, piece: bytes) -> None:
        end = self._length + len(piece)
        self._buffer[self._length : end] = piece  # past the buffer's end it grows
        self._length = end
