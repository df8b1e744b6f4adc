"""The engine's turns, driven by hand: no loop, no clock but the real one, no sockets."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

import pytest

from support.models import succ
from tinyllm.decoding import SamplingError
from tinyllm.engine import Engine, Generation, SamplingParams, Task, TaskState
from tinyllm.engine.engine import SLICE_TOKENS
from tinyllm.model import Bigram


class Loop:
    """What `call_soon` needs of an event loop, one round at a time."""

    def __init__(self) -> None:
        self.ready: deque[Callable[[], None]] = deque()

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.ready.append(callback)

    def round(self) -> bool:
        """Run what was ready; False when nothing was."""
        count = len(self.ready)
        for _ in range(count):
            self.ready.popleft()()
        return count > 0

    def run(self) -> None:
        while self.round():
            pass


class Recorder:
    """A sink that remembers what it got, in the order of all sinks together."""

    def __init__(self, name: str, journal: list[tuple[str, int, bool]]) -> None:
        self.name = name
        self.journal = journal
        self.ids: list[int] = []
        self.finished = False
        self.error: Exception | None = None
        self.on_receive: Callable[[], None] | None = None

    def receive(self, ids: list[int], finished: bool) -> None:
        self.ids += ids
        self.finished = finished
        self.journal.append((self.name, len(ids), finished))
        if self.on_receive is not None:
            self.on_receive()

    def fail(self, error: Exception) -> None:
        self.error = error
        self.journal.append((self.name, 0, True))


@pytest.fixture(scope="module")
def model() -> Bigram:
    return Bigram.from_weight(
        [succ(before, after) for before in range(256) for after in range(256)]
    )


class Stage:
    """An engine on a hand-driven loop, and the sinks of its tasks."""

    def __init__(self, model: Bigram) -> None:
        self.model = model
        self.loop = Loop()
        self.engine = Engine(self.loop.call_soon)
        self.journal: list[tuple[str, int, bool]] = []

    def open(self, name: str, tokens: int, prompt: bytes = b"a") -> tuple[Task, Recorder]:
        sink = Recorder(name, self.journal)
        generation = Generation(self.model, prompt, SamplingParams(tokens, 0.0))
        return self.engine.submit(generation, sink), sink


@pytest.fixture
def stage(model: Bigram) -> Stage:
    return Stage(model)


def test_a_task_gets_all_its_tokens(stage: Stage) -> None:
    _, sink = stage.open("one", 3)
    stage.loop.run()
    assert bytes(sink.ids) == b"bcd"
    assert sink.finished


def test_first_token_leaves_before_the_second_is_computed(stage: Stage) -> None:
    _, sink = stage.open("one", 100)
    assert sink.ids == [], "nothing is computed inside submit: the loop has its turn first"
    stage.loop.round()
    assert bytes(sink.ids) == b"b"
    stage.loop.round()
    assert len(sink.ids) > 1


def test_new_tasks_come_before_long_ones(stage: Stage) -> None:
    stage.open("long", 4096)
    stage.loop.round()
    stage.open("new", 2)
    del stage.journal[:]
    stage.loop.round()
    assert stage.journal[0] == ("new", 1, False)
    assert ("long", 1, False) not in stage.journal[1:]


def test_tasks_take_turns_in_slices(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)  # no slice is cut short by its time
    for name in "abc":
        stage.open(name, 3 * SLICE_TOKENS)
    stage.loop.run()
    order = [name for name, _, _ in stage.journal]
    for start in range(0, len(order) - 2, 3):
        assert sorted(order[start : start + 3]) == ["a", "b", "c"]
    assert max(count for _, count, _ in stage.journal) <= SLICE_TOKENS
    assert [name for name, _, finished in stage.journal if finished] == ["a", "b", "c"]


def test_a_paused_task_costs_no_token(stage: Stage) -> None:
    task, sink = stage.open("slow", 4096)
    stage.loop.round()
    stage.engine.pause(task)
    stage.loop.run()
    assert len(sink.ids) == 1
    assert task.state is TaskState.PAUSED
    stage.engine.resume(task)
    stage.loop.run()
    assert len(sink.ids) == 4096


def test_pausing_and_resuming_at_once_gives_no_turn_twice(stage: Stage) -> None:
    task, sink = stage.open("one", 600)
    stage.loop.round()
    for _ in range(5):
        stage.engine.pause(task)
        stage.engine.resume(task)
    stage.loop.run()
    assert len(sink.ids) == 600
    assert sum(finished for _, _, finished in stage.journal) == 1


def test_a_sink_may_pause_its_own_task(stage: Stage) -> None:
    task, sink = stage.open("slow", 4096)
    sink.on_receive = lambda: stage.engine.pause(task)
    stage.loop.run()
    assert len(sink.ids) == 1
    stage.engine.resume(task)
    stage.loop.run()
    assert 1 < len(sink.ids) <= 1 + SLICE_TOKENS


def test_a_cancelled_task_is_forgotten(stage: Stage) -> None:
    task, sink = stage.open("gone", 4096)
    stage.loop.round()
    stage.engine.cancel(task)
    stage.loop.run()
    assert len(sink.ids) == 1
    assert not sink.finished
    stage.engine.resume(task)
    stage.loop.run()
    assert len(sink.ids) == 1


def test_an_error_ends_its_own_task_only(stage: Stage) -> None:
    logits = [succ(before, after) for before in range(256) for after in range(256)]
    logits[ord("c") * 256 : ord("d") * 256] = [float("nan")] * 256
    stage.model = Bigram.from_weight(logits)
    _, broken = stage.open("broken", 10, b"a")
    _, whole = stage.open("whole", 10, b"d")
    stage.loop.run()
    assert isinstance(broken.error, SamplingError)
    assert bytes(broken.ids) == b"bc", "the tokens before the broken row came, however sliced"
    assert bytes(whole.ids) == b"efghijklmn"


def test_a_sink_that_raises_ends_its_own_task_only(stage: Stage) -> None:
    def explode() -> None:
        raise RuntimeError("sink")

    _, bad = stage.open("bad", 10)
    bad.on_receive = explode
    _, good = stage.open("good", 10)
    stage.loop.run()
    assert isinstance(bad.error, RuntimeError)
    assert len(good.ids) == 10


def test_an_idle_engine_asks_for_no_turns(stage: Stage) -> None:
    stage.open("one", 3)
    stage.loop.run()
    assert not stage.loop.ready
