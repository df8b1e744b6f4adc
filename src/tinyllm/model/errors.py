"""What can be wrong with a model directory: one class per broken rule, all CheckpointErrors.

A message names the file, the tensor where there is one, the two numbers (or words) that
disagree, and the rule, so that the reader of a log knows what to mend without opening the file:

    m/model.safetensors: tensor 'a': it starts at 8, the last one ended at 4 (each tensor must ...)
"""

from __future__ import annotations

MAX_HEADER_BYTES = 100_000_000  # the safetensors format's own cap: a header must not fill memory
MAX_SHOWN = 80  # characters of a name or a value that a message quotes


def shown(text: str) -> str:
    """Return a text cut to what a one-line message can quote."""
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


class CheckpointError(ValueError):
    """A model directory cannot be served as it is.

    `file` is the path as it was given, `tensor` the tensor's name or None, `rule` the broken
    rule in a few words, `problem` what was found instead.
    """

    rule = "a checkpoint must be whole"

    def __init__(self, problem: str, *, file: str = "", tensor: str | None = None) -> None:
        self.problem = problem
        self.file = file
        self.tensor = tensor
        place = f"{file}: " if file else ""
        if tensor is not None:
            place += f"tensor {shown(repr(tensor))}: "
        super().__init__(f"{place}{problem} ({self.rule})")


class UnreadableFile(CheckpointError):
    """A file is missing, is no regular file, or the system will not let us read it."""

    rule = "a model directory holds config.json and model.safetensors as readable files"


class FileChanged(CheckpointError):
    """A file shrank, grew or was replaced while it was being read."""

    rule = "a checkpoint must not change while it is read"


class ConfigError(CheckpointError):
    """config.json is no JSON object, or a field of it is missing or has another value."""

    rule = "config.json must describe a model that this program knows"


class SafetensorsError(CheckpointError):
    """A safetensors file breaks a rule of the format; the subclass says which."""

    rule = "the file must be in the safetensors format"


class FileTooShort(SafetensorsError):
    """There is no room for the header's length."""

    rule = "the file begins with the header's length, 8 bytes"


class HeaderTooLong(SafetensorsError):
    """The header's length is over the format's cap."""

    rule = f"a header has at most {MAX_HEADER_BYTES} bytes"


class HeaderPastEnd(SafetensorsError):
    """The header's length reaches past the end of the file."""

    rule = "the header must end within the file"


class HeaderPadding(SafetensorsError):
    """The header does not begin with its object, or something but spaces follows it."""

    rule = "the header begins with { and is padded with spaces alone"


class HeaderNotJson(SafetensorsError):
    """The header cannot be read as JSON."""

    rule = "the header must be one JSON object in UTF-8"


class DuplicateName(SafetensorsError):
    """A name stands twice in the header; most JSON readers would take the last one."""

    rule = "no name may stand twice in the header"


class BadMetadata(SafetensorsError):
    """__metadata__ holds something else than strings."""

    rule = "__metadata__ must map strings to strings"


class BadEntry(SafetensorsError):
    """A tensor's entry is no object, or a key of it is missing."""

    rule = "an entry must be an object with dtype, shape and data_offsets"


class UnsupportedDtype(SafetensorsError):
    """A dtype that is not read."""

    rule = "dtype must be F32, contract v0"


class BadShape(SafetensorsError):
    """A shape that is no list of sizes, or whose product is no size."""

    rule = "a shape is a list of integers from 0, their product below 2^64"


class BadOffsets(SafetensorsError):
    """data_offsets that are not a range."""

    rule = "data_offsets are two integers, 0 <= begin <= end"


class SizeMismatch(SafetensorsError):
    """data_offsets and shape disagree about the tensor's length."""

    rule = "data_offsets must span exactly the bytes of the shape"


class NotTiled(SafetensorsError):
    """A gap before a tensor, or an overlap with another one."""

    rule = "each tensor must start where the last one ended"


class DataPastEnd(SafetensorsError):
    """A tensor reaches past the end of the file, which may have been cut short."""

    rule = "the data must end within the file"


class TrailingBytes(SafetensorsError):
    """Bytes follow the last tensor."""

    rule = "the last tensor must end where the file does"


class MissingTensor(SafetensorsError):
    """The model's tensor is not in the file."""

    rule = "a bigram checkpoint holds the tensor bigram.weight"


class UnexpectedTensor(SafetensorsError):
    """A tensor that the model would not use: the file was meant for another model."""

    rule = "a bigram checkpoint holds no other tensor than bigram.weight"


class WrongShape(SafetensorsError):
    """The model's tensor has another shape."""

    rule = "bigram.weight must have the shape [256, 256]"
