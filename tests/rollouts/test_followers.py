"""The index of followers: counted once, then kept up to date, also while it is counted."""

from __future__ import annotations

import asyncio
import time

from polyver.capability.followers import FollowerIndex
from polyver.capability.gates import LineageName
from polyver.core import Dependent, Lineage, Release, SemVer
from polyver.core.cohorts import Cohorts, FollowerState
from polyver.core.rollout import Exposure

WEB = LineageName("example.org", "Definition", "", "web")
NUMBER = 5000


class Objects:
    """Objects with one state each, and their index."""

    def __init__(self) -> None:
        self.lineage = Lineage("web", [Release(SemVer.parse("1.0.0"))])
        self.index = FollowerIndex[str, FollowerState](
            topics=lambda _: ["web"],
            topic=lambda lineage: lineage.name,
            opened=lambda *_: self.lineage,
            state=lambda key, state, *_: (Dependent(key, uid=key), state),
        )
        for number in range(NUMBER):
            self.index.observe(str(number), "waiting")

    async def cohorts(self) -> Cohorts:
        return await self.index.followers(WEB, "1.0.0")

    async def healthy(self) -> int:
        return (await self.cohorts()).counts(Exposure(1.0)).healthy


def test_changes_while_followers_are_counted_are_not_lost() -> None:
    async def scenario() -> None:
        objects = Objects()
        counting = asyncio.create_task(objects.cohorts())
        await asyncio.sleep(0)
        assert not counting.done()
        objects.index.observe("0", "healthy")
        objects.index.observe(str(NUMBER - 1), "healthy")
        objects.index.observe("1", None)
        counts = (await counting).counts(Exposure(1.0))
        assert (counts.total, counts.healthy) == (NUMBER - 1, 2)
        objects.index.observe("2", "healthy")
        assert await objects.healthy() == 3

    asyncio.run(scenario())


def test_a_change_of_the_lineage_counts_anew() -> None:
    async def scenario() -> None:
        objects = Objects()
        counting = asyncio.create_task(objects.cohorts())
        await asyncio.sleep(0)
        objects.index.observe("0", "healthy")
        objects.index.changed("web", lambda _: False)
        assert (await counting).counts(Exposure(1.0)).healthy == 1
        assert await objects.cohorts() is await objects.cohorts()

    asyncio.run(scenario())


def test_other_tasks_go_on_while_followers_are_counted() -> None:
    async def scenario() -> None:
        objects = Objects()
        counting = asyncio.create_task(objects.cohorts())
        turns = 0
        end = time.monotonic() + 60
        while not counting.done() and time.monotonic() < end:
            await asyncio.sleep(0)
            turns += 1
        assert turns >= NUMBER // 500

    asyncio.run(scenario())
