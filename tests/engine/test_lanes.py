"""Lanes: how many may call a revision at a time, and who comes next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from polyver.client import SystemClock
from polyver.engine.composites._lanes import Lanes


def play(scenario: Callable[[Lanes[str], list[str]], Awaitable[None]], *, width: int = 1) -> None:
    async def main() -> None:
        woken: list[str] = []
        await scenario(Lanes(woken.append, SystemClock(), width=width), woken)

    asyncio.run(main())


def test_who_waits_for_a_moment_gets_the_place_of_who_leaves() -> None:
    async def scenario(lanes: Lanes[str], woken: list[str]) -> None:
        assert await lanes.enter("a", ["x"])
        asyncio.get_running_loop().call_soon(lambda: lanes.leave("a", ["x"], answered=["x"]))
        assert await lanes.enter("b", ["x", "y"])
        assert woken == []

    play(scenario)


def test_who_is_sent_away_is_called_back_when_there_is_room() -> None:
    async def scenario(lanes: Lanes[str], woken: list[str]) -> None:
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
    async def scenario(lanes: Lanes[str], woken: list[str]) -> None:
        assert await lanes.enter("a", ["x"])
        lanes.leave("a", ["x"], silent="x")
        assert await lanes.enter("b", ["x"])
        for name in "cdef":
            assert not await lanes.enter(name, ["x"])
        lanes.leave("b", ["x"], answered=["x"])
        assert woken == ["c", "d", "e"]

    play(scenario, width=3)


def test_another_endpoint_opens_a_lane() -> None:
    async def scenario(lanes: Lanes[str], woken: list[str]) -> None:
        assert await lanes.enter("a", ["x"])
        lanes.leave("a", ["x"], silent="x")
        assert await lanes.enter("b", ["x"])
        assert not await lanes.enter("c", ["x"])
        lanes.open("x")
        assert woken == ["c"]

    play(scenario, width=2)
