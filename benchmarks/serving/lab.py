"""What every question needs: the model, the load generator, how long and how often to measure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from benchmarks.harness import anchors
from benchmarks.harness.anchors import Missing
from benchmarks.harness.load import LoadGenerator
from benchmarks.harness.processes import ServerProcess

Maker: TypeAlias = Callable[[Path], ServerProcess]  # from the model's folder


@dataclass
class Lab:
    """`seconds` of load per measurement, `rounds` of them; pictures go into `results`."""

    seconds: float
    rounds: int
    results: Path | None  # None: none are drawn
    model: Path = field(default_factory=anchors.bench_model)
    load: LoadGenerator = field(default_factory=LoadGenerator)
    left_out: list[str] = field(default_factory=list)

    def available(self, *makers: Maker) -> list[ServerProcess]:
        """Return the servers that this machine can run, noting why the others are left out."""
        servers = []
        for make in makers:
            try:
                servers.append(make(self.model))
            except Missing as reason:
                if str(reason) not in self.left_out:
                    self.left_out.append(str(reason))
        return servers

    @contextmanager
    def running(self, *makers: Maker) -> Iterator[dict[str, ServerProcess]]:
        """Run those servers side by side, by name."""
        with ExitStack() as stack:
            servers = [stack.enter_context(server) for server in self.available(*makers)]
            for server in servers:
                server.settle()  # some of a start is done after it, in the background
            yield {server.name: server for server in servers}
