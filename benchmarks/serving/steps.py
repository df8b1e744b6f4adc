"""From a profiler's stacks to the steps of a request, and to the microseconds of each.

A stack counts for the step whose code of ours is innermost; a system call counts for itself; a
wait for the interpreter's lock counts for nothing.

A look cannot tell a thread that runs from one that waits for a core, and a server waits for one
most often where it has just woken a client: in the kernel. So looks only divide what is counted
exactly, without a profiler: the system time among the kernel's steps, the user time among ours.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from benchmarks.harness.processes import CpuTime
from benchmarks.harness.profiler import Stack

MAIN_THREAD = "MainThread"
LOCK_WAITS = ("pthread_cond_timedwait", "pthread_cond_wait")
LOOP_RUN = "uv_run "  # libuv's turn, which calls all else
KERNEL = "kernel: "
OTHER = "event loop and the rest"

# libc's names of the system calls, as C frames show them.
SYSTEM_CALLS: Final[Mapping[str, str]] = {
    name: KERNEL + step
    for step, names in {
        "accept": ("accept", "accept4"),
        "receive": ("recv", "read"),
        "send": ("send", "sendto", "write", "writev"),
        "close": ("close", "shutdown"),
        "wait for events": ("epoll_wait", "epoll_pwait", "epoll_ctl"),
    }.items()
    for name in names
}
# A frame reads "function (tinyllm/layer/file.py:line)". The first pattern found names the step.
STEPS: Final = tuple(
    (re.compile(pattern), step)
    for pattern, step in (
        (r"wire/(request|head|buffer|grammar)\.py", "read HTTP"),
        (r"wire/jsontext\.py|^parse_completion |^_\w+ \(tinyllm/serving/schema", "read JSON"),
        (r"decoding/utf8\.py", "ids to text"),
        (r"decoding/|model/|engine/generation\.py", "choose tokens"),
        (r"engine/", "take turns"),
        (r"wire/(response|sse)\.py|serving/(responses|schema)\.py", "write the answer"),
        (r"serving/transport\.py", "our transport"),
        (r"serving/(connection|edge)\.py", "our connection"),
        (r"serving/(routes|completions|exchange|server|accesslog)\.py|tracing/", "route and note"),
    )
)


def working(stacks: Iterable[Stack]) -> list[Stack]:
    """Return the main thread's stacks, without the waits for the interpreter's lock."""
    return [s for s in stacks if MAIN_THREAD in s.thread and not _waits_for_lock(s)]


def _waits_for_lock(stack: Stack) -> bool:
    return any(frame.startswith(LOCK_WAITS) for frame in stack.frames[-3:])


def from_the_loop(stack: Stack) -> list[str]:
    """Return the frames below the event loop's own run: what a start and a `main` look like is
    the same in every stack.
    """
    loops = [index for index, frame in enumerate(stack.frames) if frame.startswith(LOOP_RUN)]
    return stack.frames[loops[0] :] if loops else stack.frames


def count_steps(stacks: Iterable[Stack]) -> Counter[str]:
    """Return how many looks found each step."""
    looks: Counter[str] = Counter()
    for stack in stacks:
        looks[step_of(stack.frames)] += stack.looks
    return looks


def step_of(frames: list[str]) -> str:
    """Return what a stack was doing."""
    call, _, place = frames[-1].partition(" (")
    if place.startswith("libc") and call in SYSTEM_CALLS:
        return SYSTEM_CALLS[call]
    ours = next((frame for frame in reversed(frames) if "(tinyllm/" in frame), "")
    return next((step for pattern, step in STEPS if pattern.search(ours)), OTHER)


def microseconds(looks: Counter[str], cost: CpuTime) -> Counter[str]:
    """Divide a unit's system time among the kernel's steps, and its user time among ours."""
    kernel = sum(count for step, count in looks.items() if step.startswith(KERNEL))
    system_each = cost.system / max(1, kernel)
    user_each = cost.user / max(1, looks.total() - kernel)
    return Counter(
        {
            step: count * (system_each if step.startswith(KERNEL) else user_each)
            for step, count in looks.items()
        }
    )
