"""A whole head, from its bytes to a request without its body.

Two passes over the bytes: one pattern matches the request line, one finds all fields. Only when
a pattern refuses is the head read again, line by line in file order, to say which rule the first
broken byte breaks; so the good path is short and the errors are precise. The rules that need the
whole head come last: Host, then what says where the body ends, then Expect.
"""

from __future__ import annotations

import re

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
    TRIM_FIELD_LINES,
    VISIBLE,
    is_ip_literal,
)
from tinyllm.wire.request import FieldIndex, Fields, Request, index_fields

_SLASH = 0x2F
_MAX_DIGITS = 18  # of a length; a cut after one more leaves it far over any cap, and int() quick


def parse_head(data: bytes | bytearray, end: int, max_body_bytes: int) -> tuple[Request, int]:
    """Return the request of the head `data[:end]`, which ends with its empty line.

    The request comes without its body, and beside it the number of bytes that the body has.
    Raises the HttpError of the first broken rule in file order.
    """
    line = REQUEST_LINE.match(data, 0, end)
    if line is None:
        raise _explain_request_line(bytes(data[:end]))
    method, target, version = line.groups()
    if target[0] != _SLASH or method == b"CONNECT":
        _check_target(method, target)
    fields: Fields = TRIM_FIELD_LINES.findall(data, line.end(), end - 2)
    index = {name.lower(): value for name, value in fields}
    if b"" in index:
        fields = FIELD_LINES.findall(data, line.end(), end - 2)
        index = {name.lower(): value for name, value in fields}
        if b"" in index:
            raise _explain_fields(bytes(data[:end]))
    if len(index) != len(fields):
        index = index_fields(fields)
        _check_single(fields)
    host = index.get(b"host")
    if host is None or (match := HOST.fullmatch(host)) is None or match.lastindex:
        _check_unusual_host(version, host)
    length = index.get(b"content-length")
    if length is None or b"transfer-encoding" in index:
        body_length = _check_no_length(method, index)
    else:
        body_length = _body_length(length, max_body_bytes)
    if b"expect" in index:
        _check_expect(index[b"expect"])
    request = Request(
        method.decode("ascii"), target.decode("ascii"), fields, b"", version.decode("ascii"), index
    )
    return request, body_length


def _check_target(method: bytes, target: bytes) -> None:
    """RFC 9112, section 3.2: origin-form / absolute-form / authority-form / asterisk-form."""
    if method == b"CONNECT":
        if not _is_host(AUTHORITY_FORM.fullmatch(target)):
            raise BadTarget("the target of CONNECT is a host and a port (RFC 9112, section 3.2.3)")
    elif target == b"*":
        if method != b"OPTIONS":
            raise BadTarget("the target * is for OPTIONS alone (RFC 9112, section 3.2.4)")
    elif not _is_host(ABSOLUTE_FORM.fullmatch(target)):
        raise BadTarget("the target is neither a path nor an absolute URI (RFC 9112, section 3.2)")


def _is_host(match: re.Match[bytes] | None) -> bool:
    return match is not None and (match[1] is None or is_ip_literal(match[1]))


def _check_single(fields: Fields) -> None:
    """Refuse a second Host (RFC 9112, section 3.2) or Content-Length (section 6.3)."""
    names = [name.lower() for name, _ in fields]
    if names.count(b"host") > 1:
        raise BadHost("there is more than one Host field")
    if names.count(b"content-length") > 1:
        raise BadContentLength("there is more than one Content-Length field")


def _check_unusual_host(version: bytes, host: bytes | None) -> None:
    """RFC 9112, section 3.2: HTTP/1.0 may leave Host out; nobody may send an invalid one."""
    if host is None:
        if version == b"1.1":
            raise BadHost("an HTTP/1.1 request has a Host field")
    elif not _is_host(HOST.fullmatch(host)):
        raise BadHost("Host is not a host with an optional port")


def _check_no_length(method: bytes, index: FieldIndex) -> int:
    """RFC 9112, section 6.3: without Content-Length there is no body, but a POST must say so."""
    if b"transfer-encoding" in index:
        if b"content-length" in index:
            raise ConflictingFraming("Content-Length and Transfer-Encoding exclude each other")
        raise TransferCodingUnsupported("a body with a transfer coding is not read here")
    if method == b"POST":
        raise LengthRequired("a POST says its body's length with Content-Length")
    return 0


def _body_length(length: bytes, max_body_bytes: int) -> int:
    """RFC 9112, section 6.2: Content-Length = 1*DIGIT."""
    if not length.isdigit():  # of bytes: ASCII digits only, and at least one
        raise BadContentLength("Content-Length is not a decimal number")
    if len(length) > _MAX_DIGITS:
        length = length.lstrip(b"0")[: _MAX_DIGITS + 1] or b"0"
    body_length = int(length)
    if body_length > max_body_bytes:
        raise BodyTooLarge(f"Content-Length is over {max_body_bytes} bytes")
    return body_length


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
