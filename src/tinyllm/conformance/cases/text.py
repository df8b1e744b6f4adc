"""The text: a stream says what the plain answer says, and breaks no character."""

from __future__ import annotations

from tinyllm.conformance.case import RECOMMENDED, REQUIRED, case
from tinyllm.conformance.cases.stream import choices
from tinyllm.conformance.events import EventStream
from tinyllm.conformance.evidence import check
from tinyllm.conformance.session import Session

# Prompts after which a model is likely to write characters of one, two, three and four bytes.
PROMPTS = ("a", "Once upon a time", "café, déjà, naïve, é", "日本語、日本語、", "😀 😀 😀 😀 😀")
HOT = 2.0  # the highest temperature: a byte model then writes controls and broken UTF-8 too


def joined(events: EventStream) -> str:
    """Return the chunk texts, concatenated."""
    return "".join(str(choice["text"]) for _, choice in choices(events))


def same_text(session: Session, **fields: object) -> tuple[EventStream, str, str]:
    """Return one request's stream, its concatenated text, and the text of the plain answer."""
    plain = session.complete(**fields).text
    events = session.stream(**fields)
    return events, joined(events), plain


@case(
    "v0.stream.equals_nonstream",
    rule="Engine specification, section 2.4: the concatenated chunk texts equal the plain text",
    why="A client may ask either way and must get one answer.",
    openai=REQUIRED,
)
def equals_nonstream(session: Session) -> None:
    """At temperature 0, the chunk texts concatenate to the plain answer's text."""
    for prompt in session.rows(PROMPTS):
        events, streamed, plain = same_text(session, prompt=prompt, max_tokens=16, temperature=0)
        mark = events.response.body_mark()
        check(streamed == plain, f"streamed {streamed!r}, plain {plain!r}", mark)


@case(
    "v0.stream.equals_seeded",
    rule="Engine specification, sections 2.3 and 2.4: the same seed gives the same text",
    why="Sampling must not depend on the way in which the answer is sent.",
    openai=RECOMMENDED,
)
def equals_seeded(session: Session) -> None:
    """At temperature 1 and a seed, the chunk texts concatenate to the plain answer's text."""
    for seed in session.rows(range(4)):
        fields = {"prompt": "The ", "max_tokens": 24, "temperature": 1, "seed": seed}
        events, streamed, plain = same_text(session, **fields)
        mark = events.response.body_mark()
        check(streamed == plain, f"seed {seed}: streamed {streamed!r}, plain {plain!r}", mark)


@case(
    "v0.stream.whole_characters",
    rule="Engine specification, section 2.4: a stream holds back an incomplete UTF-8 sequence",
    why="Decoded token by token, every character of several bytes reaches the reader as two or"
    " three replacement characters.",
    openai=REQUIRED,
)
def whole_characters(session: Session) -> None:
    """No character is split between chunks: where the plain text has none, no chunk has U+FFFD."""
    greedy = [{"prompt": prompt, "temperature": 0} for prompt in PROMPTS]
    count = session.settings.samples // 3
    sampled = [{"prompt": "é", "temperature": HOT, "seed": seed} for seed in range(count)]
    for fields in session.rows([*greedy, *sampled]):
        events, streamed, plain = same_text(session, max_tokens=24, **fields)
        broken, honest = streamed.count("\ufffd"), plain.count("\ufffd")
        found = (p.mark for p, choice in choices(events) if "\ufffd" in str(choice["text"]))
        check(
            broken <= honest,
            f"{broken} replacement characters in the stream, {honest} in the plain text",
            next(found, None),
        )


@case(
    "v0.stream.json_text",
    rule="RFC 8259, section 7: control characters, quotes and backslashes must be escaped;"
    " section 8.1: UTF-8",
    why="A model can write any byte; a newline or NUL that is not escaped ends the client's"
    " stream with an error.",
    openai=REQUIRED,
)
def json_text(session: Session) -> None:
    """With text sampled at the highest temperature, each event is still strict JSON."""
    for seed in session.rows(range(session.settings.samples // 3)):
        events = session.stream(prompt="The ", max_tokens=64, temperature=HOT, seed=seed)
        for payload in events.chunks:
            payload.json()


@case(
    "v0.plain.json_text",
    rule="RFC 8259, section 7",
    why="A model can write any byte; one that is not escaped makes the whole answer unreadable.",
    openai=REQUIRED,
)
def plain_json_text(session: Session) -> None:
    """With text sampled at the highest temperature, the body is still strict JSON."""
    for seed in session.rows(range(session.settings.samples // 3)):
        session.complete(prompt="The ", max_tokens=64, temperature=HOT, seed=seed)
