"""The byte tokenizer: a token is a byte of UTF-8, and its id is the byte's value."""

from __future__ import annotations

from collections.abc import Iterable


class ByteTokenizer:
    """Text to ids and back; ids are 0 to 255."""

    vocab_size = 256

    def encode(self, text: str) -> bytes:
        """Return the ids of a text: its UTF-8 bytes. UnicodeEncodeError for a lone surrogate."""
        return text.encode("utf-8")

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids, with one U+FFFD for each maximal invalid subpart.

        Raises ValueError for an id that is no byte.
        """
        return bytes(ids).decode("utf-8", "replace")
