"""Errors: a status that says so, and a JSON object that a client can show."""

from __future__ import annotations

from tinyllm.conformance.case import RECOMMENDED, REQUIRED, case
from tinyllm.conformance.evidence import CheckFailed, check
from tinyllm.conformance.response import Response
from tinyllm.conformance.session import COMPLETIONS, Session

CUT_OFF = b'{"model": "m", "prompt": '  # no JSON text, for any reader
WRONG_PROMPT = b'{"model":"m","prompt":{"a":1},"max_tokens":1}'
MEMBERS = ["message", "type", "param", "code"]


def error_object(response: Response) -> dict[str, object]:
    """Return the error object of an error's body; another body breaks the case."""
    match response.json():
        case {"error": {"message": str(message)} as error} if message:
            return dict(error)
    raise CheckFailed('not {"error": {"message": "...", ...}}', response.body_mark())


def expect_error(response: Response, status: int, param: str | None = None) -> None:
    """Break the case unless this is the v0 contract's error of this status and parameter."""
    check(
        response.status == status, f"status {response.status}, not {status}", response.status_line
    )
    error, mark = error_object(response), response.body_mark()
    check(list(error) == MEMBERS, f"the error's members are {list(error)}, not {MEMBERS}", mark)
    check(error["type"] == "invalid_request_error", f"type {error['type']!r}", mark)
    check(error["param"] == param, f"param {error['param']!r}, not {param!r}", mark)
    check(error["code"] is None or isinstance(error["code"], str), "code", mark)


@case(
    "v0.errors.shape",
    rule="OpenAI API reference, errors; engine specification, section 2.7: the error shape",
    why="Client libraries show error.message; from a body of another shape they show nothing.",
    openai=REQUIRED,
)
def shape(session: Session) -> None:
    """A body that is no JSON gets {"error": {"message": ..., ...}}."""
    error_object(session.post(CUT_OFF))


@case(
    "v0.errors.members",
    rule='Engine specification, section 2.7: "message", "type", "param", "code"',
    why="Programs branch on type and param; a member that is sometimes missing is a KeyError.",
    openai=RECOMMENDED,
)
def members(session: Session) -> None:
    """The error object has message, type, param and code, and type is a string."""
    response = session.post(CUT_OFF)
    error, mark = error_object(response), response.body_mark()
    missing = [name for name in MEMBERS if name not in error]
    check(not missing, f"the error object has no {', '.join(missing)}", mark)
    check(isinstance(error["type"], str), f"type {error['type']!r} is no string", mark)


@case(
    "v0.errors.status",
    rule="RFC 9110, section 15: 4xx says that the client was wrong, 2xx that all went well",
    why="A 200 with an error in it is taken for an answer; a 500 makes clients try again.",
    openai=REQUIRED,
)
def status(session: Session) -> None:
    """Bodies that are no JSON, an array, or have a prompt of the wrong type get a 4xx."""
    for body in session.rows((CUT_OFF, b"[]", WRONG_PROMPT)):
        response = session.post(body)
        client_error = 400 <= response.status < 500
        check(client_error, f"status {response.status} for {body.decode()}", response.status_line)


@case(
    "v0.errors.bad_request",
    rule="Engine specification, section 2.7: any violation is 400, type invalid_request_error",
    why="400 tells the caller that trying again is of no use.",
)
def bad_request(session: Session) -> None:
    """A body that is no JSON is 400 of the exact v0 shape, with param null."""
    expect_error(session.post(CUT_OFF), 400)


@case(
    "v0.errors.content_type",
    rule="RFC 8259, section 11; OpenAI API reference",
    why="An HTML page from a framework's default handler is what a user then sees as the error.",
    openai=REQUIRED,
)
def content_type(session: Session) -> None:
    """Errors are application/json: for a bad body and for an unknown path."""
    for response in (session.post(CUT_OFF), session.get("/v1/no-such-path")):
        mark = response.header_mark("Content-Type")
        check(response.media_type == "application/json", f"type {response.media_type!r}", mark)


@case(
    "v0.errors.not_found",
    rule="RFC 9110, section 15.5.5; engine specification, test errors_use_the_openai_shape",
    why="A client probes for what a server offers by 404.",
    openai=REQUIRED,
)
def not_found(session: Session) -> None:
    """An unknown path is 404."""
    response = session.get("/v1/no-such-path")
    check(response.status == 404, f"status {response.status}, not 404", response.status_line)


@case(
    "v0.errors.not_found_shape",
    rule="Contract, point 7: every error body has the OpenAI shape",
    why="One shape for every error means one way to show it.",
    openai=RECOMMENDED,
)
def not_found_shape(session: Session) -> None:
    """The 404's body has the error shape."""
    error_object(session.get("/v1/no-such-path"))


@case(
    "v0.errors.method",
    rule="RFC 9110, section 15.5.6: 405 must carry Allow",
    why="It tells a wrong method from a wrong path.",
    openai=RECOMMENDED,
)
def method(session: Session) -> None:
    """GET, PUT and DELETE on the completions path are 405, with Allow naming POST."""
    for name in session.rows(("GET", "PUT", "DELETE")):
        body = b"{}" if name == "PUT" else None
        response = session.send(session.request(name, COMPLETIONS, body), name)
        check(
            response.status == 405,
            f"{name}: status {response.status}, not 405",
            response.status_line,
        )
        mark = response.header_mark("Allow")
        check(response.has_token("Allow", "post"), f"{name}: Allow does not name POST", mark)


@case(
    "v0.errors.method_shape",
    rule="Contract, point 7: every error body has the OpenAI shape",
    why="One shape for every error means one way to show it.",
)
def method_shape(session: Session) -> None:
    """The 405's body has the error shape."""
    error_object(session.get(COMPLETIONS))
