"""The usage object: what a bill is computed from."""

from __future__ import annotations

from tinyllm.conformance.case import REQUIRED, case
from tinyllm.conformance.evidence import check
from tinyllm.conformance.session import OMIT, Completion, Session

COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")


def counts(answer: Completion) -> tuple[int, int, int]:
    """Return the three counts; one that is no count breaks the case."""
    usage, mark = answer.usage, answer.response.body_mark()
    for name in COUNTS:
        value = usage.get(name)
        good = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        check(good, f"usage.{name} is {value!r}, not a count", mark)
    return usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]


@case(
    "v0.usage.adds_up",
    rule="OpenAI API reference, usage: total tokens are prompt plus completion tokens",
    why="A gateway's ledger bills from these three numbers.",
    openai=REQUIRED,
)
def adds_up(session: Session) -> None:
    """The three counts are integers, and the first two add up to the third."""
    answer = session.complete(prompt="Once upon a time", max_tokens=5, temperature=0)
    prompt, completion, total = counts(answer)
    mark = answer.response.body_mark()
    check(prompt + completion == total, f"{prompt} + {completion} is not {total}", mark)
    check(prompt > 0, "a prompt of 16 characters counts as no token", mark)


@case(
    "v0.usage.max_tokens",
    rule="OpenAI API reference: max_tokens is the most tokens that may be generated",
    why="max_tokens is the caller's budget; finish_reason tells whether it ran out.",
    openai=REQUIRED,
)
def max_tokens(session: Session) -> None:
    """No more than max_tokens are generated; "length" is said exactly when all were used."""
    for limit in session.rows((1, 2, 7)):
        answer = session.complete(prompt="Once upon a time", max_tokens=limit, temperature=0)
        _, completion, _ = counts(answer)
        mark = answer.response.body_mark()
        check(completion <= limit, f"{completion} tokens where {limit} were allowed", mark)
        cut = answer.finish_reason == "length"
        check(not cut or completion == limit, f"cut off after {completion} of {limit}", mark)


@case(
    "v0.usage.bytes",
    rule="Engine specification, section 2.7: prompt_tokens is the prompt's byte length",
    why="Counted in characters, usage disagrees with the byte tokenizer and with the bill.",
)
def counts_bytes(session: Session) -> None:
    """`héllo` is 6 tokens, not 5 characters; with 4 more, 10 in all; an emoji is 4."""
    for prompt, length in session.rows((("héllo", 6), ("😀", 4), ("a", 1))):
        answer = session.complete(prompt=prompt, max_tokens=4, temperature=0)
        got, expected = counts(answer), (length, 4, length + 4)
        mark = answer.response.body_mark()
        check(got == expected, f"usage of {prompt!r} is {got}, not {expected}", mark)


@case(
    "v0.usage.default_length",
    rule="Engine specification, section 2.7: max_tokens defaults to 16",
    why="A caller who gives no limit gets an answer of the documented length, not an endless one.",
)
def default_length(session: Session) -> None:
    """Without max_tokens, 16 tokens are generated."""
    answer = session.complete(max_tokens=OMIT)
    _, completion, _ = counts(answer)
    check(completion == 16, f"{completion} tokens, not 16", answer.response.body_mark())


@case(
    "v0.usage.longest",
    rule="Engine specification, section 2.7: max_tokens is at most 4096",
    why="A limit of less than what is promised cuts long answers short.",
)
def longest(session: Session) -> None:
    """max_tokens 4096 gives 4096 tokens."""
    answer = session.complete(max_tokens=4096, temperature=0)
    _, completion, _ = counts(answer)
    check(completion == 4096, f"{completion} tokens, not 4096", answer.response.body_mark())
