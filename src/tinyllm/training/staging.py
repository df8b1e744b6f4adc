"""Put a model in its folder so that whoever looks sees the old one or the new one, whole.

The model is written into a staging folder, forced to disk, and then moved by rename(2), the
one step that is atomic. Which rename depends on what is there:

- Nothing, or an empty folder: the staging folder lies beside it and takes its place.
- A bigram: the staging folder lies within it, and each file takes its namesake's place. All
  bigrams have the same config.json, so the one rename that matters is that of
  model.safetensors: before it the folder is the old model, after it the new one. (Exchanging
  two whole folders would take renameat2(2), which Python does not offer and not every file
  system has; moving the old folder aside first leaves a moment with no model at all.)
- A mount point, whose place no folder can take: file by file too, the weights last.
- Anything else is not ours to replace, and refused before any text is read.

A process that is killed leaves its staging folder behind. The next run removes it: each run
holds a lock (flock) on its own folder, which the system lets go when the process ends, so a
folder whose lock is free belongs to nobody.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tinyllm.model.bigram import CONFIG, VOCAB_SIZE, WEIGHT
from tinyllm.model.config import write_config
from tinyllm.model.safetensors import write_safetensors
from tinyllm.training.errors import TrainingError, explain
from tinyllm.wire.jsontext import JsonError, parse_json

if TYPE_CHECKING:
    from tinyllm.training.bigram import Weight

CONFIG_FILE = "config.json"
WEIGHT_FILE = "model.safetensors"
METADATA = {"format": "tinyllm"}
PREFIX = ".tinyllm-staging-"


class Staging:
    """A place to write a model before it takes the place of `out`; a context manager.

    Made before the counting starts, so that a folder that may not be replaced, or cannot be
    written, is an error at once and not after an hour. Raises TrainingError.
    """

    def __init__(self, out: str | os.PathLike[str]) -> None:
        self.target = Path(os.path.realpath(out))  # a link to a model stays a link
        try:
            _remove_abandoned(self.target.parent)
            _remove_abandoned(self.target)
            check_replaceable(self.target)
            place = self.target if _is_occupied(self.target) else self.target.parent
            place.mkdir(parents=True, exist_ok=True)
            self._folder, self._lock = _make_locked_folder(place)
        except OSError as error:
            raise TrainingError(f"cannot write a model: {explain(error)}") from error

    def publish(self, weight: Weight) -> None:
        """Write the model to disk and move it into place; raise TrainingError."""
        try:
            write_bigram(self._folder, weight)
            if self._folder.parent == self.target or not self._take_the_place():
                self._replace_files()
            for folder in (self.target, self.target.parent):
                with suppress(OSError):  # not every file system can; the renames are done
                    _sync(folder)
        except OSError as error:
            reason = explain(error, str(self.target))
            raise TrainingError(f"cannot write the model: {reason}") from error

    def _take_the_place(self) -> bool:
        """Rename the staging folder to the target; False when another run came first."""
        try:
            os.rename(self._folder, self.target)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                return False
            raise
        return True

    def _replace_files(self) -> None:
        """Rename each file over its namesake; the weights last, once the folder is a bigram's."""
        check_replaceable(self.target)
        for name in (CONFIG_FILE, WEIGHT_FILE):
            os.replace(self._folder / name, self.target / name)

    def close(self) -> None:
        """Remove what is left of the staging folder."""
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()


def write_bigram(folder: Path, weight: Weight) -> None:
    """Write config.json and model.safetensors into a folder, and wait until they are on disk."""
    data = weight.astype("<f4").tobytes()
    write_config(folder / CONFIG_FILE, CONFIG)
    write_safetensors(folder / WEIGHT_FILE, {WEIGHT: ((VOCAB_SIZE, VOCAB_SIZE), data)}, METADATA)
    for name in (CONFIG_FILE, WEIGHT_FILE):
        _sync(folder / name)


def check_replaceable(target: Path) -> None:
    """Raise TrainingError unless `target` is missing, an empty folder, or holds a bigram."""
    if not target.exists():
        return
    if not target.is_dir():
        raise TrainingError(f"{target} is not a folder")
    architecture = _architecture(target / CONFIG_FILE)
    if architecture is None and _contents(target):
        raise TrainingError(
            f"{target} holds no model (no config.json with tl_arch) and is not empty: not replaced"
        )
    if architecture not in (None, CONFIG.tl_arch):
        raise TrainingError(
            f"{target} holds a model of another kind, {architecture!r}: not replaced"
        )


def _architecture(config_file: Path) -> object:
    """Return the tl_arch of a config.json, None when there is no such thing."""
    try:
        config = parse_json(config_file.read_bytes())
    except (FileNotFoundError, IsADirectoryError, JsonError):
        return None
    return config.get("tl_arch") if isinstance(config, dict) else None


def _is_occupied(target: Path) -> bool:
    """Tell whether a folder cannot be replaced by one rename: not empty, or a mount point."""
    return target.is_dir() and (os.path.ismount(target) or bool(_contents(target)))


def _contents(folder: Path) -> list[Path]:
    """Return what is in a folder besides staging folders."""
    return [entry for entry in folder.iterdir() if not entry.name.startswith(PREFIX)]


def _make_locked_folder(place: Path) -> tuple[Path, int | None]:
    """Make a staging folder and lock it, so that no other run takes it for abandoned."""
    while True:
        folder = place / f"{PREFIX}{secrets.token_hex(4)}"
        folder.mkdir()
        try:
            return folder, _lock(folder)
        except (BlockingIOError, FileNotFoundError):
            continue  # another run was faster than the lock, and is removing it
        except OSError:
            return folder, None  # a file system without locks: there none is abandoned


def _remove_abandoned(place: Path) -> None:
    """Remove the staging folders of runs that were killed; what cannot be removed stays."""
    with suppress(OSError):
        for folder in place.iterdir():
            if folder.name.startswith(PREFIX):
                with suppress(OSError):
                    lock = _lock(folder)
                    shutil.rmtree(folder, ignore_errors=True)
                    os.close(lock)


def _lock(folder: Path) -> int:
    """Open and lock a folder, and return its descriptor.

    Raises BlockingIOError when another process holds it, FileNotFoundError when it is gone,
    another OSError when it cannot be locked at all.
    """
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.stat(folder)  # whoever held it before may have removed it
    except OSError:
        os.close(lock)
        raise
    return lock


def _sync(path: Path) -> None:
    """Wait until a file's bytes, or a folder's names, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
