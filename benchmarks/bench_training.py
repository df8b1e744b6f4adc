"""How fast pairs are counted: beside reading alone, the ways not taken, and other tools.

    python -m benchmarks.bench_training                       # all, on a text made for it
    python -m benchmarks.bench_training speed ways --text book.txt --runs 9

What is compared takes turns within one process, so that a busy neighbour hurts all alike.
Printed are the median and the best rate by the clock, and the median rate per second of
processor time. The made text is Python's own documentation, its lines shuffled anew for every
copy. scikit-learn is only compared with where it is installed (it is no dependency).
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from pathlib import Path

from benchmarks.training.ways import Ways

from tinyllm.training import count_bigrams, default_text
from tinyllm.training.bigram import BLOCK_BYTES
from tinyllm.training.pieces import cut_into_pieces
from tinyllm.training.progress import Progress
from tinyllm.training.sources import find_sources
from tinyllm.training.tally import Tally
from tinyllm.training.workers import count_pieces, started_workers

KIB = 1024
MB = 1_000_000
HOLDOUT = 0.1

Work = Callable[[], object]
Contenders = dict[str, tuple[int, Work]]  # name -> bytes it works through, what it does


def make_text(path: Path, size: int) -> None:
    """Write `size` bytes of English, no two stretches of it alike."""
    lines = default_text().splitlines(keepends=True)
    shuffle = random.Random(1).shuffle
    with open(path, "wb") as file:
        while file.tell() < size:
            shuffle(lines)
            file.write(b"".join(lines)[: size - file.tell()])


def compare(contenders: Contenders, runs: int) -> dict[str, list[float]]:
    """Let all take turns, print their rates in MB/s, and return the seconds of each turn."""
    clock: dict[str, list[float]] = {name: [] for name in contenders}
    cpu: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(runs):
        for name, (_, work) in contenders.items():
            start, cpu_start = time.perf_counter(), cpu_seconds()
            work()
            clock[name].append(time.perf_counter() - start)
            cpu[name].append(cpu_seconds() - cpu_start)
    print(f"  {'MB/s':<42}{'median':>10}{'best':>10}{'per CPU s':>12}")
    for name, (size, _) in contenders.items():
        seconds = (statistics.median(clock[name]), min(clock[name]), statistics.median(cpu[name]))
        median, best, per_cpu = (size / MB / second for second in seconds)
        print(f"  {name:<42}{median:>10,.1f}{best:>10,.1f}{per_cpu:>12,.1f}")
    return clock


def cpu_seconds() -> float:
    """Return the processor time of this process and of those it has started and seen end."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def read_file(path: Path) -> None:
    """Read a file as counting does, and do nothing with it."""
    with open(path, "rb", buffering=0) as file:
        for place in range(0, os.fstat(file.fileno()).st_size, BLOCK_BYTES):
            os.pread(file.fileno(), BLOCK_BYTES + 1, place)


def count_file(path: Path, processes: int = 1) -> None:
    """Count a file as `tinyllm train` does."""
    pieces = cut_into_pieces(find_sources([str(path)]), HOLDOUT)
    with started_workers(processes - 1, HOLDOUT) as workers:
        count_pieces(pieces, Tally(HOLDOUT), Progress(), workers)


def bench_speed(path: Path, runs: int) -> None:
    """The whole text: reading alone, one process, two."""
    size = path.stat().st_size
    print(f"speed: {size / MB:,.0f} MB in the page cache, {runs} runs")
    contenders: Contenders = {
        "reading alone": (size, lambda: read_file(path)),
        "1 process": (size, lambda: count_file(path, 1)),
        "2 processes": (size, lambda: count_file(path, 2)),
    }
    seconds = compare(contenders, runs)
    ratios = [
        one / two for one, two in zip(seconds["1 process"], seconds["2 processes"], strict=True)
    ]
    best = min(seconds["1 process"]) / min(seconds["2 processes"])
    print(
        f"  2 processes to 1: {statistics.median(ratios):.2f} (median of turns), {best:.2f} (best)"
    )


def bench_streams(path: Path, runs: int) -> None:
    """A tenth of the text, compressed: what unpacking costs, and counting a stream on top."""
    with open(path, "rb") as file:
        text = file.read(path.stat().st_size // 10)
    zipped = path.with_suffix(".gz")
    zipped.write_bytes(gzip.compress(text, 6))
    print(f"streams: {len(text) / MB:,.0f} MB of text in a gzip file, {runs} runs")

    def unpack() -> None:
        with gzip.open(zipped) as file:
            while file.read(BLOCK_BYTES):
                pass

    contenders: Contenders = {
        "unpacking alone": (len(text), unpack),
        "unpacking and counting": (len(text), lambda: count_file(zipped)),
    }
    compare(contenders, runs)
    zipped.unlink()


def bench_tools(path: Path, runs: int) -> None:
    """A piece of the text in memory, counted with what else there is."""
    with open(path, "rb") as file:
        text = file.read(64 * MB)
    small = text[: 4 * MB]
    print(f"tools: text in memory, the slow ones on {len(small) / MB:.0f} MB, {runs} runs")
    contenders: Contenders = {
        "count_bigrams": (len(text), lambda: count_bigrams(text)),
        "Counter(zip(data, data[1:]))": (
            len(small),
            lambda: Counter(zip(small, small[1:], strict=False)),  # noqa: RUF007
        ),
        "Counter(pairwise(data))": (len(small), lambda: Counter(pairwise(small))),
    }
    try:
        sklearn = import_module("sklearn.feature_extraction.text")
    except ImportError:
        print("  (scikit-learn is not installed: left out)")
    else:
        vectorizer = sklearn.CountVectorizer(analyzer="char", ngram_range=(2, 2), lowercase=False)
        document = [small.decode("latin-1")]
        contenders["CountVectorizer(char, 2-grams)"] = (
            len(small),
            lambda: vectorizer.fit_transform(document),
        )
    compare(contenders, runs)


def bench_ways(path: Path, runs: int) -> None:
    """The inner loop: the way taken and those that were dropped."""
    with open(path, "rb") as file:
        ways = Ways(file.read(16 * KIB * KIB))
    size = len(ways.text)
    print(f"ways: {size / MB:.0f} MB in memory, {runs} runs")
    contenders: Contenders = {"reading memory alone (a copy)": (size, lambda: bytearray(ways.text))}
    for name, way, blocks in (
        ("add.at, two views", ways.add_at, (16, 64, 128, 256, 512, 1024)),
        ("add.at, two views, 32-bit cells", ways.add_at_32_bits, (256,)),
        ("add.at, one overlapping view", ways.add_at_overlapping, (64, 256)),
        ("add.at without widening", ways.add_at_unwidened, (256,)),
        ("add.at in two threads", ways.in_two_threads, (256,)),
        ("bincount, two views", ways.bincount, (64, 256, 512, 2048)),
        ("bincount of previous * 256 + next", ways.bincount_of_sums, (64, 256)),
    ):
        for kib in blocks:
            contenders[f"{name}, {kib} KiB"] = (size, lambda w=way, k=kib: w(k * KIB))  # type: ignore[misc]
    compare(contenders, runs)


def bench_command(path: Path, runs: int) -> None:
    """The command from start to exit, and the most memory any of its processes took."""
    size = path.stat().st_size
    print(f"command: tinyllm train bigram --data TEXT --out DIR --processes N, {runs} runs")
    print(f"  {'processes':<12}{'seconds':>10}{'MB/s':>10}{'peak memory of the largest':>30}")
    with tempfile.TemporaryDirectory() as folder:
        for processes in (1, 2):
            command = [sys.executable, "-m", "tinyllm", "train", "bigram", "--data", str(path)]
            command += ["--out", f"{folder}/model", "--processes", str(processes)]
            seconds = []
            for _ in range(runs):
                start = time.perf_counter()
                subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
                seconds.append(time.perf_counter() - start)
            median = statistics.median(seconds)
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / KIB
            print(f"  {processes:<12}{median:>10.2f}{size / MB / median:>10,.0f}{peak:>26,.0f} MiB")


BENCHES = {
    "speed": bench_speed,
    "command": bench_command,
    "streams": bench_streams,
    "tools": bench_tools,
    "ways": bench_ways,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("benches", nargs="*", metavar="BENCH", help=", ".join(BENCHES))
    parser.add_argument("--text", type=Path, help="a text of one's own")
    parser.add_argument("--size", type=int, default=1000, help="MB of the text that is made")
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    unknown = set(args.benches) - set(BENCHES)
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    with tempfile.TemporaryDirectory() as folder:
        path = args.text or Path(folder) / "text"
        if args.text is None:
            make_text(path, args.size * MB)
        read_file(path)  # into the page cache
        for name in args.benches or BENCHES:
            BENCHES[name](path, args.runs)
            print()


if __name__ == "__main__":
    main()
