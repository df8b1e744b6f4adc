"""The bytes of one connection that no request has taken yet.

It remembers how far it has searched for the end of a head, so that reading is linear in the bytes
however they arrive: each byte is looked at a fixed number of times, and bytes leave only at the
front, which `bytearray` does without moving the rest.
"""

from __future__ import annotations

from tinyllm.wire.errors import BadLineEnd, HeadTooLarge, TooManyEmptyLines
from tinyllm.wire.grammar import BARE_LINE_END, EMPTY_LINES

_CR = 0x0D


class ReceiveBuffer:
    """Bytes in at the back, whole heads and bodies out at the front.

    `data` is the bytes themselves: the parser reads a head in place, and then drops it.
    """

    __slots__ = ("_checked", "_empty_bytes", "_max_head_bytes", "_searched", "data")

    def __init__(self, max_head_bytes: int) -> None:
        self.data = bytearray()
        self._max_head_bytes = max_head_bytes
        self._searched = 0  # no LF has to be looked for before this offset
        self._checked = 0  # all line ends before this offset are CRLF, and no head ends before it
        self._empty_bytes = 0  # of the empty lines dropped since the last head

    def maybe_find_head(self) -> int | None:
        """Return the length of the head at the front, empty line included; None for "not yet".

        Empty lines before it are dropped (RFC 9112, section 2.2: a server "SHOULD ignore at least
        one empty line"). Raises HeadTooLarge as soon as there are more bytes than a head may have,
        BadLineEnd at a bare CR or LF, and TooManyEmptyLines.
        """
        data = self.data
        if data.find(b"\n", self._searched) < 0:  # a head cannot end, nor break a line, without one
            if len(data) <= self._max_head_bytes:
                self._searched = len(data)
                return None
        elif data[0] == _CR:
            self._drop_empty_lines()
        end = data.find(b"\r\n\r\n", max(self._checked - 3, 0)) + 4
        if 4 <= end <= self._max_head_bytes:
            return end
        self._check_unfinished()
        return None

    def _drop_empty_lines(self) -> None:
        found = EMPTY_LINES.match(self.data)
        if found is None:
            return
        del self.data[: found.end()]
        self._searched = self._checked = 0
        self._empty_bytes += found.end()
        if self._empty_bytes > self._max_head_bytes:
            raise TooManyEmptyLines(
                f"more than {self._max_head_bytes} bytes of empty lines before the request line"
            )

    def _check_unfinished(self) -> None:
        """Refuse a head that no further bytes can mend."""
        bare = BARE_LINE_END.search(self.data, max(self._checked - 1, 0), self._max_head_bytes)
        if bare is not None:
            raise bare_line_end(self.data, bare.start())
        if len(self.data) > self._max_head_bytes:
            raise HeadTooLarge(
                f"the request line and the fields are over {self._max_head_bytes} bytes"
            )
        self._searched = self._checked = len(self.data)

    def drop(self, length: int) -> None:
        """Forget `length` bytes at the front: the head that `maybe_find_head` found."""
        del self.data[:length]
        self._searched = self._checked = self._empty_bytes = 0

    def maybe_take_exactly(self, length: int) -> bytes | None:
        """Return the first `length` bytes and forget them; None while there are fewer."""
        data = self.data
        if len(data) < length:
            return None
        with memoryview(data) as view:
            taken = bytes(view[:length])
        del data[:length]
        return taken


def bare_line_end(data: bytes | bytearray, offset: int) -> BadLineEnd:
    """Return the error for the CR or LF at `offset` that is not part of a CRLF."""
    name = "CR" if data[offset] == _CR else "LF"
    line = data.count(b"\r\n", 0, offset) + 1
    return BadLineEnd(f"line {line} of the head has a bare {name}: lines end with CRLF")
