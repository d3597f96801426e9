"""The queue: every key once, never twice at a time, and never forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.virtual import VirtualClock, settle

from polyver.client import Backoff
from polyver.controllers import QueueClosed, WorkQueue

Scenario = Callable[[WorkQueue[str], VirtualClock], Awaitable[None]]


def run(scenario: Scenario, *, limit: int = 100) -> None:
    async def within() -> None:
        clock = VirtualClock()
        backoff = Backoff(first=1, most=60, jitter=0.5)
        await scenario(
            WorkQueue(clock=clock, backoff=backoff, limit=limit, chance=lambda: 0), clock
        )

    asyncio.run(within())


async def _ready(queue: WorkQueue[str]) -> str | None:
    """The key that can be had without time passing."""
    task = asyncio.create_task(queue.take())
    await settle(5)
    if task.done():
        return task.result()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return None


def test_a_key_waits_once_and_in_order() -> None:
    async def scenario(queue: WorkQueue[str], _: VirtualClock) -> None:
        for key in "abacb":
            queue.add(key)
        assert queue.depth == 3
        assert [await queue.take() for _ in range(3)] == ["a", "b", "c"]

    run(scenario)


def test_a_change_during_work_means_work_again_but_only_afterwards() -> None:
    async def scenario(queue: WorkQueue[str], _: VirtualClock) -> None:
        queue.add("a")
        await queue.take()
        queue.add("a")
        queue.add("a")
        assert await _ready(queue) is None
        queue.done("a")
        assert await _ready(queue) == "a"
        queue.done("a")
        assert await _ready(queue) is None

    run(scenario)


def test_failures_wait_longer_each_time_up_to_a_limit() -> None:
    async def scenario(queue: WorkQueue[str], clock: VirtualClock) -> None:
        waits = []
        for _ in range(9):
            queue.retry("a")
            began = clock.time()
            while (key := await _ready(queue)) is None:
                await clock.advance(1)
            waits.append(round(clock.time() - began))
            queue.done(key)
        assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
        queue.forget("a")
        queue.retry("a")
        await clock.advance(1)
        assert await _ready(queue) == "a"

    run(scenario)


def test_of_two_times_the_earlier_counts() -> None:
    async def scenario(queue: WorkQueue[str], clock: VirtualClock) -> None:
        queue.add_later("a", 10)
        queue.add_later("a", 5)
        queue.add_later("a", 20)
        await clock.advance(5)
        assert await _ready(queue) == "a"
        queue.done("a")
        await clock.advance(60)
        assert await _ready(queue) is None

    run(scenario)


def test_news_do_not_wait_for_a_retry() -> None:
    async def scenario(queue: WorkQueue[str], clock: VirtualClock) -> None:
        queue.add_later("a", 30)
        queue.add("a")
        assert await _ready(queue) == "a"
        queue.done("a")
        await clock.advance(60)
        assert await _ready(queue) is None

    run(scenario)


def test_whoever_brings_too_much_is_held_up() -> None:
    async def scenario(queue: WorkQueue[str], _: VirtualClock) -> None:
        await queue.put("a")
        await queue.put("b")
        await queue.put("a")  # waits already: takes no room
        held = asyncio.create_task(queue.put("c"))
        await settle(5)
        assert not held.done()
        await queue.take()
        await held
        assert queue.depth == 2

    run(scenario, limit=2)


def test_closing_lets_everybody_go() -> None:
    async def scenario(queue: WorkQueue[str], clock: VirtualClock) -> None:
        queue.add("a")
        held = asyncio.create_task(queue.put("b"))
        await settle(5)
        queue.close()
        await held
        with pytest.raises(QueueClosed):
            await queue.take()
        queue.add("c")
        queue.add_later("d", 1)
        await clock.advance(5)
        assert queue.depth == 0

    run(scenario, limit=1)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "later", "retry", "take", "done", "pass"]), st.sampled_from("abc")
    ),
    max_size=60,
)


@given(steps=STEPS)
def test_a_key_is_never_worked_on_twice_at_once_and_never_lost(
    steps: list[tuple[str, str]],
) -> None:
    """Against a model that only knows what each key is owed."""

    async def scenario(queue: WorkQueue[str], clock: VirtualClock) -> None:
        model = _Model(queue, clock)
        for step, key in steps:
            await model.do(step, key)
            assert queue.depth == len(model.owed)
        for key in list(model.active):
            await model.do("done", key)
        await clock.advance(120)
        owed, found = set(model.owed), set()
        while (taken := await _ready(queue)) is not None:
            found.add(taken)
            queue.done(taken)
        assert found == owed

    run(scenario)


class _Model:
    def __init__(self, queue: WorkQueue[str], clock: VirtualClock) -> None:
        self.active: set[str] = set()
        self.owed: set[str] = set()
        self._queue = queue
        self._clock = clock

    async def do(self, step: str, key: str) -> None:
        match step:
            case "add" | "later" | "retry":
                self._bring(step, key)
                self.owed.add(key)
            case "done" if key in self.active:
                self._queue.done(key)
                self.active.discard(key)
            case "take":
                self._took(await _ready(self._queue))
            case "pass":
                await self._clock.advance(2)

    def _bring(self, step: str, key: str) -> None:
        if step == "add":
            self._queue.add(key)
        elif step == "later":
            self._queue.add_later(key, 3)
        else:
            self._queue.retry(key)

    def _took(self, key: str | None) -> None:
        if key is not None:
            assert key not in self.active
            assert key in self.owed
            self.active.add(key)
            self.owed.discard(key)
