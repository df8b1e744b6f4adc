"""The per-byte rule told another way: by the set of all characters, not by a table of ranges."""

from __future__ import annotations

REPLACEMENT = "\ufffd"


def _beginnings() -> frozenset[bytes]:
    """Every proper beginning of a character's UTF-8: 64 characters in a row share theirs."""
    found: set[bytes] = set()
    for code in range(0x80, 0x110000, 64):
        if not 0xD800 <= code < 0xE000:
            encoded = chr(code).encode()
            found.update(encoded[:length] for length in range(1, len(encoded)))
    return frozenset(found)


BEGINNINGS = _beginnings()


def pieces_and_rest(data: bytes) -> tuple[list[str], str]:
    """What each byte of `data` must give, and what must follow at the end."""
    pieces, pending = [], b""
    for byte in data:
        piece = ""
        sequence = pending + bytes([byte])
        if pending and sequence not in BEGINNINGS and not _is_character(sequence):
            piece, sequence = REPLACEMENT, bytes([byte])
        if sequence in BEGINNINGS:
            pending = sequence
        else:
            piece += sequence.decode() if _is_character(sequence) else REPLACEMENT
            pending = b""
        pieces.append(piece)
    return pieces, REPLACEMENT if pending else ""


def _is_character(sequence: bytes) -> bool:
    try:
        return len(sequence.decode()) == 1
    except UnicodeDecodeError:
        return False
