"""A whole head, from its bytes to a request without its body.

Two passes over the bytes: one pattern matches the request line, one finds all fields. Only when
a pattern refuses is the head read again, line by line in file order, to say which rule the first
broken byte breaks; so the good path is short and the errors are precise. The rules that need the
whole head come last: Host, then what says where the body ends, then Expect.
"""

from __future__ import annotations

from typing import NamedTuple

from tinyllm.wire.buffer import bare_line_end
from tinyllm.wire.errors import (
    BadContentLength,
    BadFieldLine,
    BadFieldName,
    BadFieldValue,
    BadHost,
    BadMethod,
    BadRequest,
    BadRequestLine,
    BadTarget,
    BadVersion,
    BodyTooLarge,
    ConflictingFraming,
    ExpectationFailed,
    LengthRequired,
    TransferCodingUnsupported,
)
from tinyllm.wire.grammar import (
    ABSOLUTE_FORM,
    AUTHORITY_FORM,
    BARE_LINE_END,
    FIELD_LINES,
    HOST,
    NOT_FIELD_BYTE,
    REQUEST_LINE,
    TOKEN,
    VISIBLE,
)

Fields = list[tuple[bytes, bytes]]
FieldIndex = dict[bytes, bytes]  # lower-case name -> the first value under that name

_SLASH = 0x2F


class Head(NamedTuple):
    """What a head says: the request line's parts, its fields, and how many bytes of body follow."""

    method: bytes
    target: bytes
    version: bytes  # b"1.0" or b"1.1"
    fields: Fields
    by_name: FieldIndex
    body_length: int


def parse_head(data: bytes | bytearray, end: int, max_body_bytes: int) -> Head:
    """Return what the head `data[:end]` says; it ends with its empty line.

    Raises the HttpError of the first broken rule in file order.
    """
    line = REQUEST_LINE.match(data, 0, end)
    if line is None:
        raise _explain_request_line(bytes(data[:end]))
    method, target, version = line.groups()
    if target[0] != _SLASH or method == b"CONNECT":
        _check_target(method, target)
    fields: Fields = FIELD_LINES.findall(data, line.end(), end - 2)
    index = {name.lower(): value for name, value in fields}
    if len(index) != len(fields):
        index = {name.lower(): value for name, value in reversed(fields)}
    if b"" in index:
        raise _explain_fields(bytes(data[:end]))
    _check_host(version, fields, index)
    body_length = _body_length(method, fields, index, max_body_bytes)
    if b"expect" in index:
        _check_expect(index[b"expect"])
    return Head(method, target, version, fields, index, body_length)


def index_fields(fields: Fields) -> FieldIndex:
    """Return the first value under each name, in lower case (bytes.lower knows only ASCII)."""
    return {name.lower(): value for name, value in reversed(fields)}


def expects_continue(head: Head) -> bool:
    """Whether an HTTP/1.1 client waits for 100 (Continue) before it sends the body.

    RFC 9110, section 10.1.1: the expectation in an HTTP/1.0 request must be ignored.
    """
    return b"expect" in head.by_name and head.version == b"1.1"


def _check_target(method: bytes, target: bytes) -> None:
    """RFC 9112, section 3.2: origin-form / absolute-form / authority-form / asterisk-form."""
    if method == b"CONNECT":
        if AUTHORITY_FORM.fullmatch(target) is None:
            raise BadTarget("the target of CONNECT is a host and a port (RFC 9112, section 3.2.3)")
    elif target == b"*":
        if method != b"OPTIONS":
            raise BadTarget("the target * is for OPTIONS alone (RFC 9112, section 3.2.4)")
    elif ABSOLUTE_FORM.fullmatch(target) is None:
        raise BadTarget("the target is neither a path nor an absolute URI (RFC 9112, section 3.2)")


def _check_host(version: bytes, fields: Fields, index: FieldIndex) -> None:
    """RFC 9112, section 3.2: exactly one valid Host in HTTP/1.1, at most one in HTTP/1.0."""
    host = index.get(b"host")
    if host is None:
        if version == b"1.1":
            raise BadHost("an HTTP/1.1 request has a Host field")
    elif HOST.fullmatch(host) is None:
        raise BadHost("Host is not a host with an optional port")
    elif _is_repeated(b"host", fields, index):
        raise BadHost("there is more than one Host field")


def _is_repeated(name: bytes, fields: Fields, index: FieldIndex) -> bool:
    if len(index) == len(fields):
        return False
    return sum(field.lower() == name for field, _ in fields) > 1


def _body_length(method: bytes, fields: Fields, index: FieldIndex, max_body_bytes: int) -> int:
    """RFC 9112, section 6.3: how many bytes of body follow the head."""
    length = index.get(b"content-length")
    if b"transfer-encoding" in index:
        if length is not None:
            raise ConflictingFraming("Content-Length and Transfer-Encoding exclude each other")
        raise TransferCodingUnsupported("a body with a transfer coding is not read here")
    if length is None:
        if method == b"POST":
            raise LengthRequired("a POST says its body's length with Content-Length")
        return 0
    if not length.isdigit():  # of bytes: ASCII digits only, and at least one
        raise BadContentLength("Content-Length is not a decimal number")
    if _is_repeated(b"content-length", fields, index):
        raise BadContentLength("there is more than one Content-Length field")
    digits = length.lstrip(b"0")
    if len(digits) > len(str(max_body_bytes)) or int(digits or b"0") > max_body_bytes:
        raise BodyTooLarge(f"Content-Length is over {max_body_bytes} bytes")
    return int(digits or b"0")


def _check_expect(value: bytes) -> None:
    """RFC 9110, section 10.1.1: 100-continue is the only expectation there is."""
    if value.lower() != b"100-continue":
        raise ExpectationFailed("the only expectation known here is 100-continue")


def _explain_request_line(head: bytes) -> BadRequest:
    """Return the error for a request line that the pattern refused."""
    bare = BARE_LINE_END.search(head)
    if bare is not None:
        return bare_line_end(head, bare.start())
    line = head[: head.index(b"\r\n")]
    parts = line.split(b" ")
    if len(parts) != 3 or not all(parts):
        return BadRequestLine("the request line is not `method target version` with single spaces")
    method, target, version = parts
    if TOKEN.fullmatch(method) is None:
        return BadMethod(f"the method {_quote(method)} is not a token")
    if VISIBLE.fullmatch(target) is None:
        return BadTarget("the target has a byte that is not visible ASCII")
    return BadVersion(f"the version {_quote(version)} is neither HTTP/1.0 nor HTTP/1.1")


def _explain_fields(head: bytes) -> BadRequest:
    """Return the error for the first field line that the pattern refused."""
    bare = BARE_LINE_END.search(head)
    if bare is not None:
        return bare_line_end(head, bare.start())
    lines = head.split(b"\r\n")[1:-2]
    return next(error for n, line in enumerate(lines, 2) if (error := _explain_field(n, line)))


def _explain_field(number: int, line: bytes) -> BadRequest | None:
    """Return what is wrong with one field line, None if nothing is."""
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
