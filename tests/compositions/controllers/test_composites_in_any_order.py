"""Whatever happens in whatever order, composite resources come to the same end."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.compositions import composing
from tests.compositions.controllers.composing import BUCKETS, MAPS, PATIENT, World, is_ready, run
from tests.compositions.controllers.composing import settings as function

from polyver.client import find
from polyver.core.plain import Object

CANARY = {"channel": "canary"}
PINNED = composing.step(functionRevisionSelector={"matchLabels": CANARY})
EVENTS = (
    *("old function", "canary", "new function"),
    *("first composition", "second composition"),
    *("one", "two", "resized", "restarted"),
)


class Order:
    """Does one thing after the other; of those that build on each other the first comes first."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._made: set[str] = set()

    async def do(self, event: str, restart: Any) -> None:
        match event:
            case "old function":
                await self.world.install("a", 1, function)
            case "canary":
                await self.world.install("b", 2, function, labels=CANARY)
            case "new function":
                await self.world.install("c", 3, function)
            case "first composition" | "second composition":
                steps = (composing.step(),) if "composed" not in self._made else (PINNED,)
                self._made.add("composed")
                await self.world.compose(composing.composition("example", *steps))
            case "one":
                await self._bucket("one")
            case "two":
                await self._bucket("two", compositionUpdatePolicy="Automatic")
            case "resized":
                await self._bucket("one")
                await self.world.client.patch(BUCKETS, "one", change={"spec": {"size": 4}})
            case "restarted":
                await restart()

    async def _bucket(self, name: str, **spec: Any) -> None:
        if name not in self._made:
            self._made.add(name)
            await self.world.bucket(name, size=1, **spec)


async def state(world: World) -> Object:
    """All that users see in the end."""
    found: Object = {}
    for name in ("one", "two"):
        bucket = await find(world.client, BUCKETS, name)
        if bucket is None or not is_ready(bucket):
            return {}
        fields = {key: bucket["spec"].get(key) for key in ("compositionRef", "size")}
        found[name] = fields, [each["revision"] for each in bucket["status"]["pipeline"]]
        found[name] += (len(bucket["spec"]["resourceRefs"]),)
    maps = (await world.client.list(MAPS, labels="crossplane.io/composite")).items
    found["maps"] = sorted(each["data"]["size"] for each in maps)
    return found


def expected(size: int) -> tuple[Object, list[str], int]:
    pipeline = [composing.name_of("b")]
    return {"compositionRef": {"name": "example"}, "size": size}, pipeline, 1


@given(st.permutations(EVENTS), st.lists(st.booleans(), min_size=9, max_size=9))
@settings(max_examples=4, deadline=None)
def test_any_order_comes_to_the_same_end(events: list[str], pauses: list[bool]) -> None:
    async def scenario(world: World) -> None:
        await world.define()
        order, stack = Order(world), AsyncExitStack()

        async def restart() -> None:
            await stack.aclose()
            # Nothing is tried again in time: whatever concerns one has to wake it.
            await stack.enter_async_context(world.engine(limits=PATIENT))

        await restart()
        for event, pause in zip(events, pauses, strict=True):
            await order.do(event, restart)
            if pause:
                await asyncio.sleep(0.02)
        wanted = {"one": expected(4), "two": expected(1), "maps": ["1", "4"]}
        while await state(world) != wanted:
            await asyncio.sleep(0.005)
        await stack.aclose()

    run(scenario, acting=False)
