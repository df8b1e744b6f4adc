"""Raw requests of public test suites: what the parser says of each, however the bytes are cut."""

from __future__ import annotations

import base64
import io
from typing import Any

import pytest

from support import wiredata
from tinyllm.wire import HttpError, Request, RequestParser, read_request
from tinyllm.wire.session import WIRE_STATUS

CASES = wiredata.load("http_requests.json")


def outcome(pieces: list[bytes]) -> Request | tuple[int, str]:
    """Feed the pieces and the end; return the first request, or the error's status and message."""
    parser = RequestParser()
    try:
        for piece in [*pieces, b""]:
            parser.feed(piece)
            request = parser.next_request()
            if request is not None:
                return request
    except HttpError as error:
        return error.status, error.message
    raise AssertionError("more bytes wanted after the end of the stream")


def read_blocking(data: bytes) -> Request | tuple[int, str]:
    try:
        return read_request(io.BytesIO(data))
    except HttpError as error:
        return error.status, error.message


def as_corpus(result: Request | tuple[int, str]) -> dict[str, Any]:
    """Return an outcome in the corpus's own form of an expectation."""
    if not isinstance(result, Request):
        return {"status": result[0]}
    return {
        "ok": {
            "method": result.method,
            "target": result.target,
            "headers": [list(header) for header in result.headers],
            "body_base64": base64.b64encode(result.body).decode(),
        }
    }


def is_expected(found: dict[str, Any], expectation: dict[str, Any] | None) -> bool:
    if expectation is None:
        return False
    if "ok" in found:
        return found == expectation
    return found["status"] in expectation.get("status", [])


@pytest.mark.parametrize("case", wiredata.rows(CASES))
def test_corpus_request_gives_what_the_standards_say(case: wiredata.Case) -> None:
    found = as_corpus(outcome([wiredata.raw(case)]))
    assert is_expected(found, case["expect"]) or is_expected(found, case.get("also_allowed"))
    if "status" in found:  # the wire server has fewer statuses
        found["status"] = WIRE_STATUS.get(found["status"], found["status"])
    expectation = case.get("expect_wire", case["expect"])
    assert is_expected(found, expectation) or is_expected(found, case.get("also_allowed"))


@pytest.mark.parametrize("case", wiredata.rows(CASES))
def test_corpus_request_is_the_same_however_it_is_cut_and_read(case: wiredata.Case) -> None:
    data = wiredata.raw(case)
    whole = outcome([data])
    assert outcome(wiredata.single_bytes(data)) == whole
    for pieces in wiredata.cuts_in_two(data):
        assert outcome(pieces) == whole
    assert read_blocking(data) == whole


def test_corpus_is_whole() -> None:
    assert len(CASES) == 249


# Where the corpus allows more than one answer, CONTRACT and this table decide.
@pytest.mark.parametrize(
    ("name", "status"),
    [
        # Point 1, and RFC 9112, section 6.3: one Content-Length, one number.
        ("own-cl-identical-twice", 400),
        ("own-cl-list-identical", 400),
        ("own-cl-5000-digits", 413),
        # Point 1: Content-Length and Transfer-Encoding together; point 2: the latter alone.
        ("aiohttp-cl-and-unknown-te", 400),
        ("garden-te-quoted", 501),
        ("desync-ambi-transfer-encoding-for-http-1-0", 501),
        # Point 1: strict line ends, request lines, targets and versions.
        ("httparse-test-request-newlines", 400),
        ("own-tab-separated-request-line", 400),
        ("own-version-1-1-trailing-space", 400),
        ("own-version-3-0", 400),
        ("h11-ee-in-target", 400),
        ("aiohttp-authority-form-with-get", 400),
        ("llhttp-method-pri-request-http2", 400),
        ("h11-ctl-01-in-cookie-value", 400),
        ("h11-fold-several", 400),
        # RFC 9110, section 9.3.6: CONNECT without a port must be refused.
        ("aiohttp-connect-no-port", 400),
        # Point 3: nobody is left to answer.
        ("own-only-crlf", 0),
        ("own-body-shorter-than-length", 0),
        ("own-socks5-greeting", 0),
        # RFC 9112, section 2.2: empty lines are skipped, but not without end.
        ("own-empty-lines-20000-bytes", 400),
        # Point 2: the cap is passed before the stream ends.
        ("own-head-without-end-20000-bytes", 431),
        ("own-request-line-without-end-40000", 431),
    ],
)
def test_where_the_corpus_is_soft_the_contract_decides(name: str, status: int) -> None:
    case = next(case for case in CASES if case["name"] == name)
    assert as_corpus(outcome([wiredata.raw(case)])) == {"status": status}
