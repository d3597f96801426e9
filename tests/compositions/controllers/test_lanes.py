"""Lanes: how many may call a revision at a time, and who comes next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from polyver.client import SystemClock
from polyver.compositions.controllers.composites._concurrency import ConcurrencyLimits, LostCall


def play(
    scenario: Callable[[ConcurrencyLimits[str], list[str]], Awaitable[None]], *, width: int = 1
) -> None:
    async def main() -> None:
        woken: list[str] = []
        await scenario(ConcurrencyLimits(woken.append, SystemClock(), width=width), woken)

    asyncio.run(main())


def test_who_waits_for_a_moment_gets_the_place_of_who_leaves() -> None:
    async def scenario(lanes: ConcurrencyLimits[str], woken: list[str]) -> None:
        assert await lanes.enter("a", ["x"])
        asyncio.get_running_loop().call_soon(lambda: lanes.leave("a", ["x"], answered=["x"]))
        assert await lanes.enter("b", ["x", "y"])
        assert woken == []

    play(scenario)


def test_who_is_sent_away_is_called_back_when_there_is_room() -> None:
    async def scenario(lanes: ConcurrencyLimits[str], woken: list[str]) -> None:
        assert await lanes.enter("a", ["x"])
        lanes.leave("a", ["x"], silent="x")
        assert await lanes.enter("b", ["x"])
        assert not await lanes.enter("c", ["x"])
        assert not await lanes.enter("d", ["x"])
        assert await lanes.enter("e", ["y"])
        lanes.leave("b", ["x"], silent="x")
        assert woken == ["c"]
        # It has gone another way, so that the next one may come.
        lanes.settle("c")
        assert woken == ["c", "d"]

    play(scenario, width=3)


def test_the_first_answer_opens_a_lane() -> None:
    async def scenario(lanes: ConcurrencyLimits[str], woken: list[str]) -> None:
        assert await lanes.enter("a", ["x"])
        lanes.leave("a", ["x"], silent="x")
        assert await lanes.enter("b", ["x"])
        for name in "cdef":
            assert not await lanes.enter(name, ["x"])
        lanes.leave("b", ["x"], answered=["x"])
        assert woken == ["c", "d", "e"]

    play(scenario, width=3)


def test_another_endpoint_opens_a_lane() -> None:
    async def scenario(lanes: ConcurrencyLimits[str], woken: list[str]) -> None:
        assert await lanes.enter("a", ["x"])
        lanes.leave("a", ["x"], silent="x")
        assert await lanes.enter("b", ["x"])
        assert not await lanes.enter("c", ["x"])
        lanes.open("x")
        assert woken == ["c"]

    play(scenario, width=2)


# Those whose input makes a function exit or hang.

BROKEN, HUNG = LostCall("input", hung=False), LostCall("input", hung=True)


def left(lanes: ConcurrencyLimits[str], key: str, given: str = "input") -> float:
    return lanes.quarantined(key, ["x"], lambda: given)[1]


async def called(lanes: ConcurrencyLimits[str], key: str, lost: LostCall | None = None) -> None:
    assert await lanes.enter(key, ["x"])
    if lost is None:
        lanes.leave(key, ["x"], answered=["x"])
    else:
        lanes.leave(key, ["x"], silent="x", lost=lost)


def test_of_those_that_were_called_together_the_one_is_found_that_fails_alone() -> None:
    async def scenario(lanes: ConcurrencyLimits[str], woken: list[str]) -> None:
        for key in "abc":
            assert await lanes.enter(key, ["x"])
        for key in "abc":
            lanes.leave(key, ["x"], silent="x", lost=BROKEN)
        # Each is called alone, and nobody may come between.
        assert await lanes.enter("a", ["x"])
        assert not await lanes.enter("b", ["x"])
        assert not await lanes.enter("other", ["x"])
        lanes.leave("a", ["x"], answered=["x"])
        assert woken == ["b"]
        assert not await lanes.enter("other", ["x"])
        await called(lanes, "b", BROKEN)
        await called(lanes, "c")
        assert (left(lanes, "a"), left(lanes, "c")) == (0, 0)
        assert left(lanes, "b") > 30
        assert await lanes.enter("other", ["x"])

    play(scenario, width=3)


def test_nobody_is_quarantined_because_a_function_answers_nobody() -> None:
    async def scenario(lanes: ConcurrencyLimits[str], woken: list[str]) -> None:
        del woken
        for _ in range(5):
            for key in "ab":
                await called(lanes, key, BROKEN)
        assert (left(lanes, "a"), left(lanes, "b")) == (0, 0)
        await called(lanes, "b")
        await called(lanes, "a", BROKEN)
        assert left(lanes, "a") > 30

    play(scenario)


def test_one_that_hangs_three_times_while_others_are_answered_is_quarantined() -> None:
    async def scenario(lanes: ConcurrencyLimits[str], woken: list[str]) -> None:
        del woken
        for wanted in (0.0, 0.0, 30.0):
            assert await lanes.enter("a", ["x"])
            await called(lanes, "b")
            lanes.leave("a", ["x"], silent="x", lost=HUNG)
            await called(lanes, "b")
            assert left(lanes, "a") >= wanted
            assert bool(left(lanes, "a")) is bool(wanted)

    play(scenario, width=2)


def test_another_input_ends_a_quarantine() -> None:
    async def scenario(lanes: ConcurrencyLimits[str], woken: list[str]) -> None:
        del woken
        await called(lanes, "a", BROKEN)
        await called(lanes, "b")
        await called(lanes, "a", BROKEN)
        assert left(lanes, "a")
        assert left(lanes, "a", "other") == 0
        await called(lanes, "a", LostCall("other", hung=False))
        assert left(lanes, "a", "other") == 0
        await called(lanes, "a")
        assert not lanes.is_suspect("a", "x")

    play(scenario)


def test_a_suspect_that_does_not_come_holds_up_nobody() -> None:
    async def scenario(lanes: ConcurrencyLimits[str], woken: list[str]) -> None:
        await called(lanes, "a", BROKEN)
        assert await lanes.enter("b", ["x"])
        assert not await lanes.enter("a", ["x"])
        assert not await lanes.enter("c", ["x"])
        lanes.leave("b", ["x"], answered=["x"])
        assert woken == ["a"]
        lanes.settle("a")
        assert woken == ["a", "c"]
        assert await lanes.enter("c", ["x"])
        lanes.forget("a")
        assert not lanes.is_suspect("a", "x")

    play(scenario, width=3)
