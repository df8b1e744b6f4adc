"""Where the text comes from: files, folders, standard input, any of them gzipped.

Paths are walked lazily, so a folder of a million files costs no memory, and in an order that
depends on the names alone: sorted by bytes, folder by folder. Within a folder only regular
files are text; a link to a file counts as one, a link to a folder is not followed (it could
lead back up). A path that was named is always read: a pipe or a device (`<(zcat *.gz)` in a
shell) is a stream. Compression is told by the first two bytes, never by the name.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from tinyllm.training.errors import TrainingError, explain

STDIN = "-"
GZIP_MAGIC = b"\x1f\x8b"  # RFC 1952, section 2.3.1: ID1 and ID2
READ_AHEAD_BYTES = 128 * 1024


@dataclass(frozen=True, slots=True)
class Source:
    """One text: a plain file, or a stream whose length shows only at its end.

    `stored_bytes` is the size on disk, compressed if it is; None when it has none (a pipe).
    """

    path: str
    stored_bytes: int | None
    is_stream: bool


def find_sources(paths: Sequence[str], skip: str | None = None) -> Iterator[Source]:
    """Yield the texts under `paths`, in order; `skip` is a folder that is no text (the model's).

    Raises TrainingError for a path that is missing or unreadable, or a folder without files.
    """
    for path in paths:
        with naming(path):
            if path == STDIN:
                if sys.stdin is None:
                    raise TrainingError("standard input: it is closed")
                yield Source(STDIN, None, is_stream=True)
            elif os.path.isdir(path):
                yield from _folder(path, skip)
            else:
                yield _file(path)


def _folder(folder: str, skip: str | None) -> Iterator[Source]:
    """Yield the regular files below a folder; raise TrainingError when there is none."""
    found = False
    for path in _walk(folder, skip):
        found = True
        yield _file(path)
    if not found:
        raise TrainingError(f"{folder}: the folder holds no files")


def _walk(folder: str, skip: str | None) -> Iterator[str]:
    """Yield the paths of the regular files below `folder`, sorted folder by folder.

    A stack and not recursion: a path may have more levels than Python has frames.
    """
    stack = [_entries(folder, skip)]
    while stack:
        path = next(stack[-1], None)
        if path is None:
            stack.pop()
        elif os.path.isfile(path):
            yield path
        elif os.path.isdir(path) and not os.path.islink(path):
            stack.append(_entries(path, skip))


def _entries(folder: str, skip: str | None) -> Iterator[str]:
    """Return the paths in a folder sorted by name, none if it is the one to skip."""
    if os.path.realpath(folder) == skip:
        return iter(())
    names = sorted(os.listdir(folder), key=os.fsencode)
    return (os.path.join(folder, name) for name in names)


def _file(path: str) -> Source:
    """Return the source for a path that is no folder."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        return Source(path, None, is_stream=True)
    with open(path, "rb", buffering=0) as file:
        is_gzip = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        size = os.fstat(file.fileno()).st_size
    return Source(path, size, is_stream=is_gzip or size == 0)  # /proc says 0 and has text


class Text(Protocol):
    """What a stream is read through, compressed or not."""

    def read(self, size: int, /) -> bytes:
        """Return the next `size` bytes, fewer only at the end."""


class MeasuredReader(io.RawIOBase):
    """A raw file that can be asked how it begins, and says how many bytes were read from it."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw = raw
        self._head = b""
        self.bytes_read = 0

    def starts_with(self, magic: bytes) -> bool:
        """Tell whether the first bytes are `magic`; they are still read afterwards.

        A pipe may deliver them one by one.
        """
        while len(self._head) < len(magic) and (more := self._raw.read(1)):
            self._head += more
        return self._head.startswith(magic)

    def readable(self) -> bool:
        """Tell the buffer above that this can be read."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read what comes next into `buffer` and return how many bytes that were."""
        if self._head:
            count = min(len(buffer), len(self._head))
            buffer[:count] = self._head[:count]
            self._head = self._head[count:]
        else:
            count = self._raw.readinto(buffer) or 0
        self.bytes_read += count
        return count


@contextmanager
def open_stream(source: Source) -> Iterator[tuple[Text, MeasuredReader]]:
    """Open a stream: its text, uncompressed, and the reader that knows how far it got.

    Raises TrainingError, also from within the block, when it cannot be read or its gzip data
    is broken.
    """
    is_stdin = source.path == STDIN
    with (
        naming(source.path),
        open(0 if is_stdin else source.path, "rb", buffering=0, closefd=not is_stdin) as raw,
    ):
        reader = MeasuredReader(raw)
        is_gzip = reader.starts_with(GZIP_MAGIC)
        buffered = io.BufferedReader(reader, READ_AHEAD_BYTES)
        if is_gzip:
            with gzip.GzipFile(fileobj=buffered) as text:
                yield text, reader
        else:
            yield buffered, reader


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Turn what can go wrong with a text into a TrainingError that names it."""
    name = "standard input" if path == STDIN else path
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TrainingError(f"{name}: broken gzip data: {error}") from error
    except OSError as error:
        raise TrainingError(explain(error, name)) from error
