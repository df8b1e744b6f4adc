"""A whole head, from its bytes to a request without its body.

Two passes over the bytes: one pattern matches the request line, one finds all fields. Only when a
pattern refuses does `explain` read the head again, to say which rule is broken; so the good path
is short and the errors are precise. The rules that need the whole head come last: Host, then what
says where the body ends, then Expect.
"""

from __future__ import annotations

from tinyllm.wire.errors import (
    BadContentLength,
    BadHost,
    BodyTooLarge,
    ConflictingFraming,
    ExpectationFailed,
    LengthRequired,
    TransferCodingUnsupported,
)
from tinyllm.wire.explain import explain
from tinyllm.wire.grammar import (
    FIELD_LINES,
    HOST,
    REQUEST_LINE,
    TRIM_FIELD_LINES,
    is_host,
    is_target,
)
from tinyllm.wire.message import FieldIndex, Fields, Request, index_fields

_SLASH = 0x2F
_MAX_DIGITS = 18  # of a length; a cut after one more leaves it far over any cap, and int() quick


def parse_head(data: bytes | bytearray, end: int, max_body_bytes: int) -> tuple[Request, int]:
    """Return the request of the head `data[:end]`, which ends with its empty line.

    The request comes without its body, and beside it the number of bytes that the body has.
    Raises the HttpError of the first broken rule: line ends, then the lines in order, then Host,
    Transfer-Encoding, Content-Length, Expect. One function for all of it, and none called that a
    usual request does not need: this is what a request costs.
    """
    line = REQUEST_LINE.match(data, 0, end)
    if line is None:
        raise explain(bytes(data[:end]))
    method, target, version = line.groups()
    if (target[0] != _SLASH or method == b"CONNECT") and not is_target(method, target):
        raise explain(bytes(data[:end]))
    fields: Fields = TRIM_FIELD_LINES.findall(data, line.end(), end - 2)
    index = {name.lower(): value for name, value in fields}
    if b"" in index:
        fields = FIELD_LINES.findall(data, line.end(), end - 2)
        index = {name.lower(): value for name, value in fields}
        if b"" in index:
            raise explain(bytes(data[:end]))
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
        _check_expect(fields)
    request = Request(
        method.decode("ascii"), target.decode("ascii"), fields, b"", version.decode("ascii"), index
    )
    return request, body_length


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
    elif not is_host(HOST.fullmatch(host)):
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


def _check_expect(fields: Fields) -> None:
    """RFC 9110, section 10.1.1: 100-continue is the only expectation there is."""
    values = b",".join(value for name, value in fields if name.lower() == b"expect")
    if any(member.strip(b" \t") != b"100-continue" for member in values.lower().split(b",")):
        raise ExpectationFailed("the only expectation known here is 100-continue")
