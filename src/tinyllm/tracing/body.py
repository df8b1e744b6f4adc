"""The body of one export, put together from pieces that the processor's cache can hold.

A body of 512 spans is near a megabyte. In one piece it is memory that the operating system maps
anew each time, which costs a span 1.3 microseconds, more than the joining of its text; a piece of a
few spans is written to where one before it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tinyllm.tracing.span import SCOPE, AttrValue, attribute_message
from tinyllm.wire.jsontext import dump_json

SPANS_PER_PIECE: Final = 16  # 27 KB
END: Final = b"]}]}]}"


def body_head(resource: Mapping[str, AttrValue]) -> bytes:
    """Return how each ExportTraceServiceRequest of a process begins."""
    attributes = [attribute_message(key, value) for key, value in resource.items()]
    resource_text = dump_json({"attributes": attributes})
    head = f'{{"resourceSpans":[{{"resource":{resource_text},"scopeSpans":[{{"scope":'
    return f'{head}{dump_json(SCOPE)},"spans":['.encode()


class Body:
    """One ExportTraceServiceRequest, as it is written."""

    def __init__(self, head: bytes) -> None:
        self._pieces = [head]
        self._texts: list[str] = []  # of spans that are in no piece yet
        self.spans = 0

    def add(self, span: str) -> None:
        """Add an encoded span."""
        self.spans += 1
        self._texts.append(span)
        if len(self._texts) == SPANS_PER_PIECE:
            self._join()

    def finish(self) -> list[bytes]:
        """Return the whole body, in pieces."""
        self._join()
        self._pieces.append(END)
        return self._pieces

    def _join(self) -> None:
        if self._texts:
            text = ",".join(self._texts)
            self._pieces.append(text.encode() if len(self._pieces) == 1 else f",{text}".encode())
            self._texts.clear()
