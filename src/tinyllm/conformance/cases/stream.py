"""The stream's events: framing, the chunks in them, and how they end."""

from __future__ import annotations

from typing import Any

from tinyllm.conformance.case import REQUIRED, case
from tinyllm.conformance.events import DONE, EventStream, Payload
from tinyllm.conformance.evidence import CheckFailed, check, fail
from tinyllm.conformance.session import Session


def asked(session: Session, **fields: object) -> EventStream:
    """Return a stream of a few tokens, the same in every case of this file."""
    return session.stream(**{"prompt": "Once", "max_tokens": 5, "temperature": 0, **fields})


def chunk_objects(events: EventStream) -> list[tuple[Payload, dict[str, Any]]]:
    """Return the chunks as objects; one that is no JSON object breaks the case."""
    found = []
    for payload in events.chunks:
        value = payload.json()
        if not isinstance(value, dict):
            fail("an event's data is not a JSON object", payload.mark)
        found.append((payload, value))
    check(bool(found), "the stream holds no chunk", events.response.body_mark())
    return found


def chunk_choice(payload: Payload, value: dict[str, Any]) -> dict[str, Any] | None:
    """Return the chunk's one choice, or None for a chunk without (one that carries usage)."""
    match value.get("choices"):
        case [] if "usage" in value:
            return None
        case [{"text": str(), "finish_reason": _} as choice]:
            return dict(choice)
    raise CheckFailed("no choices with one object that holds text, finish_reason", payload.mark)


def choices(events: EventStream) -> list[tuple[Payload, dict[str, Any]]]:
    """Return every chunk's choice with its payload."""
    both = [(payload, chunk_choice(payload, value)) for payload, value in chunk_objects(events)]
    return [(payload, choice) for payload, choice in both if choice is not None]


@case(
    "v0.stream.content_type",
    rule="HTML standard, section 9.2.5: an event stream's type is text/event-stream",
    why="Clients refuse, or do not read as events, a stream of another type.",
    openai=REQUIRED,
)
def content_type(session: Session) -> None:
    """A streamed completion is text/event-stream."""
    response = asked(session).response
    mark = response.header_mark("Content-Type")
    check(response.media_type == "text/event-stream", f"type {response.media_type!r}", mark)


@case(
    "v0.stream.framing",
    rule="HTML standard, section 9.2.6: a blank line ends an event; wire specification, 2.5",
    why="With one newline after an event instead of two, every client merges the chunks into one"
    " event and finds no JSON in it.",
    openai=REQUIRED,
)
def framing(session: Session) -> None:
    """A reader that follows the standard finds one JSON object, or [DONE], in each event, and
    nothing after the last blank line.
    """
    events = asked(session)
    check(bool(events.events), "no event is ended by a blank line", events.response.body_mark())
    for event in events.events:
        mark = events.response.body_mark(event.lines[0][1], event.end)
        whole = Payload(event.data, mark, event.time)
        check(event.data == DONE or isinstance(whole.json(), dict), "not a JSON object", mark)
    check(events.rest is None, "an event that no blank line ends", events.rest)


@case(
    "v0.stream.done",
    rule="OpenAI API reference: a stream is terminated by data: [DONE]",
    why="[DONE] is how a client tells a whole stream from one that was cut off.",
    openai=REQUIRED,
)
def done(session: Session) -> None:
    """The last event is [DONE]; there is one, and nothing comes after it."""
    events = asked(session)
    payloads = events.payloads
    at = [index for index, payload in enumerate(payloads) if payload.text == DONE]
    end = events.response.exchange.mark(len(events.response.exchange.received))
    check(bool(at), "the stream ended without data: [DONE]", end)
    check(len(at) == 1, f"{len(at)} times [DONE]", payloads[at[-1]].mark)
    last = payloads[-1]
    check(at[0] == len(payloads) - 1, "an event after [DONE]", last.mark)


@case(
    "v0.stream.chunk_shape",
    rule="OpenAI API reference: streamed and plain completions share one shape",
    why="Client libraries read each chunk as a completion object.",
    openai=REQUIRED,
)
def chunk_shape(session: Session) -> None:
    """Each chunk has id, object text_completion, created, model and one choice whose text is a
    string and whose finish_reason is null or a string.
    """
    for payload, value in chunk_objects(asked(session)):
        good = isinstance(value.get("id"), str) and value.get("object") == "text_completion"
        check(good, "id is no string, or object is not text_completion", payload.mark)
        typed = isinstance(value.get("created"), int) and isinstance(value.get("model"), str)
        check(typed, "created is no integer, or model no string", payload.mark)
        choice = chunk_choice(payload, value)
        reason = choice["finish_reason"] if choice else None
        check(reason is None or isinstance(reason, str), f"finish_reason {reason!r}", payload.mark)
        check(choice is None or choice.get("index") == 0, "index is not 0", payload.mark)


@case(
    "v0.stream.same_id",
    rule="Engine specification, section 2.7: all chunks have the same id; OpenAI API reference",
    why="Clients join chunks to a completion by id; one that changes looks like many completions.",
    openai=REQUIRED,
)
def same_id(session: Session) -> None:
    """All chunks of a stream have one id."""
    chunks = chunk_objects(asked(session))
    first = chunks[0][1].get("id")
    for payload, value in chunks:
        changed = value.get("id")
        check(changed == first, f"id {changed!r} after {first!r}", payload.mark)


@case(
    "v0.stream.ids_differ",
    rule="OpenAI API reference: id is unique",
    why="Two streams of one id cannot be told apart in a log.",
)
def ids_differ(session: Session) -> None:
    """Two streams have two ids."""
    first, second = (chunk_objects(asked(session, max_tokens=1)) for _ in range(2))
    check(first[0][1].get("id") != second[0][1].get("id"), "one id twice", second[0][0].mark)


@case(
    "v0.stream.finish_reason",
    rule="Engine specification, section 2.7: finish_reason is null until the last chunk",
    why="A client takes the first finish_reason as the end: text after it is lost, and without"
    " one it waits.",
    openai=REQUIRED,
)
def finish_reason(session: Session) -> None:
    """Exactly one chunk has a finish_reason, and it is the last one with a choice."""
    found = choices(asked(session))
    ends = [payload for payload, choice in found if choice["finish_reason"] is not None]
    check(bool(ends), "no chunk has a finish_reason", found[-1][0].mark)
    check(len(ends) == 1, f"{len(ends)} chunks have a finish_reason", ends[-1].mark)
    last = found[-1][0]
    check(ends[0] is last, "a chunk with text after the finish_reason", last.mark)


@case(
    "v0.stream.error_not_done",
    rule="Contract, point 14: no [DONE] after an error event: [DONE] means the stream is whole",
    why="A client that sees [DONE] takes a broken answer for a whole one.",
    openai=REQUIRED,
)
def error_not_done(session: Session) -> None:
    """A stream that carries an error event does not end with [DONE] (seen only if one does)."""
    events = asked(session, max_tokens=16)
    payloads = events.payloads
    errors = [p for p in payloads if p.text.startswith("{") and '"error"' in p.text]
    told = [p for p in errors if isinstance(value := p.json(), dict) and value.get("error")]
    done_too = bool(payloads) and payloads[-1].text == DONE
    check(not told or not done_too, "[DONE] after an error", told[0].mark if told else None)
