"""Spans that wait: what is put is what is taken, in order; what finds no room is counted."""

from __future__ import annotations

import http

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyllm.tracing import CompletionSpan
from tinyllm.tracing.queue import MAX_UNCUT_BYTES, Group, SpanQueue, pack_spans, unpack_spans
from tracing.records import record


def some(*numbers: int) -> list[CompletionSpan]:
    return [record(response_id=str(number)) for number in numbers]


def numbers_in(groups: list[Group]) -> list[int]:
    spans = []
    for count, packed in groups:
        found = [CompletionSpan.of(facts) for facts in unpack_spans(packed)]
        assert len(found) == count
        spans += found
    return [int(span.response_id or "") for span in spans]


@given(
    st.integers(1, 30),
    st.integers(1, 5),
    st.lists(st.tuples(st.booleans(), st.integers(0, 12)), max_size=30),
)
def test_a_queue_is_a_bounded_list(limit: int, group: int, steps: list[tuple[bool, int]]) -> None:
    queue, waiting, lost, number = SpanQueue(limit, group), list[int](), 0, 0
    for is_put, count in steps:
        if is_put:
            new = list(range(number, number + count))
            number += count
            queue.put(some(*new))
            lost += max(len(waiting) + count - limit, 0)
            waiting = (waiting + new)[:limit]
        else:
            most = group + count
            taken = numbers_in(queue.take(most))
            assert waiting[: len(taken)] == taken
            assert len(taken) <= most
            assert len(taken) > most - group or len(taken) == len(waiting), "no more would fit"
            waiting = waiting[len(taken) :]
        assert (len(queue), queue.overflow) == (len(waiting), lost)


def test_groups_of_another_queue_are_taken_whole_or_lost() -> None:
    first, second = SpanQueue(100, 3), SpanQueue(5)
    first.put(some(*range(10)))
    second.put_groups(first.take(10))
    assert numbers_in(second.take(5)) == [0, 1, 2, 9]
    assert second.overflow == 6


def test_a_closed_queue_gives_what_it_has_and_takes_no_more() -> None:
    queue = SpanQueue(10)
    queue.put(some(1))
    assert not queue.closed
    queue.close()
    assert queue.closed
    queue.put(some(2, 3))
    assert queue.overflow == 2
    assert numbers_in(queue.take(10)) == [1]


def test_spans_with_a_fact_of_a_wrong_type_are_not_taken() -> None:
    queue = SpanQueue(10)
    with pytest.raises(ValueError, match="unmarshallable"):
        queue.put([*some(1), record(status=http.HTTPStatus.OK)])
    assert (len(queue), queue.overflow) == (0, 0)


def test_only_what_takes_much_memory_is_cut() -> None:
    long, longer = record(user_agent="x" * 600), record(user_agent="x" * 1000)
    assert packed_and_unpacked(long) == [long]
    assert packed_and_unpacked(longer) == [longer._replace(user_agent="x" * 256)]
    assert packed_and_unpacked(*[record()] * 9, longer) == [*[record()] * 9, longer]
    for spans in ([long], [longer], [longer] * 10):
        assert len(pack_spans(spans)) <= MAX_UNCUT_BYTES * len(spans)


def packed_and_unpacked(*spans: CompletionSpan) -> list[CompletionSpan]:
    return list(map(CompletionSpan.of, unpack_spans(pack_spans(spans))))
