"""Log lines and a reader that is slow, stuck or gone. The reader is a pipe in this process."""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyllm.serving import lines
from tinyllm.serving.lines import PIPE_BUF, LineHandler, LineWriter

Pipe = tuple[int, int]
PATIENCE = 20.0  # seconds; only a failing test waits for them


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    reader, writer = os.pipe()
    yield reader, writer
    for descriptor in (reader, writer):
        try:
            os.close(descriptor)
        except OSError:
            assert descriptor == reader, "a test may close its reader"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "GATHER_SECONDS", 0.0)


def read_lines(reader: int, count: int) -> list[str]:
    """Read exactly so many lines."""
    with os.fdopen(os.dup(reader), "rb", buffering=0) as stream:
        data = b""
        while data.count(b"\n") < count:
            data += stream.read(65536)
    found = data.decode().splitlines(keepends=True)
    assert len(found) == count
    return found


def fill(writer: int) -> int:
    """Write until the pipe is full; return how many bytes that took."""
    os.set_blocking(writer, False)
    filled = 0
    try:
        while True:
            filled += os.write(writer, bytes(4096))
    except BlockingIOError:
        os.set_blocking(writer, True)
        return filled


def test_lines_come_whole_and_in_order(pipe: Pipe) -> None:
    log = LineWriter(pipe[1], "test log")
    expected = [f"line {number} {'x' * (number % 300)}\n" for number in range(500)]
    for line in expected:
        log.write(line)
    assert read_lines(pipe[0], 500) == expected


def test_lines_of_several_threads_all_come(pipe: Pipe) -> None:
    log = LineWriter(pipe[1], "test log")

    def write(name: str) -> None:
        for number in range(500):
            log.write(f"{name} {number}\n")

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    found = read_lines(pipe[0], 2000)
    for name in "abcd":
        own = [line for line in found if line.startswith(name)]
        assert own == [f"{name} {number}\n" for number in range(500)]


def test_closing_writes_what_is_left(pipe: Pipe) -> None:
    log = LineWriter(pipe[1], "test log")
    for number in range(100):
        log.write(f"{number}\n")
    log.close(PATIENCE)
    assert len(read_lines(pipe[0], 100)) == 100


def test_closing_waits_no_longer_than_it_may_for_a_stuck_reader(pipe: Pipe) -> None:
    fill(pipe[1])
    log = LineWriter(pipe[1], "test log")
    log.write("never read\n")
    log.close(0.01)
    os.read(pipe[0], 2**20)
    # The thread ends before the descriptor does: its number will be another test's pipe.
    log.close(PATIENCE)


def test_a_stuck_reader_costs_a_bounded_queue_and_is_told(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MAX_LINES", 10)
    filled = fill(pipe[1])
    log = LineWriter(pipe[1], "test log")
    for number in range(1000):
        log.write(f"{number}\n")  # returns at once, or this test would hang
    while filled:
        filled -= len(os.read(pipe[0], filled))
    log.close(PATIENCE)
    data = os.read(pipe[0], 65536).decode()
    told = re.findall(r"test log: (\d+) lines dropped\n", data)
    written = [line for line in data.splitlines() if line.isdigit()]
    assert sum(map(int, told)) + len(written) == 1000
    assert len(written) <= 2 * 10, "one queue in the thread's hands, one waiting"


def test_a_reader_that_is_gone_is_said_once(
    pipe: Pipe, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = pipe
    os.close(reader)
    log = LineWriter(writer, "test log")
    for number in range(100):
        log.write(f"{number}\n" * 100)
    log.close(PATIENCE)
    assert [record.getMessage() for record in caplog.records] == [
        "test log: cannot be written: Broken pipe"
    ]


class Said(logging.Handler):
    """Tells that something was logged."""

    def __init__(self) -> None:
        super().__init__()
        self.event = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.event.set()


def test_lines_that_could_not_be_written_are_counted() -> None:
    said = Said()
    lines.logger.addHandler(said)
    reader, writer = os.pipe()
    full = os.open("/dev/full", os.O_WRONLY)
    disk = os.dup(full)
    log = LineWriter(disk, "test log")
    log.write("lost\n")
    assert said.event.wait(PATIENCE)
    os.dup2(writer, disk)  # somebody has made room
    log.write("kept\n")
    log.close(PATIENCE)
    assert sorted(read_lines(reader, 2)) == ["kept\n", "test log: 1 lines dropped\n"]
    lines.logger.removeHandler(said)
    for descriptor in (reader, writer, full, disk):
        os.close(descriptor)


def test_a_pipe_that_does_not_block_is_waited_for(pipe: Pipe) -> None:
    filled = fill(pipe[1])
    os.set_blocking(pipe[1], False)
    log = LineWriter(pipe[1], "test log")
    for number in range(5000):
        log.write(f"{number}\n")
    while filled:
        filled -= len(os.read(pipe[0], filled))
    assert read_lines(pipe[0], 5000)[-1] == "4999\n"


def test_pieces_are_what_a_pipe_takes_whole() -> None:
    found = [b"x" * (size - 1) + b"\n" for size in (10, 4000, 86, 1, 9000, 5, PIPE_BUF, 3)]
    pieces = list(lines._pieces(b"".join(found), PIPE_BUF))
    assert b"".join(pieces) == b"".join(found)
    assert [len(piece) for piece in pieces] == [4096, 1, 9000, 5, 4096, 3]


@given(st.binary(), st.integers(1, 20))
def test_pieces_end_with_lines(data: bytes, limit: int) -> None:
    pieces = list(lines._pieces(data, limit))
    assert b"".join(pieces) == data
    for piece in pieces[:-1]:
        assert piece.endswith(b"\n")
        assert len(piece) <= limit or piece.count(b"\n") == 1


def test_log_records_go_through_the_writer(pipe: Pipe) -> None:
    log = LineWriter(pipe[1], "test log")
    handler = LineHandler(log)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    try:
        raise ValueError("the fault")
    except ValueError:
        record = logging.getLogger("x").makeRecord("x", 40, "f", 1, "said %s", ("so",), None)
        record.exc_info = (ValueError, ValueError("the fault"), None)
    handler.emit(record)
    assert read_lines(pipe[0], 2) == ["ERROR said so\n", "ValueError: the fault\n"]


def test_text_that_has_no_bytes_is_escaped(pipe: Pipe) -> None:
    log = LineWriter(pipe[1], "test log")
    log.write("a\ud800b é\n")
    assert read_lines(pipe[0], 1) == ["a\\ud800b é\n"]
