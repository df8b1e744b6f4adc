"""HTTP/1.1, JSON and Server-Sent Events as bytes and values; no sockets, no event loop.

    errors, grammar <- buffer, message <- head <- request   bytes to a Request, or the broken rule
            grammar <- response                             a response to bytes
                       jsontext                             JSON text to values and back
                       sse                                  payloads to a stream of events and back

Only `tinyllm.wire.__main__`, the `wire` server, touches a socket.
"""

from tinyllm.wire.errors import (
    BadContentLength,
    BadFieldLine,
    BadFieldName,
    BadFieldValue,
    BadHost,
    BadLineEnd,
    BadMethod,
    BadRequest,
    BadRequestLine,
    BadTarget,
    BadVersion,
    BodyTooLarge,
    ClientGone,
    ConflictingFraming,
    ExpectationFailed,
    HeadTooLarge,
    HttpError,
    LengthRequired,
    RequestTimeout,
    TooManyEmptyLines,
    TransferCodingUnsupported,
)
from tinyllm.wire.jsontext import Json, JsonError, dump_json, json_string, parse_json
from tinyllm.wire.message import Request
from tinyllm.wire.request import (
    CONTINUE,
    MAX_BODY_BYTES,
    MAX_HEAD_BYTES,
    ByteReader,
    ParserState,
    RequestParser,
    read_request,
)
from tinyllm.wire.response import (
    REASON_PHRASES,
    ByteWriter,
    response_bytes,
    sse_head_bytes,
    write_response,
    write_sse_head,
)
from tinyllm.wire.sse import SseError, SseEvent, SseParser, sse_comment, sse_event

__all__ = [
    "CONTINUE",
    "MAX_BODY_BYTES",
    "MAX_HEAD_BYTES",
    "REASON_PHRASES",
    "BadContentLength",
    "BadFieldLine",
    "BadFieldName",
    "BadFieldValue",
    "BadHost",
    "BadLineEnd",
    "BadMethod",
    "BadRequest",
    "BadRequestLine",
    "BadTarget",
    "BadVersion",
    "BodyTooLarge",
    "ByteReader",
    "ByteWriter",
    "ClientGone",
    "ConflictingFraming",
    "ExpectationFailed",
    "HeadTooLarge",
    "HttpError",
    "Json",
    "JsonError",
    "LengthRequired",
    "ParserState",
    "Request",
    "RequestParser",
    "RequestTimeout",
    "SseError",
    "SseEvent",
    "SseParser",
    "TooManyEmptyLines",
    "TransferCodingUnsupported",
    "dump_json",
    "json_string",
    "parse_json",
    "read_request",
    "response_bytes",
    "sse_comment",
    "sse_event",
    "sse_head_bytes",
    "write_response",
    "write_sse_head",
]
