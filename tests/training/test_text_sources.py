"""What counts as text: files, folders in a fixed order, pipes, and gzip told by its first bytes."""

from __future__ import annotations

import gzip
import inspect
import io
import os
import sys
import threading
from pathlib import Path

import pytest

from tinyllm.training.errors import TrainingError
from tinyllm.training.sources import MeasuredReader, Source, Text, find_sources, open_stream


def names(folder: Path, *paths: str) -> list[str]:
    """The sources found under paths within `folder`, relative to it."""
    found = find_sources([str(folder / path) for path in paths])
    return [os.path.relpath(source.path, folder) for source in found]


def write(path: Path, data: bytes = b"text") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def test_a_folder_is_read_recursively_sorted_by_bytes(tmp_path: Path) -> None:
    for name in ("b.txt", "a/2", "a/10", "a/c/deep", "B.txt", "ä", ".hidden", "a.txt"):
        write(tmp_path / name)
    assert names(tmp_path, ".") == [
        ".hidden", "B.txt", "a/10", "a/2", "a/c/deep", "a.txt", "b.txt", "ä",
    ]  # fmt: skip


def test_paths_keep_the_order_they_were_given_in(tmp_path: Path) -> None:
    write(tmp_path / "z")
    write(tmp_path / "folder/y")
    write(tmp_path / "a")
    assert names(tmp_path, "z", "folder", "a", "z") == ["z", "folder/y", "a", "z"]


def test_a_name_that_is_no_utf8_is_read(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).write_bytes(b"text")
    assert [os.fsencode(name) for name in names(tmp_path, ".")] == [b"\xff"]


def test_links_to_files_are_followed_and_links_to_folders_are_not(tmp_path: Path) -> None:
    write(tmp_path / "folder/real")
    (tmp_path / "folder/again").symlink_to("real")
    (tmp_path / "folder/loop").symlink_to(tmp_path / "folder")
    (tmp_path / "folder/dangling").symlink_to("nowhere")
    (tmp_path / "link").symlink_to("folder")
    assert names(tmp_path, "folder") == ["folder/again", "folder/real"]
    assert names(tmp_path, "link") == ["link/again", "link/real"]  # named: followed


def test_pipes_within_a_folder_are_no_text(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    write(tmp_path / "text")
    assert names(tmp_path, ".") == ["text"]


def test_a_folder_deeper_than_python_may_recurse(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * 200)
    write(deep / "text")
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 100)
    try:
        (found,) = find_sources([str(tmp_path)])
    finally:
        sys.setrecursionlimit(limit)
    assert found.path == str(deep / "text")


def test_the_folder_of_the_model_is_no_text(tmp_path: Path) -> None:
    write(tmp_path / "text")
    write(tmp_path / "model/model.safetensors")
    found = find_sources([str(tmp_path)], skip=str(tmp_path / "model"))
    assert [source.path for source in found] == [str(tmp_path / "text")]


def test_compression_is_told_by_the_first_bytes(tmp_path: Path) -> None:
    write(tmp_path / "plain.gz", b"\x1f is not enough")
    write(tmp_path / "zipped.txt", gzip.compress(b"text"))
    write(tmp_path / "empty", b"")
    found = list(find_sources([str(tmp_path)]))
    assert found == [
        Source(str(tmp_path / "empty"), 0, is_stream=True),
        Source(str(tmp_path / "plain.gz"), 15, is_stream=False),
        Source(str(tmp_path / "zipped.txt"), 24, is_stream=True),
    ]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        pytest.param("missing", "No such file or directory", id="missing"),
        pytest.param("file/below", "Not a directory", id="below a file"),
        pytest.param("empty", "the folder holds no files", id="empty folder"),
        pytest.param("hollow", "the folder holds no files", id="folders all the way down"),
        pytest.param("n" * 300, "File name too long", id="name too long"),
    ],
)
def test_a_path_without_text_is_named(tmp_path: Path, path: str, reason: str) -> None:
    write(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    (tmp_path / "hollow/a/b").mkdir(parents=True)
    with pytest.raises(TrainingError) as raised:
        names(tmp_path, path)
    assert str(raised.value) == f"{tmp_path / path}: {reason}"


def read_all(path: Path) -> bytes:
    with open_stream(Source(str(path), None, is_stream=True)) as (text, _):
        return b"".join(iter(lambda: text.read(3), b""))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(gzip.compress(b"some text"), id="one member"),
        pytest.param(gzip.compress(b"some ") + gzip.compress(b"text"), id="two members"),
        pytest.param(gzip.compress(b"some text") + bytes(9), id="padded with zeros"),
        pytest.param(b"some text", id="plain"),
    ],
)
def test_a_stream_is_read_as_text(tmp_path: Path, data: bytes) -> None:
    write(tmp_path / "stream", data)
    assert read_all(tmp_path / "stream") == b"some text"


def test_a_file_that_hides_its_size_is_a_stream() -> None:
    (source,) = find_sources(["/proc/self/status"])
    assert source.is_stream
    assert read_all(Path(source.path)).startswith(b"Name:")


ZIPPED = gzip.compress(os.urandom(300_000))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(ZIPPED[:-1], id="cut in its trailer"),
        pytest.param(ZIPPED[:1000], id="cut in its data"),
        pytest.param(ZIPPED[:2], id="nothing but the magic"),
        pytest.param(ZIPPED[:-6] + b"\0" + ZIPPED[-5:], id="wrong checksum"),
        pytest.param(ZIPPED[:-1] + b"\xff", id="wrong length"),
        pytest.param(ZIPPED[:2] + b"\x09" + ZIPPED[3:], id="unknown method"),
        pytest.param(gzip.compress(b"text") + b"garbage", id="garbage behind it"),
        pytest.param(gzip.compress(b"text" * 99)[:12] + b"\xff" * 50, id="no deflate data"),
    ],
)
def test_broken_gzip_data_is_an_error_that_names_the_file(tmp_path: Path, data: bytes) -> None:
    write(tmp_path / "broken.gz", data)
    with pytest.raises(TrainingError, match=f"^{tmp_path}/broken.gz: broken gzip data: ."):
        read_all(tmp_path / "broken.gz")


@pytest.mark.parametrize("data", [b"", b"x", b"\x1f", b"\x1f\x8a text"], ids=repr)
def test_a_pipe_may_deliver_byte_by_byte(data: bytes) -> None:
    class OneByOne(io.RawIOBase):
        left = data

        def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
            byte, self.left = self.left[:1], self.left[1:]
            buffer[: len(byte)] = byte
            return len(byte)

    reader = MeasuredReader(OneByOne())
    assert not reader.starts_with(b"\x1f\x8b")
    assert io.BufferedReader(reader).read() == data
    assert reader.bytes_read == len(data)


def test_a_named_pipe_is_a_stream(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (source,) = find_sources([str(pipe)])
    assert source == Source(str(pipe), None, is_stream=True)
    writer = threading.Thread(target=pipe.write_bytes, args=(gzip.compress(b"piped"),))
    writer.start()
    assert read_all(pipe) == b"piped"
    writer.join()


def test_a_stream_says_how_much_of_it_was_read(tmp_path: Path) -> None:
    write(tmp_path / "stream", ZIPPED)
    with open_stream(Source(str(tmp_path / "stream"), len(ZIPPED), is_stream=True)) as opened:
        text: Text
        text, reader = opened
        text.read(1)
        assert 0 < reader.bytes_read < len(ZIPPED)
        text.read(300_000)
        assert reader.bytes_read == len(ZIPPED)
