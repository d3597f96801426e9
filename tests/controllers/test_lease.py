"""Several replicas and one lease: one acts, another takes over, and never two at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.client.virtual import VirtualClock, settle

from polyver.client import Client, GroupVersionResource
from polyver.client.in_process import DirectClient
from polyver.controllers.lease import LEASES, Leadership, Lease
from polyver.kube.objects.status import ApiError
from polyver.kube.server.api import ApiServer
from polyver.kube.server.http import User
from polyver.kube.store import MemoryStore

SPACES = GroupVersionResource("", "v1", "namespaces", namespaced=False)
ADMIN = User("admin", ("system:masters",))


class World:
    """A server, and replicas whose clocks go alike."""

    def __init__(self) -> None:
        self.client = DirectClient(ApiServer(MemoryStore()), ADMIN, agent="test")
        self.clock = VirtualClock()
        self.acting: list[str] = []
        self.history: list[str] = []
        self.cut: set[str] = set()

    async def start(self) -> None:
        about = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "polyver"}}
        await self.client.create(SPACES, about)

    @asynccontextmanager
    async def work(self, name: str) -> AsyncIterator[None]:
        self.acting.append(name)
        self.history.append(name)
        assert len(self.acting) == 1, f"{self.acting} act at once"
        try:
            yield
        finally:
            self.acting.remove(name)

    def replica(self, name: str) -> Leadership:
        client = cast("Client", _Cut(self, name))
        lease = Lease(client, "polyver", "polyver", name, clock=self.clock)
        return Leadership(lease, lambda: self.work(name))

    async def spec(self) -> dict[str, Any]:
        found: dict[str, Any] = (await self.client.get(LEASES, "polyver", "polyver"))["spec"]
        return found


class _Cut:
    """A client whose way to the server may be cut."""

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._name = name

    def __getattr__(self, method: str) -> Any:
        if self._name in self._world.cut:
            raise ApiError(503, "ServiceUnavailable", "no way to the server")
        return getattr(self._world.client, method)


def test_one_acts_and_another_takes_over_when_it_ends() -> None:
    async def story() -> None:
        world = World()
        await world.start()
        async with AsyncExitStack() as rest:
            async with world.replica("a").running():
                await world.clock.advance(1)
                await rest.enter_async_context(world.replica("b").running())
                await world.clock.advance(30)
                assert world.acting == ["a"]
            await world.clock.advance(2)
            assert world.history == ["a", "b"]
            spec = await world.spec()
            assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("b", 1)
            assert spec["leaseDurationSeconds"] == 15
        assert (await world.spec())["holderIdentity"] == ""

    asyncio.run(story())


def test_one_that_was_killed_is_replaced_when_its_lease_is_over() -> None:
    async def story() -> None:
        world = World()
        await world.start()
        killed = Lease(world.client, "polyver", "polyver", "a", clock=world.clock)
        assert await killed.try_once()
        async with world.replica("b").running():
            await world.clock.advance(13)
            assert world.acting == []
            await world.clock.advance(5)
            assert world.acting == ["b"]

    asyncio.run(story())


def test_one_that_cannot_renew_stops_before_another_begins() -> None:
    async def story() -> None:
        world = World()
        await world.start()
        async with world.replica("a").running():
            await world.clock.advance(5)
            async with world.replica("b").running():
                world.cut = {"a"}
                await world.clock.advance(12)
                assert world.acting == []
                await world.clock.advance(10)
                assert world.acting == ["b"]
                world.cut = set()
                await world.clock.advance(60)
                assert world.history == ["a", "b"]

    asyncio.run(story())


def test_a_lease_that_was_deleted_is_made_again() -> None:
    async def story() -> None:
        world = World()
        await world.start()
        async with world.replica("a").running():
            await world.clock.advance(5)
            await world.client.delete(LEASES, "polyver", "polyver")
            await world.clock.advance(5)
            assert world.acting == ["a"]
            assert (await world.spec())["holderIdentity"] == "a"

    asyncio.run(story())


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 40)), max_size=12))
@settings(max_examples=25)
def test_never_two_act_whoever_is_cut_off(faults: list[tuple[str, int]]) -> None:
    async def story() -> None:
        world = World()
        await world.start()
        async with (
            world.replica("a").running(),
            world.replica("b").running(),
            world.replica("c").running(),
        ):
            for name, seconds in faults:
                world.cut ^= {name}
                await world.clock.advance(seconds)
            world.cut = set()
            await world.clock.advance(30)
            await settle()
            assert len(world.acting) == 1

    asyncio.run(story())
