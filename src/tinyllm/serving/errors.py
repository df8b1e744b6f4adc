"""What went wrong, in the shape that OpenAI's clients show (engine spec, section 2.7).

Every error that leaves the engine is `{"error": {"message", "type", "param", "code"}}`, also
for broken HTTP, so a client library finds its message whatever happened.
"""

from __future__ import annotations

from tinyllm.wire import HttpError, dump_json

INVALID_REQUEST = "invalid_request_error"  # the client can mend it
SERVER_ERROR = "server_error"  # it cannot


class ApiError(Exception):
    """An answer other than success: its status, and the four fields of the error object."""

    def __init__(
        self,
        status: int,
        error_type: str,
        message: str,
        param: str | None = None,
        code: str | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.error_type = error_type
        self.message = message
        self.param = param
        self.code = code
        self.headers = headers  # that the status asks for: Allow, Retry-After

    @classmethod
    def invalid(cls, param: str | None, message: str) -> ApiError:
        """Return a 400 that names the bad field, or None when the body is no JSON object."""
        return cls(400, INVALID_REQUEST, message, param)

    @classmethod
    def from_http(cls, error: HttpError) -> ApiError:
        """Return the answer to a request that the wire layer refused, with its status."""
        error_type = SERVER_ERROR if error.status >= 500 else INVALID_REQUEST
        return cls(error.status, error_type, error.message)

    @classmethod
    def unavailable(cls, message: str) -> ApiError:
        """Return a 503: not now, but soon; clients retry it after a second."""
        return cls(503, SERVER_ERROR, message, headers=(("Retry-After", "1"),))

    @classmethod
    def internal(cls, request_id: str) -> ApiError:
        """Return a 500 that tells nothing of the inside but where the log has it."""
        return cls(500, SERVER_ERROR, f"internal error; the log has it under request {request_id}")

    def to_json(self) -> str:
        """Return the body of the answer, or the payload of an error event."""
        fields = {
            "message": self.message,
            "type": self.error_type,
            "param": self.param,
            "code": self.code,
        }
        return dump_json({"error": fields})
