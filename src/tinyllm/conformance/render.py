"""Show bytes to a person: every one of them visible, and the offending part underlined.

A line of output per line of input, control bytes as escapes, a CR or LF as `\\r` or `\\n` where
it stands. Long exchanges are shown at both ends and around the mark, and say what was left out.
"""

from __future__ import annotations

from typing import Final

WIDTH: Final = 96
LINES_SHOWN: Final = 14
AROUND_MARK: Final = 4  # lines before and after the marked ones
WINDOW: Final = 32 * 1024  # more bytes than this are cut down before they are laid out

_ESCAPES: Final = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r", 0x5C: "\\\\"}


def show_bytes(data: bytes, mark: tuple[int, int] | None = None) -> list[str]:
    """Return lines that show `data`, with a line of ^ under data[mark[0]:mark[1]]."""
    if not data:
        return ["(nothing)"]
    if len(data) > WINDOW:
        return _show_window(data, mark)
    rows = _rows(data)
    kept = _kept(rows, mark)
    lines: list[str] = []
    last = -1
    for index in kept:
        if index != last + 1:
            lines.append(_gap(rows, last + 1, index))
        lines += _shown(data, rows[index], mark)
        last = index
    if last + 1 < len(rows):
        lines.append(_gap(rows, last + 1, len(rows)))
    return lines


def escape(byte: int) -> str:
    """Return how one byte is shown: itself if it is printable ASCII, else an escape."""
    if byte in _ESCAPES:
        return _ESCAPES[byte]
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}"


def escaped(data: bytes) -> str:
    """Return bytes as one line of text."""
    return "".join(map(escape, data))


def _show_window(data: bytes, mark: tuple[int, int] | None) -> list[str]:
    """Show a part of many bytes: the beginning, or what lies around the mark."""
    start = max(0, (mark[0] if mark else 0) - WINDOW // 4)
    part = data[start : start + WINDOW]
    moved = (mark[0] - start, min(mark[1] - start, len(part))) if mark else None
    before = [f"... {start} bytes not shown ..."] if start else []
    return [*before, *show_bytes(part, moved), f"... {len(data)} bytes in all ..."]


def _rows(data: bytes) -> list[tuple[int, int]]:
    """Cut into (start, end): after each LF, and where a row would become too wide."""
    rows, start, width = [], 0, 0
    for index, byte in enumerate(data):
        width += len(escape(byte))
        if byte == 0x0A or width >= WIDTH:
            rows.append((start, index + 1))
            start, width = index + 1, 0
    if start < len(data):
        rows.append((start, len(data)))
    return rows


def _kept(rows: list[tuple[int, int]], mark: tuple[int, int] | None) -> list[int]:
    """Return which rows to show: all if they are few, else both ends and those at the mark."""
    if len(rows) <= LINES_SHOWN:
        return list(range(len(rows)))
    kept = {*range(6), *range(len(rows) - 3, len(rows))}
    if mark is not None:
        first = next((i for i, row in enumerate(rows) if row[1] > mark[0]), len(rows) - 1)
        kept |= set(range(max(0, first - AROUND_MARK), min(len(rows), first + AROUND_MARK + 1)))
    return sorted(kept)


def _gap(rows: list[tuple[int, int]], first: int, end: int) -> str:
    count = rows[end - 1][1] - rows[first][0]
    return f"... {count} bytes not shown ..."


def _shown(data: bytes, row: tuple[int, int], mark: tuple[int, int] | None) -> list[str]:
    """Return the row's text, and under it the marked part of it if any."""
    start, end = row
    cells = [escape(byte) for byte in data[start:end]]
    text = "".join(cells)
    if mark is None:
        return [text]
    first, last = mark
    here = start <= first < end or (first == last == len(data) == end)
    if not here and not (first < end and last > start):
        return [text]
    skipped = sum(len(cell) for cell in cells[: max(0, first - start)])
    marked = sum(len(cell) for cell in cells[max(0, first - start) : max(0, last - start)])
    return [text, " " * skipped + "^" * max(1, marked)]
