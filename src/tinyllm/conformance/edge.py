"""What the two servers have in common at their edge, and where they differ.

The engine and the `wire` server share one HTTP parser, so the cases about HTTP are written once
and run against both: against a path to GET, a path to POST a small JSON body to, and a table of
the statuses in which the two differ (contract, point 2).
"""

from __future__ import annotations

from dataclasses import dataclass

from tinyllm.conformance.case import Suite
from tinyllm.conformance.session import COMPLETIONS, Session


@dataclass(frozen=True, slots=True)
class Edge:
    """A server's paths and the statuses that are its own."""

    get_path: str
    post_path: str
    head_too_large: int
    transfer_coding: int


_EDGES = {
    Suite.ENGINE: Edge("/healthz", COMPLETIONS, head_too_large=431, transfer_coding=501),
    Suite.WIRE: Edge("/health", "/echo", head_too_large=413, transfer_coding=400),
}


def edge_of(session: Session) -> Edge:
    """Return the edge of the server that is graded."""
    return _EDGES[session.settings.suite]


def small_body(session: Session) -> bytes:
    """Return a body that the POST path answers with 200, quickly."""
    if session.settings.suite is Suite.WIRE:
        return b'{"text":"h\xc3\xa9"}'
    return session.completion_body(prompt="hé", max_tokens=2, temperature=0)


def small_post(session: Session, connection: str | None = "close") -> bytes:
    """Return a whole POST request that is answered with 200."""
    path = edge_of(session).post_path
    return session.request("POST", path, small_body(session), connection=connection)
