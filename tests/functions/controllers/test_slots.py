"""Slots for calls: never more than there are, and always some for those who have none."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from polyver.functions.controllers._running import Slots

OWNERS = st.tuples(st.sampled_from("abc"), st.integers(0, 20))
STEPS = st.lists(st.tuples(st.sampled_from(["take", "give back", "leave"]), OWNERS), max_size=80)


@given(st.integers(1, 12), STEPS)
def test_slots_are_bounded_and_a_namespace_without_any_has_its_turn(
    limit: int, steps: list[tuple[str, tuple[str, int]]]
) -> None:
    slots = Slots[tuple[str, int]](limit)
    held: Counter[str] = Counter()
    waiting: set[tuple[str, int]] = set()
    for what, owner in steps:
        namespace = owner[0]
        if what == "take":
            free = limit - held.total()
            if slots.take(owner, namespace):
                # It may take no more than it leaves free.
                assert held[namespace] < free
                held[namespace] += 1
                waiting.discard(owner)
            else:
                waiting.add(owner)
        elif what == "leave":
            slots.leave(owner)
            waiting.discard(owner)
        elif held[namespace]:
            slots.give_back(namespace)
            held[namespace] -= 1
        assert slots.free == limit - held.total() >= 0
        assert sorted(slots.place(each) for each in waiting) == [*range(1, len(waiting) + 1)]
        if slots.free and any(not held[each[0]] for each in waiting):
            assert any(not held[namespace] for namespace, _ in slots.due())


def test_the_queue_goes_by_namespaces_in_turn() -> None:
    slots = Slots[str](2)
    assert slots.take("a1", "a")
    for name in ("a2", "a3", "b1", "c1", "b2"):
        slots.take(name, name[0])
    # b1 came first of those whose namespace held nothing, and has the last slot.
    assert [slots.place(each) for each in ("b1", "c1", "a2", "b2", "a3")] == [0, 1, 2, 3, 4]
    slots.give_back("b")
    assert slots.due() == ["c1"]
    slots.leave("c1")
    assert slots.due() == ["b2"]
