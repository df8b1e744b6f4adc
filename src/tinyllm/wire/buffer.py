"""The bytes of one connection that no request has taken yet.

It remembers how far it has looked, so that reading is linear in the bytes however they arrive. A
head can end, or break a line, only where an LF arrives, so bytes without one are not looked at
until it does. What comes in one piece, as most requests do, is kept as it came, without a copy;
only what must grow or shrink becomes a `bytearray`, which drops bytes at its front without moving
the rest.
"""

from __future__ import annotations

from tinyllm.wire.errors import HeadTooLarge, TooManyEmptyLines
from tinyllm.wire.explain import bare_line_end
from tinyllm.wire.grammar import BARE_LINE_END, EMPTY_LINES

_CR, _LF = 0x0D, 0x0A


class ReceiveBuffer:
    """Bytes in at the back, whole requests out at the front; `data` is what is held."""

    __slots__ = ("_checked", "_empty_bytes", "_max_head_bytes", "data", "unchecked_line")

    def __init__(self, max_head_bytes: int) -> None:
        self.data: bytes | bytearray = b""
        self.unchecked_line = False  # an LF came, or too much without one: worth a look for a head
        self._max_head_bytes = max_head_bytes
        self._checked = (
            0  # all lines before this offset end with CRLF, and none of them is the empty line
        )
        self._empty_bytes = 0  # of the empty lines dropped since the last request

    def append(self, data: bytes) -> None:
        """Take bytes at the back."""
        held = self.data
        if not held:
            self.data = held = bytes(data)
        elif isinstance(held, bytearray):
            held += data
        else:
            self.data = held = bytearray(held)
            held += data
        if _LF in data or len(held) > self._max_head_bytes:
            self.unchecked_line = True

    def maybe_find_head(self) -> int | None:
        """Return the length of the head at the front, empty line included; None for "not yet".

        To be called while `unchecked_line` is set; without an unchecked line the answer is None.
        Empty lines before it are dropped (RFC 9112, section 2.2: a server "SHOULD ignore at least
        one empty line"). Raises HeadTooLarge as soon as there are more bytes than a head may have,
        BadLineEnd at a bare CR or LF, and TooManyEmptyLines.
        """
        if self.data[0] == _CR:
            self._drop_empty_lines()
        end = self.data.find(b"\r\n\r\n", max(self._checked - 3, 0)) + 4
        if 4 <= end <= self._max_head_bytes:
            return end
        self._check_unfinished()
        return None

    def _drop_empty_lines(self) -> None:
        found = EMPTY_LINES.match(self.data)
        if found is None:
            return
        empty_bytes = self._empty_bytes + found.end()
        self._drop(found.end())
        self._empty_bytes = empty_bytes
        if empty_bytes > self._max_head_bytes:
            raise TooManyEmptyLines(
                f"more than {self._max_head_bytes} bytes of empty lines before the request line"
            )

    def _check_unfinished(self) -> None:
        """Refuse a head that no further bytes can mend.

        A CR behind the last LF is not judged yet, so that the answer depends on the bytes alone and
        not on how they were cut.
        """
        data = self.data
        too_large = len(data) > self._max_head_bytes
        judged = self._max_head_bytes if too_large else data.rfind(b"\n") + 1
        bare = BARE_LINE_END.search(data, max(self._checked - 1, 0), judged)
        if bare is not None:
            raise bare_line_end(data, bare.start())
        if too_large:
            raise HeadTooLarge(
                f"the request line and the fields are over {self._max_head_bytes} bytes"
            )
        self._checked = judged
        self.unchecked_line = False

    def take(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end` and drop all before `end`, which are held.

        That is how a request leaves: its head, read in place, ends at `start`, its body at `end`.
        """
        data = self.data
        if isinstance(data, bytes):
            taken = data[start:end]
        else:
            with memoryview(data) as view:  # so that the body is copied once
                taken = bytes(view[start:end])
        self._drop(end)
        return taken

    def _drop(self, length: int) -> None:
        data = self.data
        self._checked = self._empty_bytes = 0
        if len(data) == length:
            self.data = b""
            self.unchecked_line = False
            return
        self.unchecked_line = True  # the rest has not been looked at
        if isinstance(data, bytearray):
            del data[:length]
        else:
            self.data = bytearray(memoryview(data)[length:])
