"""Files that do not stay as they were: each way to change one is an error, none a crash."""

from __future__ import annotations

import os
import threading
from array import array
from collections.abc import Callable
from pathlib import Path

import pytest

from model.checkpoints import succ_file
from tinyllm.model.bigram import _read_weight
from tinyllm.model.errors import (
    CheckpointError,
    DataPastEnd,
    FileChanged,
    FileTooShort,
    HeaderPastEnd,
    UnreadableFile,
)
from tinyllm.model.source import BufferSource, FileSource


def replace(path: Path) -> None:
    other = path.with_suffix(".new")
    other.write_bytes(path.read_bytes())
    os.utime(other, ns=(0, path.stat().st_mtime_ns))
    other.rename(path)


def touch(path: Path) -> None:
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))


def shrink(path: Path) -> None:
    os.truncate(path, 1000)


def grow(path: Path) -> None:
    os.truncate(path, 300_000)


CHANGES: list[tuple[Callable[[Path], None], str]] = [
    (shrink, "its size was 262272, now 1000"),
    (grow, "its size was 262272, now 300000"),
    (replace, "its inode was"),
    (touch, "its time of change in ns was"),
    (Path.unlink, "it went away: No such file or directory"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    path.write_bytes(succ_file())
    return path


@pytest.mark.parametrize(
    ("change", "problem"), CHANGES, ids=["shrunk", "grown", "replaced", "touched", "gone"]
)
def test_file_that_changes_is_an_error(
    path: Path, change: Callable[[Path], None], problem: str
) -> None:
    with FileSource(path) as source:
        assert source.read(0, 8) == succ_file()[:8]
        source.check_unchanged()
        change(path)
        with pytest.raises(FileChanged, match=problem) as caught:
            source.check_unchanged()
    assert caught.value.file == str(path)


def test_file_that_shrinks_while_it_is_read_is_an_error(path: Path) -> None:
    """A mapped page behind the new end would kill the process with SIGBUS."""
    with FileSource(path) as source:
        os.truncate(path, 1000)
        with pytest.raises(FileChanged, match="it ended at byte 1000 when 262272 were expected"):
            source.read(128, 262272)


def test_replaced_file_is_read_whole_before_the_error(path: Path) -> None:
    """The descriptor stays with the old file, so no answer mixes the two."""
    with FileSource(path) as source:
        replace(path)
        path.write_bytes(bytes(262272))
        assert source.read(0, 262272) == succ_file()


def test_loading_beside_a_writer_gives_the_weights_or_an_error(path: Path) -> None:
    """The writer cuts the file short, writes it anew in place, and renames another over it."""
    whole, done = succ_file(), threading.Event()

    def disturb() -> None:
        while not done.is_set():
            os.truncate(path, 1000)
            path.write_bytes(whole)
            replace(path)

    writer = threading.Thread(target=disturb)
    writer.start()
    try:
        outcomes = [loaded(path) for _ in range(300)]
    finally:
        done.set()
        writer.join()
    assert {type(outcome) for outcome in outcomes} <= {array, FileChanged, *REFUSED}
    for outcome in outcomes:
        if isinstance(outcome, array):
            assert outcome.tobytes() == whole[128:]


# What a file in the middle of being written looks like.
REFUSED = (FileTooShort, HeaderPastEnd, DataPastEnd)


def loaded(path: Path) -> object:
    """The weights in a file, or the error instead."""
    try:
        with FileSource(path) as source:
            weight = _read_weight(source)
            source.check_unchanged()
    except CheckpointError as error:
        return error
    return weight


def test_descriptor_is_closed(path: Path) -> None:
    with FileSource(path) as source:
        fd = source._fd
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("missing", "No such file or directory"),
        ("model.safetensors/below", "Not a directory"),
        ("loop", "Too many levels of symbolic links"),
        ("x" * 300, "File name too long"),
        ("a\0b", "embedded null"),
    ],
    ids=["missing", "below a file", "link to itself", "long name", "NUL in the name"],
)
def test_file_that_cannot_be_opened_says_why(path: Path, name: str, problem: str) -> None:
    (path.parent / "loop").symlink_to("loop")
    with pytest.raises(UnreadableFile, match=problem):
        FileSource(path.parent / name)


def test_buffer_source_reads_ranges_of_any_buffer() -> None:
    for data in (b"abcdef", bytearray(b"abcdef"), memoryview(b"xabcdef")[1:]):
        source = BufferSource(data)
        assert (source.length, bytes(source.read(2, 5))) == (6, b"cde")
