"""A case: one rule that a server keeps or breaks, as a small function with a name.

The registry is filled by the decorator, so the list that `--list` prints, the pages in the docs
and what runs are one thing. A case has a level in each profile that contains it:

- profile `tinyllm` holds all that the v0 contract promises;
- profile `openai` holds what clients of the public API rely on, whoever wrote the server.

Only a broken `required` case makes the run fail.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tinyllm.conformance.session import Session


class Level(Enum):
    """How much a broken case matters."""

    REQUIRED = "required"
    RECOMMENDED = "recommended"
    INFORMATIVE = "informative"


class Profile(Enum):
    """Which promises a server is held to."""

    TINYLLM = "tinyllm"
    OPENAI = "openai"


class Suite(Enum):
    """Which server is graded: the engine's API, or the wire layer's own small server."""

    ENGINE = "openapi:v0:engine"
    WIRE = "wire"


class Need(Enum):
    """What a case needs besides the server; without it the case is skipped."""

    CHECKPOINT = "--checkpoint, the model directory that the server serves"
    COLLECTOR = "--otlp-port, where the server exports its spans to"
    SLOW = "--slow: it waits for the server's own deadlines"
    HEALTH = "--health-url"


REQUIRED, RECOMMENDED, INFORMATIVE = Level


@dataclass(frozen=True, slots=True)
class Case:
    """One rule, where it is written, why it matters, and the function that tries it."""

    id: str
    rule: str
    why: str
    run: Callable[[Session], None]
    summary: str
    levels: dict[Profile, Level]
    need: Need | None = None

    @property
    def suite(self) -> Suite:
        """The suite, which the id's first word names."""
        return Suite.WIRE if self.id.startswith("wire.") else Suite.ENGINE


_registry: dict[str, Case] = {}


def register(new: Case) -> None:
    """Add a case; two cases of one id are a mistake in the suite itself."""
    if new.id in _registry:
        raise ValueError(f"two cases are called {new.id}")
    _registry[new.id] = new


def case(
    *ids: str,
    rule: str,
    why: str,
    tinyllm: Level = REQUIRED,
    openai: Level | None = None,
    need: Need | None = None,
) -> Callable[[Callable[[Session], None]], Callable[[Session], None]]:
    """Register a function as a case, under one id per suite that it belongs to.

    Its docstring says what is tried. `openai` is its level there; None: only ours promises it.
    """

    def add(run: Callable[[Session], None]) -> Callable[[Session], None]:
        levels = {Profile.TINYLLM: tinyllm} | ({Profile.OPENAI: openai} if openai else {})
        for name in ids:
            summary = " ".join((run.__doc__ or "").split())
            register(Case(name, rule, why, run, summary, levels, need))
        return run

    return add


def all_cases() -> list[Case]:
    """Return every case, in the order of the files that define them."""
    from tinyllm.conformance import cases

    cases.load()
    return list(_registry.values())


def select(
    suite: Suite, profile: Profile, only: Sequence[str] = (), skip: Sequence[str] = ()
) -> list[Case]:
    """Return the cases of a suite and profile whose ids match; globs as in a shell."""

    def matches(name: str, globs: Sequence[str]) -> bool:
        return any(fnmatch.fnmatchcase(name, glob) for glob in globs)

    return [
        found
        for found in all_cases()
        if found.suite is suite
        and profile in found.levels
        and (not only or matches(found.id, only))
        and not matches(found.id, skip)
    ]
