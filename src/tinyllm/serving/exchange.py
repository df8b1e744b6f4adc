"""One request and its answer, as the access log and the span will tell it.

A connection makes one when a request begins and hands it on when its answer has ended,
however it ended. Times come from one reading of each clock: the wall's for "when", the
monotonic one for "how long", so a clock that is set in between spoils neither.
"""

from __future__ import annotations

import enum
import time
from typing import Final

from tinyllm.serving.schema import CompletionRequest
from tinyllm.wire import Request


class Ended(enum.StrEnum):
    """Why an answer ended."""

    COMPLETED = "completed"
    CLIENT_GONE = "client_gone"  # the client left before the end
    TIMED_OUT = "timed_out"  # a deadline for the request passed
    STALLED = "stalled"  # the client took no byte of its answer for too long
    SHUT_DOWN = "shut_down"  # the grace of a shutdown was over
    FAILED = "failed"  # an error of ours


COMPLETED: Final = Ended.COMPLETED  # for those who ask at each request


class Exchange:
    """What is known of one request: filled in on its way, read when it is over."""

    __slots__ = (
        "bytes_sent",
        "completion",
        "completion_id",
        "completion_tokens",
        "duration_ns",
        "echoed",
        "ended",
        "error_type",
        "first_token_ns",
        "log_id",
        "method",
        "path",
        "peer",
        "prompt_tokens",
        "request",
        "request_id",
        "seed",
        "started_ns",
        "started_unix_nano",
        "status",
    )

    def __init__(self, peer: object) -> None:
        self.started_unix_nano = time.time_ns()
        self.started_ns = time.perf_counter_ns()  # the other nanoseconds count from here
        self.peer = peer  # the client's address, as the socket module gives it
        self.request: Request | None = None  # until one could be read
        self.method = ""
        self.path = ""
        self.request_id: str | None = None  # the caller's, if it was fit to be echoed
        self.echoed: tuple[tuple[str, str], ...] = ()  # the headers that every answer repeats
        self.log_id: str | None = None  # what stands for it in the log, if one had to be made
        self.status = 0
        self.bytes_sent = 0
        self.completion: CompletionRequest | None = None
        self.completion_id: str | None = None
        self.seed: int | None = None  # the one used, whoever picked it
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.first_token_ns: int | None = None
        self.duration_ns = 0
        self.ended = COMPLETED
        self.error_type: str | None = None  # the class of an error of ours

    def mark_first_token(self) -> None:
        """Note the time of the first token, once."""
        if self.first_token_ns is None:
            self.first_token_ns = time.perf_counter_ns() - self.started_ns

    def end(self, ended: Ended) -> None:
        """Note how and when it ended."""
        self.ended = ended
        self.duration_ns = time.perf_counter_ns() - self.started_ns
