"""POST /echo: JSON in, the same text and its length in bytes out."""

from __future__ import annotations

import json

from tinyllm.conformance.case import case
from tinyllm.conformance.cases.plain import ends_exactly
from tinyllm.conformance.cases.wire_routes import expect_json_error
from tinyllm.conformance.evidence import check
from tinyllm.conformance.session import Session

TEXTS = (
    "hé",
    "",
    'quote " backslash \\ slash /',
    "newline \n tab \t return \r",
    "controls \x00\x01\x1f\x7f",
    "日本語 😀 \u2028\u2029\ufeff\uffff",
)
ESCAPES = (
    ('"\\u00e9"', "é"),
    ('"\\ud83d\\ude00"', "😀"),
    ('"\\uD83D\\uDE00"', "😀"),
    ('"a\\/b\\b\\f\\n\\r\\t\\"\\\\"', 'a/b\b\f\n\r\t"\\'),
    ('"\\u0000"', "\x00"),
)
BAD_BODIES = (
    b"",
    b"{",
    b'{"text":}',
    b'{"text":"a",}',
    b'{"text":"a"} x',
    b"{'text':'a'}",
    b'{"text":"\n"}',
    b'{"text":"\\ud83d"}',
    b'{"text":"\\ude00\\ud83d"}',
    b'{"text":"\\u12"}',
    b'{"text":"\\x41"}',
    b'{"text":"\xff"}',
    b'{"text":NaN}',
    b'{"text":01}',
    b"[" * 10000,
)
WRONG_VALUES = (b"null", b"[]", b"{}", b'"text"', b'{"text":1}', b'{"text":null}', b'{"Text":"a"}')


def _echo(session: Session, body: bytes, text: str) -> None:
    """Post a body and expect the text and its length in bytes back, framed by that length."""
    response = session.send(session.request("POST", "/echo", body))
    check(response.status == 200, f"status {response.status} for {body!r}", response.status_line)
    expected = {"text": text, "bytes": len(text.encode())}
    got = response.json()
    check(got == expected, f"{got!r}, not {expected!r}", response.body_mark())


@case(
    "wire.echo.text",
    rule="Wire specification, section 2.4 and test_echo_round_trips_json_text",
    why="Generated text can contain any byte; written without escapes, a quote ends the document.",
)
def echo_text(session: Session) -> None:
    """Quotes, backslashes, controls and every plane of Unicode come back, with their length."""
    for text in session.rows(TEXTS):
        _echo(session, json.dumps({"text": text}, ensure_ascii=False).encode(), text)


@case(
    "wire.echo.escapes",
    rule="RFC 8259, section 7; test_json_unicode_escapes_and_surrogate_pairs",
    why="Prompts arrive from JSON clients with any escapes; half a pair is no character.",
)
def echo_escapes(session: Session) -> None:
    """Escapes are read: two for a character beyond U+FFFF, and the short ones."""
    for spelled, text in session.rows(ESCAPES):
        _echo(session, b'{"text":' + spelled.encode() + b"}", text)


@case(
    "wire.echo.members",
    rule="Wire specification, section 4: a JSON object holding a string text",
    why="A client may send more than this server knows.",
)
def echo_members(session: Session) -> None:
    """Other members, nesting and white space around do not matter."""
    body = b' {"a":[1,{"b":null}], "text" : "x" ,"n":-2.5e1, "t":true}\r\n'
    _echo(session, body, "x")


@case(
    "wire.echo.content_length",
    rule="RFC 9110, section 8.6: Content-Length counts octets",
    why="Counted in characters, the answer is cut off and the client's JSON reader fails.",
)
def echo_content_length(session: Session) -> None:
    """The worked example: 24 bytes for hé, and nothing after them."""
    response = ends_exactly(session, session.request("POST", "/echo", '{"text":"hé"}'.encode()))
    length, mark = response.header("Content-Length"), response.header_mark("Content-Length")
    check(length == "24", f"Content-Length {length!r}, not 24", mark)
    expected = '{"text":"hé","bytes":3}'.encode()
    check(bytes(response.body) == expected, f"not {expected!r}", response.body_mark())


@case(
    "wire.echo.bad_json",
    rule="RFC 8259; test_bad_json_is_a_400_with_a_json_error",
    why="A body that is no JSON is answered, not dropped, and never brings the server down.",
)
def bad_json(session: Session) -> None:
    """Texts that are no JSON, ten thousand [ among them, are 400 with a JSON error."""
    for body in session.rows(BAD_BODIES):
        expect_json_error(session.send(session.request("POST", "/echo", body)), 400)


@case(
    "wire.echo.wrong_value",
    rule="Wire specification, section 4: a body that is not that JSON is 400",
    why="A missing text is the caller's mistake and is said so.",
)
def wrong_value(session: Session) -> None:
    """JSON without a string named text is 400 with a JSON error."""
    for body in session.rows(WRONG_VALUES):
        expect_json_error(session.send(session.request("POST", "/echo", body)), 400)
