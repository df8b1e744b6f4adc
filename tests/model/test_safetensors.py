"""The safetensors reader: every rule of the format, and the official package beside it."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy

from model.checkpoints import DATA, SUCC_HEADER, corpus_file, safetensors_file, succ_file
from tinyllm.model import errors
from tinyllm.model.bigram import read_bigram_weight
from tinyllm.model.safetensors import read_index, safetensors_bytes, write_safetensors
from tinyllm.model.source import BufferSource

CASES: list[dict[str, Any]] = json.loads((DATA / "safetensors.json").read_text())["cases"]

# Where the corpus leaves the choice to us: extra tensors are refused, since a model that ignored
# them would not be the one in the file, and a header is padded with spaces alone.
REFUSED_BY_CHOICE = {
    "padded-with-tab-and-lf": errors.HeaderPadding,
    "leading-whitespace": errors.HeaderPadding,
    "metadata-number-value": errors.BadMetadata,
    "metadata-array": errors.BadMetadata,
    "metadata-looks-like-tensor": errors.BadMetadata,
    "second-tensor-first-in-buffer": errors.UnexpectedTensor,
    "second-tensor-zero-size": errors.UnexpectedTensor,
    "zero-size-tensor-inside": errors.NotTiled,
}
KINDS = {kind: [case for case in CASES if case["expect"] == kind] for kind in ("accept", "reject")}
KINDS["either"] = [case for case in CASES if case["expect"] == "either"]


def entry(begin: int, end: int, shape: list[int] | None = None, dtype: str = "F32") -> Any:
    size = [(end - begin) // 4] if shape is None else shape
    return {"dtype": dtype, "shape": size, "data_offsets": [begin, end]}


@pytest.mark.parametrize("case", KINDS["accept"], ids=lambda case: case["name"])
def test_valid_files_of_the_corpus_are_read(case: dict[str, Any]) -> None:
    assert read_bigram_weight(corpus_file(case)).tolist() == [0.0] * 65536


@pytest.mark.parametrize("case", KINDS["reject"], ids=lambda case: case["name"])
def test_broken_files_of_the_corpus_are_refused(case: dict[str, Any]) -> None:
    with pytest.raises(errors.SafetensorsError):
        read_bigram_weight(corpus_file(case))


@pytest.mark.parametrize("case", KINDS["either"], ids=lambda case: case["name"])
def test_open_cases_of_the_corpus_are_decided(case: dict[str, Any]) -> None:
    with pytest.raises(REFUSED_BY_CHOICE[case["name"]]):
        read_bigram_weight(corpus_file(case))


def test_every_open_case_has_its_decision() -> None:
    assert {case["name"] for case in KINDS["either"]} == set(REFUSED_BY_CHOICE)


TENSOR = '"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
BROKEN: list[tuple[str, bytes, type[errors.SafetensorsError], str | None, str]] = [
    ("empty", b"", errors.FileTooShort, None, "the file has 0 bytes"),
    ("seven bytes", b"\x01" * 7, errors.FileTooShort, None, "the file has 7 bytes"),
    (
        "length over the cap",
        (100_000_001).to_bytes(8, "little"),
        errors.HeaderTooLong,
        None,
        "length is 100000001 (a header has at most 100000000 bytes)",
    ),
    (
        "length past the end",
        safetensors_file("{}", b"", length=3),
        errors.HeaderPastEnd,
        None,
        "the header's length is 3, 2 bytes follow",
    ),
    ("no header", bytes(8), errors.HeaderPadding, None, "the header begins with b''"),
    ("space in front", safetensors_file(" {}", b""), errors.HeaderPadding, None, "b' '"),
    ("BOM in front", safetensors_file("\ufeff{}", b""), errors.HeaderPadding, None, r"b'\xef'"),
    ("LF behind", safetensors_file("{}\n", b""), errors.HeaderPadding, None, r"ends with b'\n'"),
    ("NUL behind", safetensors_file("{}\0", b""), errors.HeaderPadding, None, r"ends with b'\x00'"),
    ("not JSON", safetensors_file("{,}", b""), errors.HeaderNotJson, None, "line 1 column 2"),
    (
        "two objects",
        safetensors_file("{}{}", b""),
        errors.HeaderNotJson,
        None,
        "Extra data at line 1 column 3",
    ),
    (
        "not UTF-8",
        (4).to_bytes(8, "little") + b'{"\xff}',
        errors.HeaderNotJson,
        None,
        "not UTF-8: invalid start byte at byte 2",
    ),
    (
        "NaN",
        safetensors_file('{"a":NaN}', b""),
        errors.HeaderNotJson,
        None,
        "NaN is not JSON",
    ),
    (
        "name twice",
        safetensors_file("{" + TENSOR + "," + TENSOR + "}", bytes(4)),
        errors.DuplicateName,
        None,
        'the key "a" stands twice',
    ),
    (
        "name twice, once escaped",
        safetensors_file("{" + TENSOR + "," + TENSOR.replace("a", "\\u0061", 1) + "}", bytes(4)),
        errors.DuplicateName,
        None,
        'the key "a" stands twice',
    ),
    (
        "key of an entry twice",
        safetensors_file(
            '{"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}', bytes(4)
        ),
        errors.DuplicateName,
        None,
        'the key "dtype" stands twice',
    ),
    (
        "metadata no object",
        safetensors_file({"__metadata__": ["x"]}, b""),
        errors.BadMetadata,
        None,
        "__metadata__ is an array",
    ),
    (
        "metadata no string",
        safetensors_file({"__metadata__": {"n": 1}}, b""),
        errors.BadMetadata,
        None,
        "__metadata__ has a number for 'n'",
    ),
    (
        "entry no object",
        safetensors_file({"a": None}, b""),
        errors.BadEntry,
        "a",
        "the entry is null",
    ),
    (
        "no dtype",
        safetensors_file({"a": {"shape": [1], "data_offsets": [0, 4]}}, bytes(4)),
        errors.BadEntry,
        "a",
        "the entry has no dtype",
    ),
    (
        "no shape",
        safetensors_file({"a": {"dtype": "F32", "data_offsets": [0, 4]}}, bytes(4)),
        errors.BadEntry,
        "a",
        "the entry has no shape",
    ),
    (
        "no data_offsets",
        safetensors_file({"a": {"dtype": "F32", "shape": [1]}}, bytes(4)),
        errors.BadEntry,
        "a",
        "the entry has no data_offsets",
    ),
    (
        "F16",
        safetensors_file({"a": entry(0, 2, [1], "F16")}, bytes(2)),
        errors.UnsupportedDtype,
        "a",
        'dtype is "F16" (dtype must be F32, contract v0)',
    ),
    (
        "dtype no string",
        safetensors_file({"a": {**entry(0, 4), "dtype": ["F32"]}}, bytes(4)),
        errors.UnsupportedDtype,
        "a",
        'dtype is ["F32"]',
    ),
    (
        "shape no list",
        safetensors_file({"a": {**entry(0, 4), "shape": 1}}, bytes(4)),
        errors.BadShape,
        "a",
        "shape is 1",
    ),
    (
        "shape negative",
        safetensors_file({"a": entry(0, 4, [-1, -1])}, bytes(4)),
        errors.BadShape,
        "a",
        "shape is [-1,-1]",
    ),
    (
        "shape of booleans",
        safetensors_file({"a": {**entry(0, 4), "shape": [True]}}, bytes(4)),
        errors.BadShape,
        "a",
        "shape is [true]",
    ),
    (
        "shape with a fraction",
        safetensors_file({"a": {**entry(0, 4), "shape": [1.0]}}, bytes(4)),
        errors.BadShape,
        "a",
        "shape is [1.0]",
    ),
    (
        "a size over 64 bits",
        safetensors_file({"a": entry(0, 0, [2**64, 0])}, b""),
        errors.BadShape,
        "a",
        "shape is [18446744073709551616,0]",
    ),
    (
        "product over 64 bits, times 0",
        safetensors_file({"a": entry(0, 0, [2**32, 2**32, 0])}, b""),
        errors.BadShape,
        "a",
        "the product of shape reaches 18446744073709551616",
    ),
    (
        "three offsets",
        safetensors_file({"a": {**entry(0, 4), "data_offsets": [0, 4, 4]}}, bytes(4)),
        errors.BadOffsets,
        "a",
        "data_offsets are [0,4,4]",
    ),
    (
        "offsets backwards",
        safetensors_file({"a": {**entry(0, 4), "data_offsets": [4, 0]}}, bytes(4)),
        errors.BadOffsets,
        "a",
        "data_offsets are [4,0]",
    ),
    (
        "offsets with an exponent",
        safetensors_file('{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4e0]}}', bytes(4)),
        errors.BadOffsets,
        "a",
        "data_offsets are [0,4.0]",
    ),
    (
        "span and shape disagree",
        safetensors_file({"a": entry(0, 4, [2])}, bytes(4)),
        errors.SizeMismatch,
        "a",
        "data_offsets span 4 bytes, shape and dtype make 8",
    ),
    (
        "gap in front",
        safetensors_file({"a": entry(4, 8)}, bytes(8)),
        errors.NotTiled,
        "a",
        "it starts at data offset 4, the data before it ends at 0",
    ),
    (
        "gap between",
        safetensors_file({"a": entry(0, 4), "b": entry(8, 12)}, bytes(12)),
        errors.NotTiled,
        "b",
        "it starts at data offset 8, the data before it ends at 4",
    ),
    (
        "overlap",
        safetensors_file({"b": entry(4, 12), "a": entry(0, 8)}, bytes(12)),
        errors.NotTiled,
        "b",
        "it starts at data offset 4, the data before it ends at 8",
    ),
    (
        "same range twice",
        safetensors_file({"a": entry(0, 4), "b": entry(0, 4)}, bytes(4)),
        errors.NotTiled,
        "b",
        "it starts at data offset 0, the data before it ends at 4",
    ),
    (
        "data cut short",
        safetensors_file({"a": entry(0, 4)}, bytes(3)),
        errors.DataPastEnd,
        "a",
        "it ends at byte 68, the file has 67",
    ),
    (
        "one byte too many",
        safetensors_file({"a": entry(0, 4)}, bytes(5)),
        errors.TrailingBytes,
        None,
        "the last tensor ends at byte 68, the file has 69",
    ),
    (
        "data and no tensor",
        safetensors_file({}, bytes(5)),
        errors.TrailingBytes,
        None,
        "the last tensor ends at byte 16, the file has 21",
    ),
]


@pytest.mark.parametrize(
    ("data", "rule", "tensor", "problem"),
    [row[1:] for row in BROKEN],
    ids=[row[0] for row in BROKEN],
)
def test_each_broken_rule_has_its_error(
    data: bytes, rule: type[errors.SafetensorsError], tensor: str | None, problem: str
) -> None:
    with pytest.raises(errors.SafetensorsError) as caught:
        read_index(BufferSource(data, name="dir/model.safetensors"))
    error = caught.value
    assert type(error) is rule
    assert (error.file, error.tensor) == ("dir/model.safetensors", tensor)
    assert problem in str(error)
    assert str(error).startswith("dir/model.safetensors: ")
    assert str(error).endswith(f"({rule.rule})")


def test_messages_stay_one_short_line() -> None:
    name = "x\n" * 5000
    data = safetensors_file({name: {**entry(0, 4), "dtype": "y" * 5000}}, bytes(4))
    with pytest.raises(errors.UnsupportedDtype) as caught:
        read_index(BufferSource(data))
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)


def test_several_tensors_tile_in_any_order_of_the_header() -> None:
    header = {"b": entry(8, 12), "none": entry(8, 8, [3, 0]), "a": entry(0, 8, [1, 2])}
    index = read_index(BufferSource(safetensors_file(header, bytes(12))))
    begin = min(info.begin for info in index.tensors.values())
    assert [(info.name, info.shape, info.begin - begin) for info in index.tensors.values()] == [
        ("a", (1, 2), 0),
        ("none", (3, 0), 8),
        ("b", (1,), 8),
    ]


def test_header_need_not_be_padded() -> None:
    """Old writers did not pad; the weights are then not aligned, which costs nothing here."""
    text = SUCC_HEADER.decode()
    data = safetensors_file(text, succ_file()[128:])
    assert read_bigram_weight(data) == read_bigram_weight(succ_file())


def test_unknown_keys_of_an_entry_are_ignored_as_by_the_official_reader() -> None:
    header = {"a": {**entry(0, 4), "note": "x"}}
    assert list(read_index(BufferSource(safetensors_file(header, bytes(4)))).tensors) == ["a"]


def test_metadata_may_be_any_text() -> None:
    index = read_index(BufferSource(safetensors_file('{"__metadata__":{"é":"\U0001f600"}}', b"")))
    assert index.metadata == {"é": "\U0001f600"}


def test_the_worked_example_is_written_byte_for_byte() -> None:
    data = succ_file()[128:]
    written = safetensors_bytes({"bigram.weight": ((256, 256), data)}, {"format": "tinyllm"})
    assert written == succ_file()
    assert written[99848:99852] == b"\x00\x00\x00\x40"


TENSORS: Mapping[str, tuple[tuple[int, ...], bytes]] = {
    "b": ((2, 3), struct.pack("<6f", 1, -2, 3.5, float("inf"), -0.0, 1e-45)),
    "empty": ((0, 4), b""),
    "scalar": ((), struct.pack("<f", 7)),
    'a "ü"\n': ((1,), struct.pack("<f", float("nan"))),
}


@pytest.mark.parametrize("metadata", [None, {}, {"format": "tinyllm", "é": "\U0001f600\n"}])
def test_official_package_reads_what_we_write(
    tmp_path: Path, metadata: dict[str, str] | None
) -> None:
    path = tmp_path / "model.safetensors"
    write_safetensors(path, TENSORS, metadata)
    with safetensors.safe_open(path, framework="numpy") as opened:
        assert (opened.metadata() or {}) == (metadata or {})
        assert sorted(opened.keys()) == sorted(TENSORS)
        for name, (shape, data) in TENSORS.items():
            tensor = opened.get_tensor(name)
            assert (tensor.dtype, tensor.shape, tensor.tobytes()) == (np.float32, shape, data)


def test_we_read_what_the_official_package_writes() -> None:
    weight = np.random.default_rng(1).standard_normal((256, 256), dtype=np.float32)
    weight[0, :4] = [np.nan, np.inf, -np.inf, -0.0]
    for metadata in (None, {"format": "np", "é": "x"}):
        data = safetensors.numpy.save({"bigram.weight": weight}, metadata)
        assert read_bigram_weight(data).tobytes() == weight.tobytes()


def test_writer_refuses_bytes_that_do_not_fit_the_shape() -> None:
    with pytest.raises(ValueError, match="tensor 'a': 4 bytes given, its shape makes 8"):
        safetensors_bytes({"a": ((2,), bytes(4))})
    with pytest.raises(ValueError, match="__metadata__"):
        safetensors_bytes({"__metadata__": ((1,), bytes(4))})
