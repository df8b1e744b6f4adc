"""Ways to choose tokens from known rows: what `TokenSampler.take` does, beside what was dropped.

All contenders get the same rows (default model, temperature 1), the same 2048 uniforms and give
the same tokens. Making the uniforms is not counted.

    python -m benchmarks.sampling_alternatives
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import accumulate
from operator import getitem, itemgetter
from typing import Any

import numpy as np
from benchmarks.bench_decoding import per_unit, trained_model

from tinyllm.decoding.distribution import cumulative, softmax
from tinyllm.decoding.pcg32 import Pcg32
from tinyllm.decoding.rows import SamplerCache
from tinyllm.model.bigram import Bigram

COUNT = 2048
START = 97


class Contenders:
    """The rows in each contender's form, and the contenders."""

    def __init__(self, model: Bigram) -> None:
        _, self.lead, self.uniforms = Pcg32(7).block(COUNT)
        rows = SamplerCache(model).rows(1.0)
        self.sums = [cumulative(softmax(model.logits(state), 1.0)) for state in range(256)]
        self.arrays = [array("d", row) for row in self.sums]
        self.matrix = np.array(self.sums)
        for state in range(256):
            rows.guided[state]  # makes its guide
        self.rows = rows
        self.linked = self.linked_rows(rows.guide)

    def linked_rows(self, guides: list[list[int]]) -> list[list[Any]]:
        """Guides that hold the next state's guide in place of its id, and their own id last."""
        linked: list[list[Any]] = [[None] * 256 + [state] for state in range(256)]
        for state, guide in enumerate(guides):
            linked[state][:256] = [linked[known] if known >= 0 else None for known in guide]
        return linked

    def search(self) -> list[int]:
        """A binary search in a list; a loop that appends."""
        sums, state, tokens = self.sums, START, []
        for u in self.uniforms:
            state = bisect_right(sums[state], u)
            tokens.append(state)
        return tokens

    def search_comprehension(self) -> list[int]:
        """The same as a comprehension."""
        sums, state = self.sums, START
        return [state := bisect_right(sums[state], u) for u in self.uniforms]

    def search_accumulate(self) -> list[int]:
        """The same with itertools.accumulate and a lambda."""
        sums = self.sums
        steps = accumulate(
            self.uniforms, lambda state, u: bisect_right(sums[state], u), initial=START
        )
        return list(steps)[1:]

    def search_array(self) -> list[int]:
        """Rows of a quarter the size: array('d') makes a float for each comparison."""
        arrays, state, tokens = self.arrays, START, []
        for u in self.uniforms:
            state = bisect_right(arrays[state], u)
            tokens.append(state)
        return tokens

    def search_numpy(self) -> list[int]:
        """A call into numpy for each token."""
        matrix, state, tokens = self.matrix, START, []
        for u in self.uniforms:
            state = int(matrix[state].searchsorted(u, "right"))
            tokens.append(state)
        return tokens

    def guide(self) -> list[int]:
        """What is kept: a table first, a search where it has no answer."""
        guide, guided, state = self.rows.guide, self.rows.guided, START
        tokens: list[int] = []
        for k in self.lead:
            token_id = guide[state][k]
            if token_id < 0:
                token_id = bisect_right(guided[state], self.uniforms[len(tokens)])
            tokens.append(token_id)
            state = token_id
        return tokens

    def linked_guide(self) -> list[int]:
        """Tables of tables, walked in C; an exception where a table has no answer."""
        leads, token = iter(self.lead), itemgetter(256)
        tokens: list[int] = []
        row = self.linked[START]
        while True:
            try:
                tokens += map(token, accumulate(leads, getitem, initial=row))
            except TypeError:
                state = bisect_right(self.sums[tokens[-1]], self.uniforms[len(tokens) - 1])
                row = self.linked[state]
            else:
                return tokens[1:]


def main() -> None:
    with trained_model() as folder:
        all_of_them = Contenders(Bigram.load(folder))
    contenders = {
        "list, bisect, append (kept for rows in light use)": all_of_them.search,
        "list, bisect, comprehension": all_of_them.search_comprehension,
        "list, bisect, accumulate and a lambda": all_of_them.search_accumulate,
        "array('d'), bisect, append": all_of_them.search_array,
        "numpy searchsorted": all_of_them.search_numpy,
        "guide, then bisect (kept for heavy use)": all_of_them.guide,
        "linked guides, accumulate and operator.getitem": all_of_them.linked_guide,
    }
    tokens = all_of_them.search()
    for name, contender in contenders.items():
        assert contender() == tokens, name
    per_unit("Choosing tokens from known rows", "token", COUNT, contenders)


if __name__ == "__main__":
    main()
