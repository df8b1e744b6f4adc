"""What can be wrong with a request: one class per broken rule, each with its status.

The parser raises these; whoever owns the connection turns one into bytes, in one place, by
`status` and `message`. Status 0 means that nobody is left to answer. The family tree follows the
statuses, so that a caller may catch `BadRequest` and mean every 400.
"""

from __future__ import annotations


class HttpError(Exception):
    """A request that cannot be served, and what to answer.

    `status` is the HTTP status code of the answer, 0 when nobody is left to answer;
    `message` says for a person what is wrong and where.
    """

    status = 500

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ClientGone(HttpError):
    """The stream ended before a request began or in the middle of one (RFC 9112, section 8)."""

    status = 0


class BadRequest(HttpError):
    """The bytes are not a request of RFC 9112."""

    status = 400


class BadLineEnd(BadRequest):
    """A bare CR or a bare LF in the head (RFC 9112, section 2.2)."""


class BadRequestLine(BadRequest):
    """The request line is not `method SP target SP version` (RFC 9112, section 3)."""


class BadMethod(BadRequest):
    """The method is not a token (RFC 9110, section 9.1)."""


class BadTarget(BadRequest):
    """The target is none of the four forms, or not the one for its method (RFC 9112, 3.2)."""


class BadVersion(BadRequest):
    """The version is not HTTP/1.0 or HTTP/1.1 (RFC 9112, section 2.3)."""


class BadFieldLine(BadRequest):
    """A field line without a colon, or a folded one (RFC 9112, sections 5 and 5.2)."""


class BadFieldName(BadRequest):
    """A field name that is not a token, or white space before its colon (RFC 9112, 5.1)."""


class BadFieldValue(BadRequest):
    """A control character in a field value (RFC 9110, section 5.5)."""


class BadHost(BadRequest):
    """Host is missing, repeated or not `uri-host [":" port]` (RFC 9112, section 3.2)."""


class BadContentLength(BadRequest):
    """Content-Length is repeated or is not one decimal number (RFC 9112, section 6.3)."""


class ConflictingFraming(BadRequest):
    """Content-Length together with Transfer-Encoding (RFC 9112, section 6.1)."""


class TooManyEmptyLines(BadRequest):
    """More empty lines before the request line than a head may have bytes (RFC 9112, 2.2)."""


class RequestTimeout(HttpError):
    """The head or the body did not arrive before its deadline (RFC 9110, section 15.5.9)."""

    status = 408


class LengthRequired(HttpError):
    """A POST came without Content-Length, so its body's end is unknown (RFC 9110, 15.5.12)."""

    status = 411


class BodyTooLarge(HttpError):
    """Content-Length is over the cap (RFC 9110, section 15.5.14)."""

    status = 413


class ExpectationFailed(HttpError):
    """Expect asks for something other than 100-continue (RFC 9110, section 10.1.1)."""

    status = 417


class HeadTooLarge(HttpError):
    """The request line and the fields are over the cap (RFC 6585, section 5)."""

    status = 431


class TransferCodingUnsupported(HttpError):
    """The body has a transfer coding; none is read here (RFC 9112, section 6.1)."""

    status = 501
