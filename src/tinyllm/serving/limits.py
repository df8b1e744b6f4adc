"""What a client may cost: counts, bytes and seconds. Each is a flag of `tl-serve`."""

from __future__ import annotations

from dataclasses import dataclass

from tinyllm.wire import MAX_BODY_BYTES, MAX_HEAD_BYTES, ParserState


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one edge. Times are in seconds."""

    head_timeout: float = 10.0  # from the connection, or the first byte, to the end of the head
    body_timeout: float = 30.0  # from there to the end of the body
    idle_timeout: float = 75.0  # between two requests of a kept-alive connection
    stall_timeout: float = 60.0  # while a client takes no byte of its answer
    max_connections: int = 4096
    max_head_bytes: int = MAX_HEAD_BYTES
    max_body_bytes: int = MAX_BODY_BYTES
    keep_alive: bool = True  # for clients that ask for it; False answers everyone with close

    def patience(self, state: ParserState) -> float:
        """Return how long a client may take for what it owes in this state."""
        if state is ParserState.IDLE:
            return self.idle_timeout
        return self.body_timeout if state is ParserState.BODY else self.head_timeout

    @property
    def shortest(self) -> float:
        """The shortest of the times, which says how often to look at the clock."""
        return min(self.head_timeout, self.body_timeout, self.idle_timeout, self.stall_timeout)
