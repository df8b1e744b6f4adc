"""The exact bytes, for a server whose model directory the runner was given."""

from __future__ import annotations

from tinyllm.conformance.case import Need, case
from tinyllm.conformance.cases.stream import choices
from tinyllm.conformance.checkpoint import Checkpoint, text_pieces
from tinyllm.conformance.evidence import CaseSkipped, check
from tinyllm.conformance.session import Session

PROMPTS = ("a", "The quick", "é", "~", "0")


def _model(session: Session) -> Checkpoint:
    if session.settings.checkpoint is None:
        raise CaseSkipped(f"needs {Need.CHECKPOINT.value}")
    return session.settings.checkpoint


def _compare(session: Session, prompt: str, temperature: float, seed: int) -> None:
    """Ask for 24 tokens, and compare the text with the checkpoint's."""
    data = _model(session).generate(prompt, 24, temperature, seed)
    fields = {"prompt": prompt, "max_tokens": 24, "temperature": temperature, "seed": seed}
    answer = session.complete(**fields)
    expected = data.decode("utf-8", "replace")
    said = f"{answer.text!r}, where the weights give {expected!r}"
    check(answer.text == expected, said, answer.response.body_mark())


@case(
    "v0.checkpoint.greedy",
    rule="Engine specification, sections 2.2 and 2.5: the logits are row prev of the weights,"
    " which lie from the start of the data buffer",
    why="Read from another offset, or by column, every answer is noise that looks like an answer.",
    need=Need.CHECKPOINT,
)
def greedy(session: Session) -> None:
    """Greedy text is what following the largest logit of each row gives."""
    for prompt in session.rows(PROMPTS):
        _compare(session, prompt, 0, 0)


@case(
    "v0.checkpoint.ties",
    rule="Engine specification, section 2.3 (decision D11): ties go to the lowest id",
    why="Two engines that break ties differently disagree on every later byte.",
    need=Need.CHECKPOINT,
)
def ties(session: Session) -> None:
    """After a byte whose row has several largest logits, the lowest such id comes."""
    tied = [chr(i) for i in _model(session).tied_bytes()]
    if not tied:
        raise CaseSkipped("no row of this checkpoint has a tie")
    for prompt in session.rows(tied[:: max(1, len(tied) // 8)]):
        data = _model(session).generate(prompt, 1, 0)
        answer = session.complete(prompt=prompt, max_tokens=1, temperature=0)
        expected = data.decode("utf-8", "replace")
        said = f"after {prompt!r} came {answer.text!r}, not {expected!r}"
        check(answer.text == expected, said, answer.response.body_mark())


@case(
    "v0.checkpoint.seeded",
    rule="Engine specification, section 2.3 (decision D10): PCG32 seeded with (seed, 54), one"
    " uniform of 53 bits per token, inverse of the cumulative distribution",
    why="One generator across languages: the same seed gives the same text in every engine.",
    need=Need.CHECKPOINT,
)
def seeded(session: Session) -> None:
    """Sampled text is, byte for byte, what the definition gives, for several temperatures."""
    settings = ((1, 42), (0.5, 7), (2, 0), (1.3, 2**64 - 1), (1e-9, 3))
    for temperature, seed in session.rows(settings):
        _compare(session, "The ", temperature, seed)


@case(
    "v0.checkpoint.chunks",
    rule="Engine specification, section 2.4: after each byte, the longest valid prefix",
    why="Text that waits longer than it must arrives late; text that comes too early is broken.",
    need=Need.CHECKPOINT,
)
def chunks(session: Session) -> None:
    """Each chunk holds the text that its byte completed, and the last one what was held back."""
    for seed in session.rows(range(3)):
        data = _model(session).generate("é", 40, 2, seed)
        events = session.stream(prompt="é", max_tokens=40, temperature=2, seed=seed)
        found = choices(events)
        for (payload, choice), expected in zip(found, text_pieces(data), strict=False):
            said = f"text {choice['text']!r}, not {expected!r}"
            check(choice["text"] == expected, said, payload.mark)
