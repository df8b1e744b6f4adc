"""The safetensors format: a JSON header that says where each tensor's bytes lie.

    offset 0      u64 little-endian N, the header's length
    offset 8      N bytes of JSON, padded with spaces to a multiple of 8
    offset 8 + N  the data; every data_offsets pair is [begin, end) counted from here

The reader checks in file order: the length, the header's text, its entries, and last how the
tensors lie. Gaps, overlaps and trailing bytes fall out of one rule: each tensor starts where
the last one ended, and the last one ends where the file does. Nothing is read or allocated
before the number that sizes it was checked, and `read_index` reads no data at all: it says
where the data is. Where the format's readers differ, the strict reading holds: a header begins
with `{` and only spaces follow its object.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tinyllm.model.errors import (
    MAX_HEADER_BYTES,
    BadEntry,
    BadMetadata,
    BadOffsets,
    BadShape,
    DataPastEnd,
    DuplicateName,
    FileTooShort,
    HeaderNotJson,
    HeaderPadding,
    HeaderPastEnd,
    HeaderTooLong,
    NotTiled,
    SizeMismatch,
    TrailingBytes,
    UnsupportedDtype,
    shown,
)
from tinyllm.model.source import Source
from tinyllm.wire.jsontext import Json, JsonError, dump_json, parse_json

LENGTH_BYTES = 8  # the u64 in front
ALIGNMENT = 8  # the header is padded to a multiple of this, so that the data is aligned
SIZE_LIMIT = 2**64  # sizes and offsets are u64: everything is below
DTYPE_BYTES = {"F32": 4}  # contract v0 knows F32 alone
METADATA = "__metadata__"


class TensorInfo(NamedTuple):
    """Where one tensor lies: bytes [begin, end) of the file, row-major, little-endian."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


class Index(NamedTuple):
    """A checked header: `metadata`, and `tensors` by name in the order they lie in the file."""

    metadata: Mapping[str, str]
    tensors: Mapping[str, TensorInfo]


def read_index(source: Source) -> Index:
    """Return the checked index of a safetensors file; raise the SafetensorsError it deserves."""
    data_begin = LENGTH_BYTES + _header_length(source)
    header = _parse_header(bytes(source.read(LENGTH_BYTES, data_begin)), source.name)
    metadata = _checked_metadata(header.pop(METADATA, {}), source.name)
    infos = [_tensor_info(name, entry, data_begin, source) for name, entry in header.items()]
    infos.sort(key=lambda info: (info.begin, info.end))
    _check_tiling(infos, data_begin, source)
    return Index(metadata, {info.name: info for info in infos})


def _header_length(source: Source) -> int:
    """Return N, checked against the cap and the file's length."""
    if source.length < LENGTH_BYTES:
        raise FileTooShort(f"the file has {source.length} bytes", file=source.name)
    length = int.from_bytes(source.read(0, LENGTH_BYTES), "little")
    if length > MAX_HEADER_BYTES:
        raise HeaderTooLong(f"the header's length is {length}", file=source.name)
    rest = source.length - LENGTH_BYTES
    if length > rest:
        problem = f"the header's length is {length}, {rest} bytes follow"
        raise HeaderPastEnd(problem, file=source.name)
    return length


def _parse_header(data: bytes, file: str) -> dict[str, Json]:
    """Return the header's object, in the order of its text."""
    if not data.startswith(b"{"):
        raise HeaderPadding(f"the header begins with {data[:1]!r}", file=file)
    text = data.rstrip(b" ")
    if not text.endswith(b"}"):
        problem = f"the header, without its padding, ends with {text[-1:]!r}"
        raise HeaderPadding(problem, file=file)
    try:
        header: dict[str, Json] = parse_json(text, reject_duplicates=True)
    except JsonError as error:
        broken = DuplicateName if _is_json(text) else HeaderNotJson
        raise broken(f"the header cannot be read: {error}", file=file) from error
    return header  # an object, since it begins with {


def _is_json(text: bytes) -> bool:
    """Tell whether a text can be read when a name may stand twice."""
    try:
        parse_json(text)
    except JsonError:
        return False
    return True


def _checked_metadata(metadata: Json, file: str) -> dict[str, str]:
    """Return __metadata__ when it maps strings to strings."""
    if not isinstance(metadata, dict):
        raise BadMetadata(f"__metadata__ is {_kind(metadata)}", file=file)
    for key, value in metadata.items():
        if not isinstance(value, str):
            problem = f"__metadata__ has {_kind(value)} for {shown(repr(key))}"
            raise BadMetadata(problem, file=file)
    return metadata


def _tensor_info(name: str, entry: Json, data_begin: int, source: Source) -> TensorInfo:
    """Return one entry, checked by itself. Keys that the format does not know are ignored."""
    file = source.name
    if not isinstance(entry, dict):
        raise BadEntry(f"the entry is {_kind(entry)}", file=file, tensor=name)
    for key in ("dtype", "shape", "data_offsets"):
        if key not in entry:
            raise BadEntry(f"the entry has no {key}", file=file, tensor=name)
    dtype = entry["dtype"]
    if not isinstance(dtype, str) or dtype not in DTYPE_BYTES:
        raise UnsupportedDtype(f"dtype is {_quoted(dtype)}", file=file, tensor=name)
    size = DTYPE_BYTES[dtype] * _element_count(entry["shape"], file, name)
    begin, end = _offsets(entry["data_offsets"], file, name)
    if end - begin != size:
        problem = f"data_offsets span {end - begin} bytes, shape and dtype make {size}"
        raise SizeMismatch(problem, file=file, tensor=name)
    return TensorInfo(name, dtype, tuple(entry["shape"]), data_begin + begin, data_begin + end)


def _element_count(shape: Json, file: str, tensor: str) -> int:
    """Return the product of a shape, stopping before it can grow over 64 bits."""
    if not isinstance(shape, list) or not all(map(_is_size, shape)):
        raise BadShape(f"shape is {_quoted(shape)}", file=file, tensor=tensor)
    count = 1
    for size in shape:
        count *= size
        if count >= SIZE_LIMIT:
            raise BadShape(f"the product of shape reaches {count}", file=file, tensor=tensor)
    return count


def _offsets(offsets: Json, file: str, tensor: str) -> tuple[int, int]:
    """Return begin and end, which are a range but perhaps none of this file."""
    if isinstance(offsets, list) and len(offsets) == 2 and all(map(_is_size, offsets)):
        begin, end = offsets
        if begin <= end:
            return begin, end
    raise BadOffsets(f"data_offsets are {_quoted(offsets)}", file=file, tensor=tensor)


def _check_tiling(infos: Sequence[TensorInfo], data_begin: int, source: Source) -> None:
    """Check that the tensors, sorted by where they begin, fill the file from data_begin on."""
    place = data_begin
    for info in infos:
        if info.begin != place:
            begin, expected = info.begin - data_begin, place - data_begin
            problem = f"it starts at data offset {begin}, the data before it ends at {expected}"
            raise NotTiled(problem, file=source.name, tensor=info.name)
        if info.end > source.length:
            problem = f"it ends at byte {info.end}, the file has {source.length}"
            raise DataPastEnd(problem, file=source.name, tensor=info.name)
        place = info.end
    if place != source.length:
        problem = f"the last tensor ends at byte {place}, the file has {source.length}"
        raise TrailingBytes(problem, file=source.name)


def _is_size(value: object) -> bool:
    """Tell whether a JSON value is an integer that fits u64; true and 256.0 are not."""
    return type(value) is int and 0 <= value < SIZE_LIMIT


def _kind(value: Json) -> str:
    """Name the JSON kind of a value."""
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}
    return "null" if value is None else kinds.get(type(value), "a number")


def _quoted(value: Json) -> str:
    """Show a JSON value in a message."""
    return shown(dump_json(value))


def safetensors_bytes(
    tensors: Mapping[str, tuple[Sequence[int], bytes | bytearray | memoryview]],
    metadata: Mapping[str, str] | None = None,
) -> bytes:
    """Return a safetensors file of F32 tensors: name -> (shape, little-endian float32 bytes).

    The tensors lie in the order given. Raises ValueError when a shape and its bytes disagree.
    """
    header: dict[str, Json] = {} if metadata is None else {METADATA: dict(metadata)}
    chunks, place = [], 0
    for name, (shape, data) in tensors.items():
        chunk = memoryview(data).cast("B")
        size = DTYPE_BYTES["F32"] * _element_count(list(shape), "", name)
        if name == METADATA or len(chunk) != size:
            raise ValueError(f"tensor {name!r}: {len(chunk)} bytes given, its shape makes {size}")
        end = place + size
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [place, end]}
        chunks.append(chunk)
        place = end
    text = dump_json(header).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    return b"".join([len(text).to_bytes(LENGTH_BYTES, "little"), text, *chunks])


def write_safetensors(
    path: str | os.PathLike[str],
    tensors: Mapping[str, tuple[Sequence[int], bytes | bytearray | memoryview]],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write `safetensors_bytes(tensors, metadata)` to a file; OSError when that fails."""
    with open(path, "wb") as file:
        file.write(safetensors_bytes(tensors, metadata))
