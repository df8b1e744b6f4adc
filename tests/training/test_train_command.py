"""`tinyllm train` as it is typed: what it prints, what it leaves behind, how it ends."""

from __future__ import annotations

import ctypes
import errno
import gzip
import io
import json
import os
import pty
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tinyllm.__main__ import main
from tinyllm.model import load_model
from tinyllm.training.bigram import count_bigrams, train_bigram

TRAIN = [sys.executable, "-m", "tinyllm", "train", "bigram"]
TEXT = b"It was the best of times, it was the worst of times.\n" * 40


class Run(NamedTuple):
    """How a command ended and what it said."""

    returncode: int
    stdout: str
    stderr: str


def train(*arguments: str | Path) -> Run:
    """Run the command in this process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["train", "bigram", *map(str, arguments)])
    for stream in (out, err):
        stream.seek(0)
    return Run(code, out.read(), err.read())


def train_apart(
    *arguments: str | Path, stdin: bytes = b"", before: Callable[[], None] | None = None
) -> Run:
    """Run the command in a process of its own; `before` is called there before it begins."""
    command = [*TRAIN, *map(str, arguments)]
    run = subprocess.run(
        command, input=stdin, capture_output=True, timeout=60, check=False, preexec_fn=before
    )
    return Run(run.returncode, run.stdout.decode(), run.stderr.decode())


def obey_permissions() -> None:
    """Give up what root is allowed: to read and write what permissions forbid."""
    set_bounding_set, read_and_write, read_and_search = 24, 1, 2  # prctl(2), capabilities(7)
    for capability in (read_and_write, read_and_search):
        ctypes.CDLL(None).prctl(set_bounding_set, capability, 0, 0, 0)


def assert_model_of(model_dir: Path, *texts: bytes, smoothing: float = 0.01) -> None:
    """Compare a model on disk with the closed form over all of some texts."""
    counts = sum((count_bigrams(text) for text in texts), np.zeros((256, 256), dtype=np.int64))
    model = load_model(model_dir)
    rows = np.array([model.logits(prev) for prev in range(256)], dtype=np.float32)
    np.testing.assert_array_equal(rows, train_bigram(counts, smoothing))


def test_a_model_is_counted_on_all_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(TEXT)
    run = train("--data", tmp_path / "text", "--out", tmp_path / "model")
    assert (run.returncode, run.stderr) == (0, "")
    lines = run.stdout.splitlines()
    assert lines[0].startswith("2,120 bytes, 2,119 pairs in ")
    assert lines[2] == "bits per byte (perplexity)"
    assert lines[3].split() == ["bytes", "uniform", "order", "0", "bigram"]
    assert lines[4].split()[:4] == ["training", "1,908", "8.000", "(256.0)"]
    assert lines[5].split()[:4] == ["held-out", "212", "8.000", "(256.0)"]
    assert lines[6] == f"Wrote {tmp_path}/model"
    assert_model_of(tmp_path / "model", TEXT)


def test_json_is_one_object_on_standard_output(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(TEXT)
    run = train("--data", tmp_path / "text", "--out", tmp_path / "model", "--json")
    report = json.loads(run.stdout)
    assert (report["bytes"], report["pairs"]) == (2120, 2119)
    assert report["train"]["bits_per_byte"] < report["train"]["order0_bits_per_byte"] < 8
    assert report["held_out"]["bytes"] == 212
    assert run.stderr == ""


def test_files_folders_gzip_and_standard_input_together(tmp_path: Path) -> None:
    (tmp_path / "folder/deep").mkdir(parents=True)
    (tmp_path / "folder/deep/a").write_bytes(b"first text")
    (tmp_path / "folder/b").write_bytes(gzip.compress(b"second text"))
    (tmp_path / "c").write_bytes(b"third text")
    run = train_apart(
        "--data", tmp_path / "folder", "--data", tmp_path / "c", "-",
        "--out", tmp_path / "model", "--smoothing", "0.5", "--holdout", "0",
        stdin=gzip.compress(b"fourth text"),
    )  # fmt: skip
    assert run.returncode == 0
    texts = (b"first text", b"second text", b"third text", b"fourth text")
    assert_model_of(tmp_path / "model", *texts, smoothing=0.5)


def test_two_processes_write_the_same_model(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(TEXT)
    for processes in ("1", "2"):
        out = tmp_path / f"model{processes}"
        run = train("--data", tmp_path / "text", "--out", out, "--processes", processes)
        assert run.returncode == 0
    one, two = (tmp_path / f"model{count}/model.safetensors" for count in (1, 2))
    assert one.read_bytes() == two.read_bytes()


def test_without_data_the_default_text_is_used(tmp_path: Path) -> None:
    run = train("--out", tmp_path / "model", "--json")
    assert run.returncode == 0
    assert json.loads(run.stdout)["bytes"] > 100_000
    logits = load_model(tmp_path / "model").logits(ord("t"))
    assert max(range(256), key=logits.__getitem__) == ord("h")  # it is English


def test_the_model_within_the_text_folder_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(TEXT)
    for _ in range(2):
        run = train("--data", tmp_path, "--out", tmp_path / "model", "--json")
        assert json.loads(run.stdout)["bytes"] == len(TEXT)


def written(name: str, data: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(data)
        return folder / name

    return make


def empty_folder(folder: Path) -> Path:
    (folder / "empty").mkdir()
    return folder / "empty"


@pytest.mark.parametrize(
    ("make", "line"),
    [
        pytest.param(
            written("text", b""), "the text is empty: there is nothing to learn from", id="empty"
        ),
        pytest.param(
            written("text", b"x"),
            "no text has two bytes in a row: there is no pair to learn from",
            id="one byte",
        ),
        pytest.param(lambda f: f / "gone", "{}: No such file or directory", id="missing"),
        pytest.param(
            lambda f: f"{f}/two\nlines\udcff",
            "{}: No such file or directory",
            id="a name of two lines",
        ),
        pytest.param(empty_folder, "{}: the folder holds no files", id="folder without files"),
        pytest.param(
            written("text.gz", gzip.compress(TEXT)[:-9]),
            "{}: broken gzip data: Compressed file ended before the end-of-stream marker"
            " was reached",
            id="cut gzip",
        ),
        pytest.param(lambda _: "/proc/self/mem", "/proc/self/mem: Input/output error", id="I/O"),
    ],
)
def test_bad_data_is_one_line_and_exit_1(
    tmp_path: Path, make: Callable[[Path], Path], line: str
) -> None:
    path = make(tmp_path)
    shown = str(path).replace("\n", r"\n").replace("\udcff", r"\udcff")
    run = train("--data", path, "--out", tmp_path / "model")
    assert run.returncode == 1
    assert run.stderr == f"tinyllm train: {line.format(shown)}\n"
    assert run.stdout == ""
    assert not [entry for entry in tmp_path.iterdir() if entry.is_dir() and entry != path]


def test_a_file_that_may_not_be_read_is_one_line_and_exit_1(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(TEXT)
    (tmp_path / "secret").chmod(0)
    arguments = ("--data", tmp_path / "secret", "--out", tmp_path / "model")
    run = train_apart(*arguments, before=obey_permissions)
    assert run == Run(1, "", f"tinyllm train: {tmp_path}/secret: Permission denied\n")
    assert os.listdir(tmp_path) == ["secret"]


def test_a_folder_that_may_not_be_written_is_an_error_before_anything_is_read(
    tmp_path: Path,
) -> None:
    (tmp_path / "locked").mkdir(mode=0o555)
    arguments = ("--data", "-", "--out", tmp_path / "locked/model")
    run = train_apart(*arguments, before=obey_permissions)
    assert run.returncode == 1
    assert run.stderr.startswith(
        f"tinyllm train: cannot write a model: {tmp_path}/locked/.tinyllm-staging-"
    )
    assert run.stderr.endswith(": Permission denied\n")


def test_a_folder_that_is_no_model_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis").write_bytes(b"years of work")
    run = train("--out", tmp_path / "mine")
    assert run.returncode == 1
    assert run.stderr == (
        f"tinyllm train: {tmp_path}/mine holds no model (no config.json with tl_arch)"
        " and is not empty: not replaced\n"
    )
    assert (tmp_path / "mine/thesis").read_bytes() == b"years of work"


def limit_file_size() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


def test_a_full_disk_leaves_the_old_model(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(TEXT)
    train("--out", tmp_path / "model")
    before = (tmp_path / "model/model.safetensors").read_bytes()
    arguments = ("--data", tmp_path / "text", "--out", tmp_path / "model")
    run = train_apart(*arguments, before=limit_file_size)
    assert run.returncode == 1
    reason = os.strerror(errno.EFBIG)
    line = f"tinyllm train: cannot write the model: {tmp_path}/model: {reason}\n"
    assert run.stderr == line
    assert (tmp_path / "model/model.safetensors").read_bytes() == before
    assert sorted(os.listdir(tmp_path / "model")) == ["config.json", "model.safetensors"]


def test_standard_output_that_is_full_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(TEXT)
    command = [*TRAIN, "--data", str(tmp_path / "text"), "--out", str(tmp_path / "model")]
    with open("/dev/full", "wb") as full:
        run = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert run.returncode == 1
    assert run.stderr == b"tinyllm train: standard output: No space left on device\n"
    assert_model_of(tmp_path / "model", TEXT)


def test_closed_standard_input_is_an_error(tmp_path: Path) -> None:
    command = f'exec "$@" --data - --out {tmp_path}/model <&-'
    run = subprocess.run(["sh", "-c", command, "sh", *TRAIN], capture_output=True, check=False)
    assert run.returncode == 1
    assert run.stderr == b"tinyllm train: standard input: it is closed\n"


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([], id="no --out"),
        pytest.param(["--out", "x", "--data"], id="--data without a path"),
        pytest.param(["--out", "x", "--smoothing", "0"], id="no smoothing"),
        pytest.param(["--out", "x", "--smoothing", "nan"], id="smoothing that is no number"),
        pytest.param(["--out", "x", "--smoothing", "much"], id="smoothing in words"),
        pytest.param(["--out", "x", "--holdout", "0.51"], id="more than half held out"),
        pytest.param(["--out", "x", "--holdout", "-0.1"], id="less than nothing held out"),
        pytest.param(["--out", "x", "--processes", "0"], id="no process"),
        pytest.param(["--out", "x", "--processes", "1.5"], id="half a process"),
    ],
)
def test_wrong_usage_is_exit_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as raised:
        main(["train", "bigram", *arguments])
    assert raised.value.code == 2
    assert "usage: tinyllm train" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


def heed_ctrl_c() -> None:
    """A shell's background jobs ignore SIGINT, and so would all that they start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("before", ["nothing", "model"])
def test_ctrl_c_leaves_what_was_there(tmp_path: Path, before: str) -> None:
    if before == "model":
        (tmp_path / "text").write_bytes(TEXT)
        train("--data", tmp_path / "text", "--out", tmp_path / "model")
    command = [*TRAIN, "--data", "-", "--out", str(tmp_path / "model")]
    place = tmp_path / "model" if before == "model" else tmp_path
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=heed_ctrl_c
    ) as run:
        assert run.stdin is not None
        assert run.stderr is not None
        run.stdin.write(b"x" * 1_000_000)  # more than a pipe holds: it is being read
        run.stdin.flush()
        assert any("staging" in name for name in os.listdir(place))
        run.send_signal(signal.SIGINT)
        assert run.stderr.read() == b"tinyllm train: interrupted\n"
        assert run.wait() == 130
    assert not any("staging" in name for name in os.listdir(place))
    if before == "model":
        assert_model_of(tmp_path / "model", TEXT)
    else:
        assert os.listdir(tmp_path) == []


def test_progress_is_shown_on_a_terminal_alone(tmp_path: Path) -> None:
    """Standard error is a terminal here; in all the other tests it is a pipe, and empty."""
    ours, theirs = pty.openpty()
    (tmp_path / "text").write_bytes(TEXT)
    command = [*TRAIN, "--data", str(tmp_path / "text"), "-", "--out", str(tmp_path / "model")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=theirs
    ) as run:
        os.close(theirs)
        assert run.stdin is not None
        assert run.stdout is not None
        shown = b""
        while b"B/s" not in shown:
            run.stdin.write(TEXT * 100)
            run.stdin.flush()
            while select.select([ours], [], [], 0)[0]:
                shown += os.read(ours, 4096)
        run.stdin.close()
        report = run.stdout.read()
        shown += os.read(ours, 4096)
    os.close(ours)
    assert run.returncode == 0
    assert b"\rcounting  " in shown
    assert b"\n" not in shown
    assert b"counting" not in report
    assert report.endswith(f"Wrote {tmp_path}/model\n".encode())
