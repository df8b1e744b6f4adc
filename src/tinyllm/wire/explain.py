"""Why a head was refused: the first broken rule, and where.

Read only when a pattern has refused a head, so it may take its time. Line ends come first, because
without them there are no lines; then the lines in file order, and each from left to right.
"""

from __future__ import annotations

from tinyllm.wire.errors import (
    BadFieldLine,
    BadFieldName,
    BadFieldValue,
    BadLineEnd,
    BadMethod,
    BadRequest,
    BadRequestLine,
    BadTarget,
    BadVersion,
)
from tinyllm.wire.grammar import (
    BARE_LINE_END,
    HTTP_VERSION,
    NOT_FIELD_BYTE,
    TOKEN,
    VISIBLE,
    is_target,
)

_CR = 0x0D


def explain(head: bytes) -> BadRequest:
    """Return the error for a head, empty line included, that breaks a rule of its syntax."""
    bare = BARE_LINE_END.search(head)
    if bare is not None:
        return bare_line_end(head, bare.start())
    request_line, *field_lines = head.split(b"\r\n")[:-2]
    error = _explain_request_line(request_line)
    for number, line in enumerate(field_lines, 2):
        error = error or _explain_field_line(number, line)
    if error is None:
        raise ValueError(f"this head breaks no rule: {head!r}")
    return error


def bare_line_end(data: bytes | bytearray, offset: int) -> BadLineEnd:
    """Return the error for the CR or LF at `offset` that is not part of a CRLF."""
    name = "CR" if data[offset] == _CR else "LF"
    line = data.count(b"\r\n", 0, offset) + 1
    return BadLineEnd(f"line {line} of the head has a bare {name}: lines end with CRLF")


def _explain_request_line(line: bytes) -> BadRequest | None:
    parts = line.split(b" ")
    if len(parts) != 3 or not all(parts):
        return BadRequestLine("the request line is not `method target version` with single spaces")
    method, target, version = parts
    if TOKEN.fullmatch(method) is None:
        return BadMethod(f"the method {_quote(method)} is not a token")
    if VISIBLE.fullmatch(target) is None:
        return BadTarget("the target has a byte that is not visible ASCII")
    if HTTP_VERSION.fullmatch(version) is None:
        return BadVersion(f"the version {_quote(version)} is neither HTTP/1.0 nor HTTP/1.1")
    if not is_target(method, target):
        return BadTarget("the target is not a path, an absolute URI, or what its method asks for")
    return None


def _explain_field_line(number: int, line: bytes) -> BadRequest | None:
    where = f"line {number} of the head"
    name, colon, value = line.partition(b":")
    if line[:1] in (b" ", b"\t"):
        return BadFieldLine(f"{where} starts with white space: folded lines are refused")
    if not colon:
        return BadFieldLine(f"{where} has no colon")
    if name[-1:] in (b" ", b"\t"):
        return BadFieldName(f"{where} has white space before its colon")
    if TOKEN.fullmatch(name) is None:
        return BadFieldName(f"{where}: the name {_quote(name)} is not a token")
    bad = NOT_FIELD_BYTE.search(value)
    if bad is not None:
        return BadFieldValue(f"{where}: the value has the control character 0x{bad[0][0]:02x}")
    return None


def _quote(text: bytes) -> str:
    """Return the bytes as a person can read them, and not too many of them."""
    return repr(text if len(text) <= 40 else text[:37] + b"...")[1:]
