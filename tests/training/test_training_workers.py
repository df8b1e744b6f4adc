"""Several processes count what one counts, and none is left over."""

from __future__ import annotations

import gzip
import os
import resource
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from tinyllm.training import pieces as pieces_module
from tinyllm.training import workers
from tinyllm.training.errors import TrainingError
from tinyllm.training.pieces import Piece, Range, cut_into_pieces
from tinyllm.training.progress import Progress
from tinyllm.training.sources import find_sources
from tinyllm.training.tally import Tally
from tinyllm.training.workers import count_pieces, started_workers, worthwhile_processes

SHARE = 0.1


class Told(Progress):
    """Adds up what it is told."""

    def __init__(self) -> None:
        self.bytes = 0

    def advance(self, count: int) -> None:
        self.bytes += count


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a text of many ranges, compressed ones, small ones and an empty one."""
    folder = tmp_path_factory.mktemp("texts")
    (folder / "large").write_bytes(os.urandom(3_000_001))
    (folder / "zipped").write_bytes(gzip.compress(os.urandom(500_000)))
    (folder / "again.gz").write_bytes(gzip.compress(b"text" * 1000))
    (folder / "empty").write_bytes(b"")
    for number in range(20):
        (folder / f"small{number}").write_bytes(os.urandom(number))
    return folder


def counted(texts: Path, processes: int, told: Told) -> Tally:
    result = Tally(SHARE)
    sources = find_sources([str(texts)])
    with started_workers(processes - 1, SHARE) as team:
        count_pieces(cut_into_pieces(sources, SHARE), result, told, team)
    return result


def count_with_one_worker(pieces: Iterable[Piece]) -> Tally:
    result = Tally(SHARE)
    with started_workers(1, SHARE) as team:
        count_pieces(pieces, result, Progress(), team)
    return result


def worker_processes() -> list[psutil.Process]:
    """The processes below this one that count."""
    children = psutil.Process().children()
    return [child for child in children if "tinyllm.training.worker" in " ".join(child.cmdline())]


@pytest.mark.parametrize("range_bytes", [100_000, 2**24])
@pytest.mark.parametrize("processes", [2, 3])
def test_the_number_of_processes_and_the_size_of_ranges_change_nothing(
    texts: Path, monkeypatch: pytest.MonkeyPatch, processes: int, range_bytes: int
) -> None:
    alone = counted(texts, 1, Told())
    monkeypatch.setattr(pieces_module, "RANGE_BYTES", range_bytes)
    told = Told()
    together = counted(texts, processes, told)
    for one, other in ((alone.train, together.train), (alone.held_out, together.held_out)):
        assert one.text_bytes == other.text_bytes
        np.testing.assert_array_equal(one.counts, other.counts)
    assert told.bytes == sum(file.stat().st_size for file in texts.iterdir())


def test_an_error_in_a_worker_is_the_error_of_the_run(texts: Path) -> None:
    def pieces() -> Iterator[Range]:
        yield Range(str(texts / "gone"), 0, 10, is_held_out=False)  # to the worker: it has room
        yield Range(str(texts / "large"), 0, 10, is_held_out=False)

    with pytest.raises(TrainingError, match=f"^{texts}/gone: No such file or directory$"):
        count_with_one_worker(pieces())


def test_the_error_of_a_worker_that_has_ended_is_not_lost(texts: Path) -> None:
    def pieces() -> Iterator[Range]:
        yield Range(str(texts / "gone"), 0, 10, is_held_out=False)
        psutil.wait_procs(worker_processes())
        yield Range(str(texts / "large"), 0, 10, is_held_out=False)

    with pytest.raises(TrainingError, match=f"^{texts}/gone: No such file or directory$"):
        count_with_one_worker(pieces())


def test_a_worker_that_dies_is_an_error_and_not_a_hang(texts: Path) -> None:
    def pieces() -> Iterator[Range]:
        yield Range(str(texts / "large"), 0, 1000, is_held_out=False)
        for worker in worker_processes():
            worker.kill()
        yield Range(str(texts / "large"), 1000, 2000, is_held_out=False)

    with pytest.raises(TrainingError, match=r"^a worker process died \(exit code -9\)$"):
        count_with_one_worker(pieces())


def test_a_process_that_cannot_be_started_is_an_error(texts: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        with pytest.raises(TrainingError, match=r"^cannot start a process: Too many open files$"):
            count_with_one_worker([])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_worker_takes_no_modules_from_the_current_folder(
    texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gzip.py").write_text("raise SystemExit('not the real one')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    result = count_with_one_worker([Range(str(texts / "large"), 0, 1000, False)])
    assert result.train.text_bytes == 1000


# Counts in three processes, and says so in the middle of it.
STUCK_RUN = """
    import signal, sys, time
    from tinyllm.training.progress import Progress
    from tinyllm.training.pieces import Range
    from tinyllm.training.tally import Tally
    from tinyllm.training.workers import count_pieces, started_workers

    def pieces():
        for _ in range(4):
            yield Range(sys.argv[1], 0, 1000, False)
        print("counting", flush=True)
        time.sleep(60)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    with started_workers(2, 0.1) as workers:
        count_pieces(pieces(), Tally(0.1), Progress(), workers)
"""


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_no_worker_outlives_the_run(texts: Path, tmp_path: Path, sent: signal.Signals) -> None:
    script = tmp_path / "run.py"
    script.write_text(textwrap.dedent(STUCK_RUN))
    command = [sys.executable, str(script), str(texts / "large")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        assert run.stdout.readline() == b"counting\n"
        family = psutil.Process(run.pid).children()
        assert len(family) >= 2
        if sent == signal.SIGINT:
            os.killpg(run.pid, sent)  # as a terminal does: to every process of the group
        else:
            run.send_signal(sent)
        _, alive = psutil.wait_procs(family, timeout=30)
        assert alive == []
        complaints = run.stderr.read().decode()
        assert complaints.count("Traceback") == (1 if sent == signal.SIGINT else 0)


@pytest.mark.parametrize(
    ("size", "cores", "processes"),
    [(0, 8, 1), (2**26 - 1, 8, 1), (2**27, 8, 2), (2**40, 8, 8), (2**40, 1000, 256)],
)
def test_processes_follow_size_and_cores(
    monkeypatch: pytest.MonkeyPatch, size: int, cores: int, processes: int
) -> None:
    monkeypatch.setattr(workers, "available_cores", lambda: cores)
    assert worthwhile_processes(size) == processes
