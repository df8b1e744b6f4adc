"""Seeds and temperature, as far as they show without knowing the model."""

from __future__ import annotations

from collections import Counter

from tinyllm.conformance.case import RECOMMENDED, case
from tinyllm.conformance.evidence import check
from tinyllm.conformance.session import Completion, Session

COLD, HOT = 0.1, 2.0


@case(
    "v0.greedy.repeatable",
    rule="Engine specification, section 2.3: greedy text is a function of the weights alone",
    why="Tests, caches and comparisons of models rest on temperature 0 meaning one answer.",
    openai=RECOMMENDED,
)
def repeatable(session: Session) -> None:
    """At temperature 0, three requests get one text, whatever the seed."""
    seen: list[Completion] = []
    for seed in session.times(3):
        fields = {"prompt": "The quick", "max_tokens": 16, "temperature": 0, "seed": seed}
        seen.append(session.complete(**fields))
        text, mark = seen[-1].text, seen[-1].response.body_mark()
        check(text == seen[0].text, f"{text!r} after {seen[0].text!r}", mark)


@case(
    "v0.seed",
    rule="Engine specification, section 2.3: the same seed on the same engine, the same text",
    why="A seed is how a sampled answer is reproduced in a bug report or an evaluation.",
    openai=RECOMMENDED,
)
def seed(session: Session) -> None:
    """Each of four seeds gives one text twice, and not all seeds give the same."""
    texts = set()
    for number in (0, 1, *session.rows((54, 2**53 + 1))):
        first, second = (_sampled(session, seed=number) for _ in range(2))
        mark = second.response.body_mark()
        check(first.text == second.text, f"seed {number}: {second.text!r}, {first.text!r}", mark)
        texts.add(first.text)
    check(len(texts) > 1, "all seeds gave one text at temperature 2", mark)


@case(
    "v0.seed.absent",
    rule="Engine specification, section 2.3: without a seed it picks one at random",
    why="An engine that always picks the same seed gives every user the same answer.",
    openai=RECOMMENDED,
)
def no_seed(session: Session) -> None:
    """Without a seed, eight requests at temperature 2 do not all get one text."""
    answers = [_sampled(session) for _ in session.times(8)]
    texts = {answer.text for answer in answers}
    check(len(texts) > 1, f"{len(answers)} requests, one text", answers[-1].response.body_mark())


@case(
    "v0.temperature",
    rule="Engine specification, section 2.3: the logits are divided by the temperature",
    why="Multiplied instead, a careful setting gives noise and a bold one repeats itself.",
    openai=RECOMMENDED,
)
def temperature(session: Session) -> None:
    """Over many seeds, the commonest first token is no rarer at temperature 0.1 than at 2."""
    cold, hot = (_commonest(session, value) for value in (COLD, HOT))
    samples = len(session.times(session.settings.samples))
    slack = samples // 5
    last = session.exchanges[-1].mark(0)
    check(
        cold + slack >= hot,
        f"of {samples} answers, {cold} are alike at {COLD} and {hot} at {HOT}",
        last,
    )


def _sampled(session: Session, **fields: object) -> Completion:
    return session.complete(prompt="The ", max_tokens=16, temperature=HOT, **fields)


def _commonest(session: Session, value: float) -> int:
    """Return how often the commonest text of one token comes at this temperature."""
    texts = Counter(
        session.complete(prompt="e", max_tokens=1, temperature=value, seed=seed).text
        for seed in session.times(session.settings.samples)
    )
    return max(texts.values())
