"""The open generations of a process, advanced in turn by one event loop.

The engine knows no HTTP and no clock but its own. It is given a way to be called again
(`call_soon`), and each turn it does about a millisecond of work:

1. every new generation gets its first token, before anything else, so that the first event
   of a stream waits for nobody's long answer; what they will need next is made for all at once;
2. the others take turns, a slice each, oldest turn first.

A generation that has had its turn goes to the back, so equal requests end together. What a
slice gave is handed to the generation's sink at once, and the sink has left the function
before the next token is computed (CONTRACT, point 17). A sink whose client reads slowly
pauses its task; one whose client has gone cancels it: either costs no further token.
"""

from __future__ import annotations

import enum
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from tinyllm.engine.generation import Generation, prepare_slices

TURN_SECONDS = 0.001  # work of one turn of the loop, after which sockets get theirs
SLICE_TOKENS = 512  # of one generation at a time, unless its sink wants fewer

logger = logging.getLogger("tinyllm.engine")


class Sink(Protocol):
    """Where a generation's tokens go. Called on the loop's thread; must not block."""

    def receive(self, ids: list[int], finished: bool) -> None:
        """Take the next ids; `finished` is true with the last ones."""

    def fail(self, error: Exception) -> None:
        """Learn that no further id will come."""


class TaskState(enum.Enum):
    """What the engine may do with a task."""

    READY = enum.auto()  # it has turns
    PAUSED = enum.auto()  # it waits for its sink
    DONE = enum.auto()  # finished, failed or cancelled


class Task:
    """One generation, its sink, and whether it has a place in a queue."""

    __slots__ = ("generation", "queued", "sink", "slice_tokens", "state")

    def __init__(self, generation: Generation, sink: Sink, slice_tokens: int) -> None:
        self.generation = generation
        self.sink = sink
        self.slice_tokens = slice_tokens
        self.state = TaskState.READY
        self.queued = True


class Engine:
    """Runs tasks in turns of about a millisecond on the loop that `call_soon` belongs to."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._new: deque[Task] = deque()
        self._waiting: deque[Task] = deque()
        self._scheduled = False

    def submit(self, generation: Generation, sink: Sink, slice_tokens: int = SLICE_TOKENS) -> Task:
        """Open a generation; its first token comes in the next turn.

        `slice_tokens` is the most that the sink takes at once.
        """
        task = Task(generation, sink, slice_tokens)
        self._new.append(task)
        self._schedule()
        return task

    def pause(self, task: Task) -> None:
        """Give the task no more turns until it is resumed."""
        if task.state is TaskState.READY:
            task.state = TaskState.PAUSED

    def resume(self, task: Task) -> None:
        """Let a paused task take turns again."""
        if task.state is TaskState.PAUSED:
            task.state = TaskState.READY
            self._enqueue(task)

    def cancel(self, task: Task) -> None:
        """Forget the task; its sink hears nothing more."""
        task.state = TaskState.DONE

    def turn(self) -> None:
        """Do about a millisecond of work and ask for another turn if some is left."""
        self._scheduled = False
        deadline = time.perf_counter() + TURN_SECONDS
        # Counted first: a task that gets its first token now has its slice in a later turn,
        # when the loop has been to its sockets.
        waiting = len(self._waiting)
        self._first_tokens(deadline)
        for _ in range(waiting):
            task = self._waiting.popleft()
            task.queued = False
            if task.state is TaskState.READY:
                self._advance(task, task.slice_tokens)
                if time.perf_counter() >= deadline:
                    break
        if self._new or self._waiting:
            self._schedule()

    def _first_tokens(self, deadline: float) -> None:
        begun = []
        while self._new:
            task = self._new.popleft()
            task.queued = False
            if task.state is TaskState.READY:
                self._advance(task, 1)
                begun.append(task.generation)
            if time.perf_counter() >= deadline:
                break
        if len(begun) > 1:
            prepare_slices(begun)

    def _advance(self, task: Task, limit: int) -> None:
        """Run one slice and hand its ids on; an error ends this task and no other."""
        generation = task.generation
        try:
            ids = generation.take_until(time.perf_counter() + TURN_SECONDS, limit)
            finished = not generation.remaining
            if finished:
                task.state = TaskState.DONE
            task.sink.receive(ids, finished)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other tasks go on
            task.state = TaskState.DONE
            self._report(task, error)
        if task.state is TaskState.READY:
            self._enqueue(task)

    def _report(self, task: Task, error: Exception) -> None:
        try:
            task.sink.fail(error)
        except Exception:
            logger.exception("a sink failed while it was told of %r", error)

    def _enqueue(self, task: Task) -> None:
        if not task.queued:
            task.queued = True
            self._waiting.append(task)
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._call_soon(self.turn)
