"""VersionUsages are written by several replicas, and lose nothing when a write fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.client.virtual import VirtualClock
from tests.deadlines import HANG

from polyver.apis import crd_of
from polyver.apis.controllers.usage import UsageController
from polyver.apis.version_usage import VERSION_USAGE_RESOURCE, VERSION_USAGES
from polyver.client import CRDS, GroupVersionResource
from polyver.client.in_process import DirectClient
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError
from polyver.kube.server.api import ApiServer
from polyver.kube.server.bootstrap import prepare
from polyver.kube.server.identity import CONTROLLERS
from polyver.kube.server.request_counts import RequestCounts
from polyver.kube.store.memory import MemoryStore

NAME = "lamps.ex.io"


class Disturbed(DirectClient):
    """A client that does something else before its first update."""

    def __init__(self, api: ApiServer) -> None:
        super().__init__(api, CONTROLLERS)
        self.before: Callable[[], Awaitable[None]] | None = None

    async def update(self, resource: GroupVersionResource, *rest: Any, **more: Any) -> Any:
        disturb, self.before = self.before, None
        if disturb is not None:
            await disturb()
        return await super().update(resource, *rest, **more)


class World:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.api = ApiServer(MemoryStore(), now=self.clock.now)
        self.client = Disturbed(self.api)

    async def begin(self) -> None:
        await self.client.create(CRDS, crd_of(VERSION_USAGES.definition()))
        await self.define()

    async def define(self) -> None:
        schema = {"openAPIV3Schema": {"type": "object"}}
        versions = [
            {"name": each, "served": True, "storage": each == "v2", "schema": schema}
            for each in ("v1", "v2")
        ]
        names = {"plural": "lamps", "kind": "Lamp"}
        spec = {"group": "ex.io", "scope": "Namespaced", "names": names, "versions": versions}
        about = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        await self.client.create(CRDS, {**about, "metadata": {"name": NAME}, "spec": spec})
        async with asyncio.timeout(HANG):
            while self.api.custom_kinds() != {NAME, VERSION_USAGES.definition().name}:
                await asyncio.sleep(0.005)

    async def replica(self, source: Any = "APIServer") -> tuple[RequestCounts, UsageController]:
        counts = RequestCounts(lambda: self.clock.now().timestamp())
        made = UsageController(self.client, counts, lambda: [NAME], source=source, clock=self.clock)
        assert [*made.discovered(await self.client.discover())]
        return counts, made

    async def usage(self) -> Object:
        found = await self.client.get(VERSION_USAGE_RESOURCE, NAME)
        return dict(found["status"])

    async def requests(self) -> dict[str, int]:
        versions = (await self.usage()).get("versions") or ()
        return {each["version"]: each["requests"] for each in versions}


def run(scenario: Callable[[World], Awaitable[None]]) -> None:
    async def main() -> None:
        world = World()
        await prepare(world.api, port=6443)
        running = asyncio.create_task(world.api.run())
        try:
            await world.begin()
            await scenario(world)
        finally:
            running.cancel()
            await asyncio.wait((running,))

    asyncio.run(main())


def test_a_kind_without_requests_has_a_usage_that_says_since_when() -> None:
    async def scenario(world: World) -> None:
        _, made = await world.replica()
        await made.reconcile("")
        assert await world.usage() == {"since": "2026-01-01T00:00:00Z", "source": "APIServer"}

    run(scenario)


def test_replicas_that_write_at_the_same_time_lose_no_request() -> None:
    async def scenario(world: World) -> None:
        one, first = await world.replica()
        two, second = await world.replica()
        await first.reconcile("")
        one.count(NAME, "v1", "jo", "kubectl/1")
        two.count(NAME, "v1", "jo", "kubectl/1")
        two.count(NAME, "v2", "ann")

        async def write() -> None:
            await second.reconcile("")

        world.client.before = write
        await first.reconcile("")
        assert await world.requests() == {"v1": 2, "v2": 1}
        assert (await world.usage())["versions"][0]["clients"][0]["requests"] == 2

    run(scenario)


def test_counts_that_could_not_be_written_are_written_later() -> None:
    async def scenario(world: World) -> None:
        counts, made = await world.replica()
        await made.reconcile("")

        async def fail() -> None:
            raise ApiError(503, "ServiceUnavailable", "the store is away")

        for _ in range(2):
            counts.count(NAME, "v1", "jo")
            world.client.before = fail
            with pytest.raises(ApiError):
                await made.reconcile("")
        counts.count(NAME, "v1", "jo")
        await made.close()
        assert await world.requests() == {"v1": 3}

    run(scenario)


def test_nothing_is_written_if_nothing_was_counted() -> None:
    async def scenario(world: World) -> None:
        counts, made = await world.replica()
        counts.count(NAME, "v1", "jo")
        await made.reconcile("")
        revision = world.api.server.store.revision
        await made.reconcile("")
        await made.close()
        assert world.api.server.store.revision == revision

    run(scenario)


def test_conversions_to_the_storage_version_and_own_requests_are_left_out() -> None:
    async def scenario(world: World) -> None:
        counts, made = await world.replica("Webhooks")
        for version in ("v1", "v2"):
            counts.converted(NAME, version, 5)
            counts.count(NAME, version, CONTROLLERS.name)
        counts.count(NAME, "v2", "jo")
        await made.reconcile("")
        old, new = (await world.usage())["versions"]
        assert (old["version"], old["requests"], old["conversions"]) == ("v1", 0, 5)
        assert (new["requests"], [each["user"] for each in new["clients"]]) == (1, ["jo"])
        assert "conversions" not in new

    run(scenario)


def test_clients_are_removed_a_month_after_their_last_request() -> None:
    async def scenario(world: World) -> None:
        counts, made = await world.replica()
        counts.count(NAME, "v1", "jo")
        await made.reconcile("")
        await world.clock.advance(31 * 86400)
        counts.count(NAME, "v1", "ann")
        await made.reconcile("")
        [version] = (await world.usage())["versions"]
        assert [each["user"] for each in version["clients"]] == ["ann"]
        assert version["requests"] == 2

    run(scenario)


def test_a_kind_that_was_deleted_and_created_again_begins_anew() -> None:
    async def scenario(world: World) -> None:
        counts, made = await world.replica()
        counts.count(NAME, "v1", "jo")
        await made.reconcile("")
        await world.client.delete(CRDS, NAME)
        async with asyncio.timeout(HANG):
            while NAME in world.api.custom_kinds():
                await asyncio.sleep(0.005)
        counts.count(NAME, "v1", "jo")
        await made.reconcile("")  # for a kind that does not exist
        await world.define()
        counts.count(NAME, "v1", "ann")
        # The garbage collector, which does not run here, deletes the usage of the earlier kind.
        await made.reconcile("")
        await world.client.delete(VERSION_USAGE_RESOURCE, NAME)
        await made.reconcile("")
        assert await world.requests() == {"v1": 1}

    run(scenario)
