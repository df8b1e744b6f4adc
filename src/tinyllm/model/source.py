"""Where a checkpoint's bytes come from: a buffer in memory, or a file read by its descriptor.

A file is never trusted to stay as it was. Mapping it would be the obvious way to read a large
one, but a process that touches a mapped page behind the end of a file that somebody else has
just cut short is killed by SIGBUS, and Python cannot turn that into an error. So a file is read
with pread(2), which answers such a file with fewer bytes, and:

- only ranges that were checked against the size of the open file are asked for;
- a short answer is FileChanged, and so is any difference, once the reading is done, between
  the file that was opened and the file that now has its name.
"""

from __future__ import annotations

import os
import stat
from typing import Protocol

from tinyllm.model.errors import FileChanged, UnreadableFile


class Source(Protocol):
    """Bytes that can be read by range; `length` is their number, `name` goes into errors."""

    name: str
    length: int

    def read(self, begin: int, end: int) -> bytes | memoryview:
        """Return the bytes [begin, end); the caller has checked that they lie within length."""


class BufferSource:
    """The bytes of a whole file, already in memory."""

    def __init__(self, data: bytes | bytearray | memoryview, name: str = "") -> None:
        self._view = memoryview(data).cast("B")
        self.name = name
        self.length = len(self._view)

    def read(self, begin: int, end: int) -> memoryview:
        """Return a view of [begin, end); nothing is copied."""
        return self._view[begin:end]


class FileSource:
    """A regular file, open for reading; a context manager that closes it.

    Raises UnreadableFile when it cannot be opened, FileChanged when it does not stay as it was.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.fspath(path)
        try:
            # O_NONBLOCK: a FIFO in place of a file must not make us wait for a writer.
            self._fd = os.open(self.name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            reason = getattr(error, "strerror", None) or str(error)
            raise UnreadableFile(reason, file=self.name) from error
        self._opened = os.fstat(self._fd)
        self.length = self._opened.st_size
        if not stat.S_ISREG(self._opened.st_mode):
            self.close()
            raise UnreadableFile("it is not a regular file", file=self.name)

    def read(self, begin: int, end: int) -> bytes:
        """Return the bytes [begin, end) as they are in the file now."""
        chunks = []
        while begin < end:
            try:
                chunk = os.pread(self._fd, end - begin, begin)
            except OSError as error:
                raise UnreadableFile(error.strerror or str(error), file=self.name) from error
            if not chunk:
                problem = f"it ended at byte {begin} when {self.length} were expected"
                raise FileChanged(problem, file=self.name)
            chunks.append(chunk)
            begin += len(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def check_unchanged(self) -> None:
        """Raise FileChanged unless the path still names the file as it was opened."""
        try:
            now = os.stat(self.name)
        except OSError as error:
            raise FileChanged(f"it went away: {error.strerror}", file=self.name) from error
        for what, field in _IDENTITY:
            before, after = getattr(self._opened, field), getattr(now, field)
            if before != after:
                raise FileChanged(f"its {what} was {before}, now {after}", file=self.name)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._fd)

    def __enter__(self) -> FileSource:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()


# What tells that a path still names the same, unchanged file.
_IDENTITY = (
    ("device", "st_dev"),
    ("inode", "st_ino"),
    ("size", "st_size"),
    ("time of change in ns", "st_mtime_ns"),
)
