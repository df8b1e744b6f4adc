"""JSON bodies: what must be read, what must be refused, and what must not bring the server down."""

from __future__ import annotations

from tinyllm.conformance.case import REQUIRED, case
from tinyllm.conformance.cases.errors import expect_error
from tinyllm.conformance.cases.usage import counts
from tinyllm.conformance.evidence import check
from tinyllm.conformance.session import Session, read_completion

GOOD = b'{"model":"m","prompt":"a","max_tokens":1}'

NOT_JSON = {
    "an empty body": b"",
    "spaces only": b"  ",
    "a trailing comma": b'{"model":"m","prompt":"a",}',
    "two objects": GOOD + GOOD,
    "a byte after the object": GOOD + b"x",
    "a NUL after the object": GOOD + b"\x00",
    "single quotes": b"{'model':'m','prompt':'a'}",
    "a raw newline in a string": b'{"model":"m","prompt":"a\n"}',
    "NaN": b'{"model":"m","prompt":"a","temperature":NaN}',
    "Infinity": b'{"model":"m","prompt":"a","temperature":-Infinity}',
    "a leading zero": b'{"model":"m","prompt":"a","max_tokens":01}',
    "half of a surrogate pair": b'{"model":"m","prompt":"\\ud83d"}',
    "a surrogate pair in reverse": b'{"model":"m","prompt":"\\ude00\\ud83d"}',
    "bytes that are not UTF-8": b'{"model":"m","prompt":"\xff"}',
    "an overlong form": b'{"model":"m","prompt":"\xc0\xaf"}',
    "a byte order mark": b"\xef\xbb\xbf" + GOOD,
    "UTF-16": GOOD.decode().encode("utf-16-le"),
    "a form, not JSON": b"model=m&prompt=a",
}
ESCAPES = (("😀", "\\ud83d\\ude00"), ("é/", "\\u00e9\\/"), ('"\n', '\\"\\u000A'))
NOT_OBJECTS = {
    "null": b"null",
    "an array": b"[" + GOOD + b"]",
    "a number": b"1",
    "a string": b'"a"',
}


@case(
    "v0.json.refused",
    rule="RFC 8259; contract, point 9: no NaN, no lone surrogate, no BOM, one value alone",
    why="What one reader lets pass and another refuses is where two services disagree about a"
    " request.",
)
def refused(session: Session) -> None:
    """Texts that are not JSON are 400, with param null."""
    for name, body in session.rows(NOT_JSON.items()):
        _refused(session, name, body)


@case(
    "v0.json.not_object",
    rule="Contract, point 12: a body that is no JSON object has param null",
    why="An array or a string has no fields to name.",
)
def not_object(session: Session) -> None:
    """JSON that is no object is 400, with param null."""
    for name, body in session.rows(NOT_OBJECTS.items()):
        _refused(session, name, body)


def _refused(session: Session, name: str, body: bytes) -> None:
    response = session.post(body)
    check(
        response.status == 400, f"{name}: status {response.status}, not 400", response.status_line
    )
    expect_error(response, 400)


@case(
    "v0.json.depth",
    rule="Wire specification, section 2.4: ten thousand [ cannot exhaust the stack",
    why="A deep text that overflows a recursive reader takes the whole server down.",
    openai=REQUIRED,
)
def depth(session: Session) -> None:
    """A body of 10000 nested arrays gets a 4xx, and the server still answers."""
    response = session.post(b"[" * 10000)
    check(400 <= response.status < 500, f"status {response.status}, not 4xx", response.status_line)
    inner = b'{"model":"m","prompt":' + b'{"a":' * 10000 + b"1" + b"}" * 10000 + b"}"
    response = session.post(inner)
    check(400 <= response.status < 500, f"status {response.status}, not 4xx", response.status_line)
    session.complete(max_tokens=1)


@case(
    "v0.json.escapes",
    rule="RFC 8259, section 7: any character may be escaped; two escapes make a surrogate pair",
    why="Clients in many languages send non-ASCII prompts as \\u escapes.",
    openai=REQUIRED,
)
def escapes(session: Session) -> None:
    """A prompt spelled with escapes is the prompt spelled raw: as many tokens, and in `tinyllm`
    the same greedy text.
    """
    for raw, spelled in session.rows(ESCAPES):
        plain = session.complete(prompt=raw, max_tokens=4, temperature=0)
        body = session.completion_body(prompt="@", max_tokens=4, temperature=0)
        other = read_completion(session.post(body.replace(b"@", spelled.encode())))
        mark, said = other.response.body_mark(), f"{spelled} and {raw!r} are not the same prompt"
        check(counts(plain)[0] == counts(other)[0], said, mark)
        check(plain.text == other.text or not session.repeats_itself, said, mark)


@case(
    "v0.json.white_space",
    rule="RFC 8259, section 2: white space may surround every token",
    why="Pretty-printed requests are as good as any.",
    openai=REQUIRED,
)
def white_space(session: Session) -> None:
    """Spaces, tabs and newlines around the tokens change nothing."""
    body = session.completion_body(max_tokens=1)
    spaced = b" \r\n\t" + body.replace(b": ", b" \n:\t ").replace(b", ", b"\r\n,  ") + b"\n\n"
    read_completion(session.post(spaced))


@case(
    "v0.json.last_member",
    rule="Contract, point 9: the last of two equal keys wins in a request body",
    why="RFC 8259 leaves it open; a fixed choice keeps two services in agreement.",
)
def last_member(session: Session) -> None:
    """Of two members named max_tokens the last one counts."""
    body = session.completion_body(max_tokens=1).replace(b"{", b'{"max_tokens": "no", ', 1)
    _, completion, _ = counts(answer := read_completion(session.post(body)))
    check(completion == 1, f"{completion} tokens, not 1", answer.response.body_mark())
