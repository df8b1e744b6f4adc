"""Any bytes are a safetensors file or a SafetensorsError; the official reader agrees on which.

python fuzz/fuzz_safetensors.py CORPUS_DIR      # writes the seeds
python fuzz/run.py safetensors CORPUS_DIR -dict=fuzz/safetensors.dict -max_len=2048 -runs=1000000

Each input is read twice: as a whole file, and as a header's text before the data of a bigram,
so that most runs get past the length. What we accept the official reader must accept, with the
same tensors; what it accepts and we refuse must fall under a rule that is stricter here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import safetensors

from tinyllm.model.bigram import read_bigram_weight
from tinyllm.model.errors import (
    DuplicateName,
    HeaderNotJson,
    HeaderPadding,
    SafetensorsError,
    UnsupportedDtype,
)
from tinyllm.model.safetensors import read_index, safetensors_bytes
from tinyllm.model.source import BufferSource

# docs/formats/safetensors.md, "Stricter than the official reader".
STRICTER = (DuplicateName, HeaderPadding, UnsupportedDtype)
DATA = bytes(4 * 256 * 256)

CASES = Path(__file__).parent.parent / "tests" / "data" / "safetensors.json"

Tensors = dict[str, tuple[list[int], bytes]]


def check(data: bytes) -> None:
    """Read the bytes in both ways, and what is read once more after writing it."""
    check_file(data)
    check_file(len(data).to_bytes(8, "little") + data + DATA)


def check_file(file: bytes) -> None:
    """Compare the two readers on one file."""
    ours, refusal = read(file)
    official = read_officially(file)
    if ours is None:
        assert official is None or is_stricter(refusal), (refusal, official)
        return
    assert ours == official
    assert read(safetensors_bytes({name: tuple(each) for name, each in ours.items()}))[0] == ours
    is_bigram = len(ours) == 1 and ours.get("bigram.weight", ([], b""))[0] == [256, 256]
    assert (read_weight(file) is not None) == is_bigram
    assert not is_bigram or read_weight(file) == ours["bigram.weight"][1]


def is_stricter(refusal: SafetensorsError | None) -> bool:
    """Whether a file that only the official reader accepts was refused on purpose."""
    return isinstance(refusal, STRICTER) or (
        # JSON that serde reads and RFC 8259 or our limits do not allow.
        isinstance(refusal, HeaderNotJson)
        and any(word in str(refusal) for word in ("nested over", "surrogate", "out of range"))
    )


def read(file: bytes) -> tuple[Tensors | None, SafetensorsError | None]:
    """Return the tensors that we read, or why we do not."""
    try:
        infos = read_index(BufferSource(file)).tensors.values()
    except SafetensorsError as error:
        return None, error
    return {info.name: (list(info.shape), file[info.begin : info.end]) for info in infos}, None


def read_weight(file: bytes) -> bytes | None:
    """Return the bytes of a bigram's weights, or None."""
    try:
        return read_bigram_weight(file).tobytes()
    except SafetensorsError:
        return None


def read_officially(file: bytes) -> Tensors | None:
    """Return the tensors that the official package reads, or None."""
    try:
        tensors = safetensors.deserialize(file)
    except safetensors.SafetensorError:
        return None
    return {name: (each["shape"], bytes(each["data"])) for name, each in tensors}


def seeds() -> Iterator[bytes]:
    """Return the headers of the test data, and small files that are whole."""
    for case in json.loads(CASES.read_bytes())["cases"]:
        if case.get("header"):
            yield case["header"].encode()
    yield safetensors_bytes({"a": ((1,), bytes(4))}, {"format": "tinyllm"})
    yield safetensors_bytes({"a": ((1,), bytes(4)), "b": ((2, 0), b""), "c": ((), bytes(4))})


def main(folder: str) -> None:
    """Write one file per seed."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds()):
        Path(folder, f"seed-{number:03d}").write_bytes(seed)


if __name__ == "__main__":
    main(*sys.argv[1:])
