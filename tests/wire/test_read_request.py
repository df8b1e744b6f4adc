"""`read_request` over the blocking readers that there are; what it leaves in them."""

from __future__ import annotations

import io
import socket

import pytest

from tinyllm.wire import (
    BadLineEnd,
    BodyTooLarge,
    ClientGone,
    HeadTooLarge,
    HttpError,
    Request,
    TransferCodingUnsupported,
    read_request,
)

FIRST = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nfirst"
SECOND = b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"


class Dripping(io.RawIOBase):
    """A raw stream that gives one byte at a time, as a slow network does."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        byte = self._data.read(1)
        buffer[: len(byte)] = byte
        return len(byte)


class Silent:
    """A non-blocking stream with nothing to give yet."""

    def readline(self, size: int, /) -> None:
        return None

    def read(self, size: int, /) -> None:
        return None


def buffered(data: bytes) -> io.BufferedReader:
    return io.BufferedReader(Dripping(data))


READERS = [
    pytest.param(io.BytesIO, id="BytesIO"),
    pytest.param(Dripping, id="raw"),
    pytest.param(buffered, id="BufferedReader"),
    pytest.param(lambda data: io.BufferedReader(io.BytesIO(data), 1), id="one-byte-buffer"),
]


@pytest.mark.parametrize("reader_of", READERS)
def test_reads_one_request_and_leaves_the_rest(reader_of: type[io.BytesIO]) -> None:
    reader = reader_of(b"\r\n" + FIRST + SECOND + b"rest")
    first = read_request(reader)
    assert (first.path, first.body) == ("/echo", b"first")
    assert read_request(reader).path == "/health"
    assert reader.read(4) == b"rest" or isinstance(reader, Dripping)


@pytest.mark.parametrize("buffering", [0, -1], ids=["unbuffered", "buffered"])
def test_reads_from_a_socket_file(buffering: int) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, ours.makefile("rb", buffering=buffering) as reader:
        theirs.sendall(FIRST + SECOND + b"rest")
        assert read_request(reader).body == b"first"
        assert read_request(reader).path == "/health"
        assert reader.read(4) == b"rest"


def test_reads_from_a_file(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("requests") / "two"
    path.write_bytes(FIRST + SECOND)
    with path.open("rb") as reader:
        assert read_request(reader).body == b"first"
        assert read_request(reader).path == "/health"
        with pytest.raises(ClientGone):
            read_request(reader)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        pytest.param(b"", ClientGone, id="nothing"),
        pytest.param(b"\r\n", ClientGone, id="empty-line"),
        pytest.param(FIRST[:20], ClientGone, id="half-a-head"),
        pytest.param(FIRST[:-1], ClientGone, id="half-a-body"),
        pytest.param(b"GET / HTTP/1.1\nHost: a\n\n", BadLineEnd, id="lf"),
        pytest.param(b"A" * 20000, HeadTooLarge, id="endless-line"),
        pytest.param(b"X: y\r\n" * 4000, HeadTooLarge, id="endless-lines"),
        pytest.param(FIRST.replace(b"5", b"5000000"), BodyTooLarge, id="endless-body"),
        pytest.param(
            SECOND[:-2] + b"Transfer-Encoding: x\r\n\r\n", TransferCodingUnsupported, id="coding"
        ),
    ],
)
def test_raises_what_the_parser_raises(data: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        read_request(io.BytesIO(data))


def test_never_holds_more_than_a_head_without_end() -> None:
    reader = io.BytesIO(b"A" * 1_000_000)
    with pytest.raises(HeadTooLarge):
        read_request(reader)
    assert reader.tell() == 16385


def test_shows_the_head_before_it_reads_the_body() -> None:
    seen: list[tuple[str, bytes]] = []
    reader = io.BytesIO(FIRST + SECOND)

    def on_head(request: Request) -> None:
        seen.append((request.path, request.body))
        assert reader.tell() == len(FIRST) - len(b"first")

    assert read_request(reader, on_head).body == b"first"
    assert read_request(reader, on_head).body == b""
    assert seen == [("/echo", b"")]  # the second has no body to wait for


def test_body_is_left_unread_when_the_head_is_turned_down() -> None:
    reader = io.BytesIO(FIRST)

    def on_head(request: Request) -> None:
        raise BodyTooLarge("not today")

    with pytest.raises(BodyTooLarge, match="not today"):
        read_request(reader, on_head)
    assert reader.read() == b"first"


def test_reader_that_does_not_block_is_refused() -> None:
    with pytest.raises(BlockingIOError, match="blocks"):
        read_request(Silent())


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(b"GET /\r\n\r\n", 400, id="no-version"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", 400, id="no-colon"),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", 400, id="no-number"
        ),
        pytest.param(b"POST / HTTP/1.1\r\nHost: a\r\n\r\n", 411, id="no-length"),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1048577\r\n\r\n", 413, id="too-large"
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            501,
            id="chunked",
        ),
        pytest.param(b"", 0, id="empty-connection"),
    ],
)
def test_malformed_requests_are_rejected(data: bytes, status: int) -> None:
    with pytest.raises(HttpError) as raised:
        read_request(io.BytesIO(data))
    assert raised.value.status == status
