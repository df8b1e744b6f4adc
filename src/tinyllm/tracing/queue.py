"""Spans that wait to be exported: packed, counted, bounded.

A span is packed when its request ends, while its facts are in the processor's cache, with those of
the requests that end together with it; from then on it is some hundred bytes. Spans that wait as
objects cost whoever comes after them their memory in that cache: 2 to 3 us each on the event loop,
1 us in the exporter's process.
"""

from __future__ import annotations

import marshal
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from tinyllm.tracing.completion import CompletionSpan, Facts, bounded

SPANS_PER_GROUP: Final = 16  # at most: about what ends in one round of a busy event loop
# A span's, packed as it is; of larger ones the texts are cut, since they may wait in memory.
MAX_UNCUT_BYTES: Final = 1024
# Newer versions look each object up among those before it: on a busy loop 4 us a span, not 2.
WITHOUT_REFERENCES: Final = 2

Group = tuple[int, bytes]  # how many spans, and they, as `pack_spans` packs them


def pack_spans(spans: Sequence[Facts]) -> bytes:
    """Return the facts of some spans as bytes, long texts that a client chose cut.

    Raises ValueError for a fact of a type that CompletionSpan does not have.
    """
    plain = [facts.plain() if isinstance(facts, CompletionSpan) else facts for facts in spans]
    packed = marshal.dumps(plain, WITHOUT_REFERENCES)
    if len(packed) > MAX_UNCUT_BYTES * len(plain):
        packed = marshal.dumps(list(map(bounded, plain)), WITHOUT_REFERENCES)
    return packed


def unpack_spans(packed: bytes) -> list[Facts]:
    """Return the facts that `pack_spans` was given, without names."""
    facts: list[Facts] = marshal.loads(packed)
    return facts


class SpanQueue:
    """Takes spans from one thread and gives them, in order, to one other at a time.

    Its length is the number of spans that wait.
    """

    def __init__(self, limit: int, group: int = SPANS_PER_GROUP) -> None:
        """Hold at most `limit` spans, in groups of at most `group`."""
        self._limit = limit  # 0 once closed
        self._group = group
        self._groups: deque[Group] = deque()
        self._put = 0  # spans, by the thread that puts them
        self._taken = 0  # spans, by the one that takes them
        self.overflow = 0  # spans that found no room

    def __len__(self) -> int:
        return self._put - self._taken

    @property
    def closed(self) -> bool:
        """Whether whatever is put from now on is lost."""
        return self._limit == 0

    def close(self) -> None:
        """Take no more."""
        self._limit = 0

    def put(self, spans: Sequence[Facts]) -> None:
        """Pack spans, as many as there is room for.

        Raises ValueError, and takes none, for a fact of a type that CompletionSpan does not have.
        """
        room = max(self._limit - len(self), 0)
        kept = spans[:room]
        parts = [kept[i : i + self._group] for i in range(0, len(kept), self._group)]
        self.put_groups([(len(part), pack_spans(part)) for part in parts])
        self.overflow += len(spans) - len(kept)

    def put_groups(self, groups: Iterable[Group]) -> None:
        """Take groups of another queue, those that there is room for."""
        for group in groups:
            if len(self) + group[0] > self._limit:
                self.overflow += group[0]
            else:
                self._put += group[0]  # first: a length is never below zero
                self._groups.append(group)

    def take(self, most: int) -> list[Group]:
        """Return the oldest groups with at most `most` spans, no fewer than a group may have."""
        groups: list[Group] = []
        spans = 0
        while self._groups and spans + self._groups[0][0] <= most:
            groups.append(self._groups.popleft())
            spans += groups[-1][0]
        self._taken += spans
        return groups
