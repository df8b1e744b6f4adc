"""From a profiler's stacks to microseconds: each step by an example."""

from __future__ import annotations

from collections import Counter

import pytest
from benchmarks.harness.processes import CpuTime
from benchmarks.harness.profiler import parse_stack
from benchmarks.serving.steps import count_steps, microseconds, step_of, working

LOOP = "Loop.run_forever (uvloop/loop.c:1)"
CONNECTION = "Connection.data_received (tinyllm/serving/connection.py:100)"


@pytest.mark.parametrize(
    ("inner", "step"),
    [
        ("RequestParser.next_request (tinyllm/wire/request.py:1)", "read HTTP"),
        ("parse_json (tinyllm/wire/jsontext.py:1)", "read JSON"),
        ("parse_completion (tinyllm/serving/schema.py:1)", "read JSON"),
        ("completion_body (tinyllm/serving/schema.py:1)", "write the answer"),
        ("ChunkFrame.events (tinyllm/serving/schema.py:1)", "write the answer"),
        ("Utf8Stream.push_block (tinyllm/decoding/utf8.py:1)", "ids to text"),
        ("Pcg32.uniforms (tinyllm/decoding/pcg32.py:1)", "choose tokens"),
        ("Engine.turn (tinyllm/engine/engine.py:1)", "take turns"),
        ("completion_span (tinyllm/serving/telemetry.py:1)", "event loop and the rest"),
        ("SpanExporter.offer (tinyllm/tracing/export.py:1)", "route and note"),
    ],
)
def test_the_innermost_code_of_ours_names_the_step(inner: str, step: str) -> None:
    assert step_of([LOOP, CONNECTION, inner]) == step
    assert step_of([LOOP, CONNECTION, inner, "internal_bisect_right (_bisectmodule.c:50)"]) == step


def test_a_system_call_counts_for_itself() -> None:
    assert step_of([LOOP, CONNECTION, "sock_send (socketmodule.c:1)", "send (libc.so.6)"]) == (
        "kernel: send"
    )
    assert step_of([LOOP, "write (loop.c:110189)"]) == "event loop and the rest"


def test_other_threads_and_waits_for_the_lock_do_not_count() -> None:
    stacks = [
        parse_stack(f"thread (1): MainThread;{LOOP};{CONNECTION} 3"),
        parse_stack(
            f"thread (1): MainThread;{CONNECTION};pthread_cond_wait (libc.so.6);0x7f (libc) 5"
        ),
        parse_stack(f"thread (2): health-port;{CONNECTION} 7"),
    ]
    assert count_steps(working(stacks)) == {"our connection": 3}


def test_exact_times_are_divided_by_the_looks() -> None:
    looks = Counter({"kernel: send": 30, "kernel: close": 10, "read HTTP": 1, "read JSON": 3})
    assert microseconds(looks, CpuTime(user=40.0, system=80.0)) == {
        "kernel: send": 60.0,
        "kernel: close": 20.0,
        "read HTTP": 10.0,
        "read JSON": 30.0,
    }
