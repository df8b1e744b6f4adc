"""A model takes its folder's place whole, at whatever moment the run ends."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from tinyllm.model import load_model
from tinyllm.training import staging
from tinyllm.training.bigram import Weight
from tinyllm.training.errors import TrainingError
from tinyllm.training.staging import Staging

HEADER = (
    b'{"__metadata__":{"format":"tinyllm"},"bigram.weight":'
    b'{"dtype":"F32","shape":[256,256],"data_offsets":[0,262144]}}'
)


def filled(value: float) -> Weight:
    return np.full((256, 256), value, dtype=np.float32)


def publish(out: Path, value: float) -> None:
    with Staging(out) as staged:
        staged.publish(filled(value))


def listing(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def value_of(model_dir: Path) -> float:
    """The one value that all weights of a model have; the model is loaded whole."""
    rows = {tuple(load_model(model_dir).logits(prev)) for prev in (0, 97, 255)}
    (row,) = rows
    (value,) = set(row)
    return value


def test_the_files_are_those_of_the_specification(tmp_path: Path) -> None:
    weight = np.arange(65536, dtype=np.float32).reshape(256, 256)
    with Staging(tmp_path / "model") as staged:
        staged.publish(weight)
    data = (tmp_path / "model/model.safetensors").read_bytes()
    assert len(HEADER) == 113
    assert data[:8] == (120).to_bytes(8, "little")
    assert data[8:128] == HEADER + b" " * 7
    assert data[128:] == weight.tobytes()  # row-major; this test runs on little-endian machines
    assert (tmp_path / "model/config.json").read_text().strip() == (
        '{"tl_arch":"bigram","tl_tokenizer":"bytes","vocab_size":256}'
    )
    assert listing(tmp_path / "model") == ["config.json", "model.safetensors"]


def test_the_official_reader_sees_the_same_tensor(tmp_path: Path) -> None:
    weight = np.random.default_rng(3).normal(size=(256, 256)).astype(np.float32)
    with Staging(tmp_path / "model") as staged:
        staged.publish(weight)
    tensors = load_file(tmp_path / "model/model.safetensors")
    assert list(tensors) == ["bigram.weight"]
    np.testing.assert_array_equal(tensors["bigram.weight"], weight)


@pytest.mark.parametrize("before", ["nothing", "empty folder", "model", "link to a model"])
def test_a_model_takes_the_place_of(tmp_path: Path, before: str) -> None:
    out = tmp_path / "model"
    if before == "empty folder":
        out.mkdir()
    elif before == "model":
        publish(out, 1.0)
    elif before == "link to a model":
        publish(tmp_path / "real", 1.0)
        out.symlink_to("real")
    publish(out, 2.0)
    assert value_of(out) == 2.0
    assert out.is_symlink() == (before == "link to a model")
    assert listing(out) == ["config.json", "model.safetensors"]
    assert set(listing(tmp_path)) <= {"model", "real"}


@pytest.mark.parametrize("before", ["nothing", "model"])
def test_a_mount_point_is_filled_and_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    out = tmp_path / "model"
    out.mkdir()
    if before == "model":
        publish(out, 1.0)
    inode = out.stat().st_ino
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == out)
    publish(out, 2.0)
    assert value_of(out) == 2.0
    assert out.stat().st_ino == inode
    assert listing(out) == ["config.json", "model.safetensors"]


def test_folders_above_the_model_are_made(tmp_path: Path) -> None:
    publish(tmp_path / "a/b/model", 1.0)
    assert value_of(tmp_path / "a/b/model") == 1.0


def test_other_files_in_a_model_folder_are_kept(tmp_path: Path) -> None:
    publish(tmp_path / "model", 1.0)
    (tmp_path / "model/README").write_text("mine")
    publish(tmp_path / "model", 2.0)
    assert listing(tmp_path / "model") == ["README", "config.json", "model.safetensors"]


def test_a_model_that_is_replaced_may_be_broken(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_text('{"tl_arch": "bigram"}')
    publish(tmp_path / "model", 2.0)
    assert value_of(tmp_path / "model") == 2.0


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        pytest.param({"notes": "x"}, "holds no model", id="a file"),
        pytest.param({"model.safetensors": "x"}, "holds no model", id="weights alone"),
        pytest.param({"config.json": "{}"}, "holds no model", id="a config of something else"),
        pytest.param({"config.json": "[1]"}, "holds no model", id="a config that is no object"),
        pytest.param({"config.json": "{"}, "holds no model", id="a config that is no JSON"),
        pytest.param({"config.json": '{"tl_arch": "llama"}'}, "'llama'", id="another kind"),
    ],
)
def test_what_is_not_ours_is_not_replaced(
    tmp_path: Path, files: dict[str, str], reason: str
) -> None:
    out = tmp_path / "mine"
    out.mkdir()
    for name, text in files.items():
        (out / name).write_text(text)
    with pytest.raises(TrainingError, match=f"^{out} .*{reason}.*: not replaced"):
        Staging(out)
    assert {name: (out / name).read_text() for name in listing(out)} == files
    assert listing(tmp_path) == ["mine"]


def test_a_file_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(TrainingError, match=f"^{tmp_path}/file is not a folder$"):
        Staging(tmp_path / "file")
    with pytest.raises(TrainingError, match=f"^cannot write a model: {tmp_path}/file"):
        Staging(tmp_path / "file/below")
    assert (tmp_path / "file").read_text() == "mine"


def test_an_unpublished_model_leaves_nothing(tmp_path: Path) -> None:
    publish(tmp_path / "old", 1.0)
    with Staging(tmp_path / "old"), Staging(tmp_path / "new"):
        assert len(listing(tmp_path)) == 2
    assert listing(tmp_path) == ["old"]
    assert listing(tmp_path / "old") == ["config.json", "model.safetensors"]
    assert value_of(tmp_path / "old") == 1.0


def test_a_failing_write_leaves_the_old_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    publish(tmp_path / "model", 1.0)
    monkeypatch.setattr(staging, "write_safetensors", full)
    with pytest.raises(
        TrainingError, match=f"^cannot write the model: {tmp_path}/model: No space left on device$"
    ):
        publish(tmp_path / "model", 2.0)
    assert value_of(tmp_path / "model") == 1.0
    assert listing(tmp_path / "model") == ["config.json", "model.safetensors"]


def test_two_runs_at_once_both_succeed(tmp_path: Path) -> None:
    """Each has its own staging folder; the second to publish finds a model where none was."""
    with Staging(tmp_path / "model") as first, Staging(tmp_path / "model") as second:
        first.publish(filled(1.0))
        second.publish(filled(2.0))
    assert value_of(tmp_path / "model") == 2.0
    assert listing(tmp_path) == ["model"]


def test_a_folder_that_was_filled_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    with Staging(tmp_path / "model") as staged:
        (tmp_path / "model").mkdir()
        (tmp_path / "model/notes").write_text("mine")
        with pytest.raises(TrainingError, match="holds no model"):
            staged.publish(filled(1.0))
    assert listing(tmp_path / "model") == ["notes"]
    assert listing(tmp_path) == ["model"]


def test_files_get_the_permissions_of_the_umask(tmp_path: Path) -> None:
    publish(tmp_path / "model", 1.0)
    (tmp_path / "plain").mkdir()
    mode = stat.S_IMODE((tmp_path / "plain").stat().st_mode)
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == mode


@pytest.mark.parametrize("before", ["nothing", "model"])
def test_staging_of_a_killed_run_is_removed_by_the_next(tmp_path: Path, before: str) -> None:
    out = tmp_path / "model"
    if before == "model":
        publish(out, 1.0)
    script = f"""
        import os
        from tinyllm.training.staging import Staging
        Staging({str(out)!r})
        os.abort()
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)
    place = out if before == "model" else tmp_path
    assert len([name for name in listing(place) if "staging" in name]) == 1
    publish(out, 2.0)
    assert listing(out) == ["config.json", "model.safetensors"]
    assert listing(tmp_path) == ["model"]


# Forks a child that is killed at its n-th step, for every n: a step is an audit event, which
# Python raises before each system call that opens, makes, renames or removes something, and
# each fsync. Prints what each child left behind.
KILL_AT_EVERY_STEP = """
import os, signal, sys
from pathlib import Path
import numpy as np
from tinyllm.model import load_model
from tinyllm.training import staging

def run(out, kill_at):
    steps = 0
    def step(*_):
        nonlocal steps
        steps += 1
        if steps == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(lambda event, _: event.split(".")[0] in ("open", "os") and step())
    sync = os.fsync
    os.fsync = lambda descriptor: (step(), sync(descriptor))
    with staging.Staging(out) as staged:
        staged.publish(np.full((256, 256), 2.0, dtype=np.float32))

def killed(out, kill_at):
    child = os.fork()
    if child == 0:
        run(out, kill_at)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL

def state(out):
    if not out.exists() or not any(out.iterdir()):
        return "nothing"
    return f"whole {set(load_model(out).logits(97))}"

before, base = sys.argv[1], Path(sys.argv[2])
for kill_at in range(1, 1000):
    out = base / str(kill_at) / "model"
    out.parent.mkdir()
    if before == "empty":
        out.mkdir()
    if before == "model":
        with staging.Staging(out) as staged:
            staged.publish(np.full((256, 256), 1.0, dtype=np.float32))
    if not killed(out, kill_at):
        print("survived", state(out))
        break
    print("killed", state(out))
"""


@pytest.mark.parametrize(
    ("before", "old"),
    [("missing", "nothing"), ("empty", "nothing"), ("model", "whole {1.0}")],
)
def test_a_run_killed_at_any_step_leaves_the_old_model_or_the_new(
    tmp_path: Path, before: str, old: str
) -> None:
    command = [sys.executable, "-c", KILL_AT_EVERY_STEP, before, str(tmp_path)]
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # a process with threads must not fork
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=alone)
    states = run.stdout.splitlines()
    assert len(states) > 15
    assert states[-1] == "survived whole {2.0}"
    assert states[0] == f"killed {old}"
    # First the old state, from one step on the new one: never a mixture, never back.
    switch = states.index("killed whole {2.0}")
    assert set(states[:switch]) == {f"killed {old}"}
    assert set(states[switch:-1]) == {"killed whole {2.0}"}
