"""UTF-8 one byte at a time: each byte gives the text that it completes (CONTRACT, point 16).

The rule is that of Rust's std::str::from_utf8, which reads Unicode's table 3-7: what can still
become a character waits; what no longer can is one U+FFFD for its maximal subpart, at once. So
ED A0 is two U+FFFD as soon as A0 is there, since no character begins that way. What waits is
therefore always the beginning of a valid sequence, and a new byte either goes on with it or
breaks it and is then read by itself.

`push` is that rule, byte by byte. `push_block` gives the same pieces for a whole block, most of
it in C: the decoder turns bytes that are in no character into lone surrogates
("surrogateescape"), which go through `push`, and of the rest, one-byte characters are their own
pieces, and longer ones have as many empty pieces in front as they have more bytes.
"""

from __future__ import annotations

import re

REPLACEMENT = "\ufffd"

_TAIL = range(0x80, 0xC0)
# Table 3-7: where the second byte is bounded more tightly than a tail.
_SECOND = {
    0xE0: range(0xA0, 0xC0),  # below: overlong
    0xED: range(0x80, 0xA0),  # above: surrogates
    0xF0: range(0x90, 0xC0),  # below: overlong
    0xF4: range(0x80, 0x90),  # above: beyond U+10FFFF
}
# One-byte characters, bytes that are in no character, and longer characters.
_RUN = re.compile("[\x00-\x7f]+|[\udc80-\udcff]+|[^\x00-\x7f\udc80-\udcff]+")


class Utf8Stream:
    """Turns bytes into text piece by piece; joined, the pieces equal a decode with "replace"."""

    __slots__ = ("_pending",)

    def __init__(self) -> None:
        self._pending = b""  # the beginning of a valid sequence, 0 to 3 bytes

    def push(self, byte: int) -> str:
        """Return the text that this byte completes, "" while its sequence is incomplete."""
        pending = self._pending
        if pending and byte in _continuations(pending):
            sequence = pending + bytes((byte,))
            if len(sequence) < _sequence_length(sequence[0]):
                self._pending = sequence
                return ""
            self._pending = b""
            return sequence.decode()
        broken = REPLACEMENT if pending else ""
        length = _sequence_length(byte)
        self._pending = bytes((byte,)) if length > 1 else b""
        if length > 1:
            return broken
        return broken + (chr(byte) if length else REPLACEMENT)

    def push_block(self, data: bytes) -> list[str]:
        """Return one piece per byte, the ones that `push` would return."""
        pending = self._pending
        if not pending and data.isascii():
            return list(data.decode("ascii"))
        self._pending = b""
        pieces: list[str] = []
        for run in _RUN.findall((pending + data).decode("utf-8", "surrogateescape")):
            here, first = len(pieces), run[0]
            if first < "\x80":
                pieces += run
            elif "\udc80" <= first <= "\udcff":
                pieces += map(self.push, run.encode("ascii", "surrogateescape"))
                continue
            else:
                pieces += _spread(run)
            if self._pending:  # broken by this run, to which the decoder did not join it
                pieces[here] = REPLACEMENT + pieces[here]
                self._pending = b""
        return pieces[len(pending) :]

    def finish(self) -> str:
        """Return what still waits as one U+FFFD, or ""; the stream is then empty."""
        pending, self._pending = self._pending, b""
        return REPLACEMENT if pending else ""


def _spread(text: str) -> list[str]:
    """Return a piece for each byte of characters of two to four bytes: the last completes it."""
    pieces: list[str] = []
    for char in text:
        if char < "\u0800":
            pieces += ("", char)
        elif char < "\U00010000":
            pieces += ("", "", char)
        else:
            pieces += ("", "", "", char)
    return pieces


def _sequence_length(lead: int) -> int:
    """Return how many bytes a sequence with this first byte has; 0 if none begins with it."""
    if lead < 0x80:
        return 1
    if lead < 0xC2:  # 80..BF continue a sequence; C0 and C1 would be overlong
        return 0
    if lead < 0xE0:
        return 2
    if lead < 0xF0:
        return 3
    return 4 if lead < 0xF5 else 0  # F5 and above would be beyond U+10FFFF


def _continuations(pending: bytes) -> range:
    """Return the bytes that can follow the beginning of a sequence."""
    return _SECOND.get(pending[0], _TAIL) if len(pending) == 1 else _TAIL
