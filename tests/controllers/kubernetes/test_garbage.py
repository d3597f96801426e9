"""The garbage collector on a small server: what a user sees of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from tests.client.fake import CONFIG_MAP, EVENT, NAMESPACE, NODE, SECRET, WIDGET, FakeApi
from tests.client.virtual import VirtualClock, settle
from tests.deadlines import HANG

from polyver.client import GroupVersionResource, Propagation, WatchEvent
from polyver.client.in_process import DirectClient
from polyver.controllers import ControllerManager, GarbageCollector
from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError
from polyver.kube.server.http import HttpRequest, User

UNKNOWN = "00000000-0000-0000-0000-000000000001"


class World:
    """A server with the namespaces `a` and `b`, and a collector at work."""

    def __init__(self) -> None:
        self.api = FakeApi()
        self.clock = VirtualClock()
        self.client = DirectClient(self.api, User("me"), clock=self.clock)

    async def make(
        self,
        kind: ResourceKind,
        name: str,
        *owners: Object,
        namespace: str = "a",
        **metadata: object,
    ) -> Object:
        about = {"name": name, "ownerReferences": list(owners)} | metadata
        inside = namespace if kind.namespaced else ""
        made = await self.client.create(GroupVersionResource.of(kind), {"metadata": about}, inside)
        return {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "name": name,
            "uid": made["metadata"]["uid"],
        }

    async def delete(
        self, kind: ResourceKind, name: str, propagation: Propagation = "Background"
    ) -> None:
        inside = "a" if kind.namespaced else ""
        await self.client.delete(
            GroupVersionResource.of(kind), name, inside, propagation=propagation
        )
        await settle()

    async def get(self, kind: ResourceKind, name: str, namespace: str = "a") -> Object:
        found = await self.client.get(GroupVersionResource.of(kind), name, namespace)
        metadata: Object = found["metadata"]
        return metadata


def run(scenario: Callable[[World], Awaitable[None]]) -> None:
    async def within() -> None:
        world = World()
        for name in "ab":
            await world.client.create(
                GroupVersionResource.of(NAMESPACE), {"metadata": {"name": name}}
            )
        collector = GarbageCollector(world.client, clock=world.clock)
        async with ControllerManager(world.client, [collector], clock=world.clock) as engine:
            await engine.ready()
            await asyncio.wait_for(scenario(world), HANG)

    asyncio.run(within())


def test_dependents_go_after_their_owner_down_to_the_last() -> None:
    async def scenario(world: World) -> None:
        first = await world.make(CONFIG_MAP, "first")
        second = await world.make(SECRET, "second", first)
        await world.make(CONFIG_MAP, "third", second)
        await world.delete(CONFIG_MAP, "first")
        assert world.api.names("configmaps") | world.api.names("secrets") == set()

    run(scenario)


def test_who_has_another_owner_loses_only_the_reference() -> None:
    async def scenario(world: World) -> None:
        owner = await world.make(CONFIG_MAP, "owner")
        other = await world.make(SECRET, "other")
        await world.make(CONFIG_MAP, "shared", owner, other | {"controller": True})
        await world.delete(CONFIG_MAP, "owner")
        found = await world.get(CONFIG_MAP, "shared")
        assert found["ownerReferences"] == [other | {"controller": True}]

    run(scenario)


def test_an_owner_that_never_was_or_has_another_uid_is_none() -> None:
    async def scenario(world: World) -> None:
        owner = await world.make(SECRET, "owner")
        await world.make(CONFIG_MAP, "one", owner | {"name": "none", "uid": UNKNOWN})
        await world.make(CONFIG_MAP, "two", owner | {"uid": UNKNOWN})
        await world.make(CONFIG_MAP, "three", owner)
        await settle()
        assert world.api.names("configmaps") == {"three"}

    run(scenario)


def test_in_the_foreground_the_owner_waits_for_those_who_block() -> None:
    async def scenario(world: World) -> None:
        owner = await world.make(CONFIG_MAP, "owner")
        blocking = owner | {"blockOwnerDeletion": True}
        await world.make(SECRET, "blocks", blocking, finalizers=["ex.io/one"])
        await world.make(SECRET, "does-not", owner, finalizers=["ex.io/one"])
        await world.delete(CONFIG_MAP, "owner", "Foreground")
        assert (await world.get(CONFIG_MAP, "owner"))["finalizers"] == ["foregroundDeletion"]
        for name in ("blocks", "does-not"):
            assert "deletionTimestamp" in await world.get(SECRET, name)
        change = {"metadata": {"finalizers": None}}
        await world.client.patch(GroupVersionResource.of(SECRET), "blocks", "a", change=change)
        await settle()
        assert world.api.names("configmaps") == set()
        assert world.api.names("secrets") == {"does-not"}

    run(scenario)


def test_a_circle_goes_in_the_foreground_too() -> None:
    async def scenario(world: World) -> None:
        first = await world.make(CONFIG_MAP, "first")
        second = await world.make(CONFIG_MAP, "second", first | {"blockOwnerDeletion": True})
        owners = [second | {"blockOwnerDeletion": True}]
        change = {"metadata": {"ownerReferences": owners}}
        await world.client.patch(GroupVersionResource.of(CONFIG_MAP), "first", "a", change=change)
        await world.delete(CONFIG_MAP, "first", "Foreground")
        await world.clock.advance(1)
        assert world.api.names("configmaps") == set()

    run(scenario)


def test_orphans_stay_without_their_owner() -> None:
    async def scenario(world: World) -> None:
        owner = await world.make(CONFIG_MAP, "owner")
        for name in ("x", "y"):
            await world.make(CONFIG_MAP, name, owner | {"blockOwnerDeletion": True})
        await world.delete(CONFIG_MAP, "owner", "Orphan")
        await world.clock.advance(1)
        assert world.api.names("configmaps") == {"x", "y"}
        assert "ownerReferences" not in await world.get(CONFIG_MAP, "x")

    run(scenario)


def test_an_orphan_that_is_heard_of_late_stays_too() -> None:
    async def scenario(world: World) -> None:
        owner = await world.make(CONFIG_MAP, "owner")
        held = asyncio.Event()
        events = world.client.watch

        async def late(
            resource: GroupVersionResource, *args: Any, **options: Any
        ) -> AsyncGenerator[WatchEvent, None]:
            async for event in events(resource, *args, **options):
                if resource.plural == "secrets":
                    await held.wait()
                yield event

        world.client.watch = late  # type: ignore[method-assign]
        world.api.end_watches()
        await world.clock.advance(1)
        await world.make(SECRET, "x", owner)
        await world.delete(CONFIG_MAP, "owner", "Orphan")
        held.set()
        await world.clock.advance(1)
        assert world.api.names("configmaps") == set()
        assert world.api.names("secrets") == {"x"}

    run(scenario)


def test_a_cluster_wide_owner_takes_dependents_of_all_namespaces_along() -> None:
    async def scenario(world: World) -> None:
        node = await world.make(NODE, "node")
        await world.make(CONFIG_MAP, "x", node)
        await world.make(CONFIG_MAP, "y", node, namespace="b")
        await settle()
        assert world.api.names("configmaps") == {"x", "y"}
        await world.delete(NODE, "node")
        assert world.api.names("configmaps") == set()

    run(scenario)


def test_an_owner_in_another_namespace_is_none_and_an_event_says_so() -> None:
    async def scenario(world: World) -> None:
        owner = await world.make(CONFIG_MAP, "owner", namespace="b")
        await settle()
        await world.make(CONFIG_MAP, "x", owner)
        await settle()
        assert world.api.names("configmaps") == {"owner"}
        [event] = (await world.client.list(GroupVersionResource.of(EVENT), "a")).items
        assert event["reason"] == "OwnerRefInvalidNamespace"
        where = f"[v1/ConfigMap, namespace: a, name: owner, uid: {owner['uid']}]"
        assert event["message"] == f'ownerRef {where} does not exist in namespace "a"'

    run(scenario)


def test_a_cluster_wide_object_with_an_owner_in_a_namespace_stays() -> None:
    async def scenario(world: World) -> None:
        owner = await world.make(CONFIG_MAP, "owner")
        await settle()
        await world.make(NODE, "x", owner)
        await world.delete(CONFIG_MAP, "owner")
        assert world.api.names("nodes") == {"x"}
        assert len((await world.client.list(GroupVersionResource.of(EVENT), "default")).items) <= 1

    run(scenario)


def test_an_owner_of_an_unknown_kind_saves_its_dependents_until_the_kind_is_served() -> None:
    async def scenario(world: World) -> None:
        await world.make(
            CONFIG_MAP,
            "x",
            {"apiVersion": "ex.io/v1", "kind": "Widget", "name": "none", "uid": UNKNOWN},
        )
        await world.clock.advance(600)
        assert world.api.names("configmaps") == {"x"}
        world.api.kinds.append(WIDGET)
        world.client.kinds_changed()
        await settle()
        assert world.api.names("configmaps") == set()

    run(scenario)


def test_custom_kinds_own_and_are_owned_from_the_moment_they_are_served() -> None:
    async def scenario(world: World) -> None:
        world.api.kinds.append(WIDGET)
        world.client.kinds_changed()
        owner = await world.make(WIDGET, "owner")
        await world.make(WIDGET, "x", owner)
        await world.make(CONFIG_MAP, "y", owner)
        await settle()
        await world.delete(WIDGET, "owner")
        assert world.api.names("widgets") | world.api.names("configmaps") == set()

    run(scenario)


def test_an_owner_that_goes_before_its_kind_is_watched_is_missed_nevertheless() -> None:
    async def scenario(world: World) -> None:
        world.api.kinds.append(WIDGET)
        world.api.breaks = lambda request: (
            ApiError(500, "", "broken") if request.path == "/apis/ex.io/v1/widgets" else None
        )
        world.client.kinds_changed()
        owner = await world.make(WIDGET, "owner")
        await world.make(CONFIG_MAP, "x", owner)
        await settle()
        assert world.api.names("configmaps") == {"x"}
        await world.delete(WIDGET, "owner")
        world.api.breaks = lambda _: None
        await world.clock.advance(30)
        assert world.api.names("configmaps") == set()

    run(scenario)


def test_an_owner_of_a_kind_that_is_never_watched_is_looked_for_now_and_then() -> None:
    async def scenario(world: World) -> None:
        owner = await world.make(EVENT, "owner")
        await world.make(CONFIG_MAP, "x", owner)
        await world.clock.advance(200)
        asked = [each for each in world.api.requests if each.endswith("/events/owner")]
        assert len(asked) == 4
        await world.delete(EVENT, "owner")
        await world.clock.advance(61)
        assert world.api.names("configmaps") == set()

    run(scenario)


def test_a_kind_that_vanishes_takes_nothing_along() -> None:
    """Discovery may be wrong; what is lost then is lost for good."""

    async def scenario(world: World) -> None:
        world.api.kinds.append(WIDGET)
        world.client.kinds_changed()
        owner = await world.make(WIDGET, "owner")
        await world.make(CONFIG_MAP, "x", owner)
        await settle()
        world.api.kinds.remove(WIDGET)
        world.client.kinds_changed()
        await world.clock.advance(60)
        assert world.api.names("configmaps") == {"x"}

    run(scenario)


def test_one_who_is_changed_all_the_time_is_collected_nevertheless() -> None:
    async def scenario(world: World) -> None:
        owner = await world.make(CONFIG_MAP, "owner")
        await world.make(CONFIG_MAP, "x", owner)
        await settle()

        def touch(request: HttpRequest) -> ApiError | None:
            path = ("", "configmaps", "a", "x")
            if request.method == "DELETE" and path in world.api.objects:
                content = world.api.objects[path] | {"data": {"k": str(world.api.version)}}
                world.api.write("MODIFIED", path, content)
            return None

        world.api.breaks = touch
        await world.delete(CONFIG_MAP, "owner")
        assert world.api.names("configmaps") == set()

    run(scenario)


def test_one_who_found_another_owner_in_time_is_spared() -> None:
    async def scenario(world: World) -> None:
        owner = await world.make(CONFIG_MAP, "owner")
        other = await world.make(SECRET, "other")
        await world.make(CONFIG_MAP, "x", owner)
        await settle()

        def adopt(request: HttpRequest) -> ApiError | None:
            if request.method == "DELETE" and request.path.endswith("/x"):
                world.api.breaks = lambda _: None
                path = ("", "configmaps", "a", "x")
                content = world.api.objects[path]
                about = content["metadata"] | {"ownerReferences": [owner, other]}
                world.api.write("MODIFIED", path, content | {"metadata": about})
            return None

        world.api.breaks = adopt
        await world.delete(CONFIG_MAP, "owner")
        await world.clock.advance(1)
        found = await world.get(CONFIG_MAP, "x")
        assert found["ownerReferences"] == [other]

    run(scenario)


def test_after_a_restart_it_goes_on_where_it_was() -> None:
    async def scenario() -> None:
        world = World()
        await world.client.create(GroupVersionResource.of(NAMESPACE), {"metadata": {"name": "a"}})
        owner = await world.make(CONFIG_MAP, "owner")
        for name in ("x", "y"):
            await world.make(CONFIG_MAP, name, owner | {"blockOwnerDeletion": True})
        await world.delete(CONFIG_MAP, "owner", "Foreground")
        async with ControllerManager(
            world.client, [GarbageCollector(world.client)], clock=world.clock
        ):
            await settle()
        assert world.api.names("configmaps") == set()

    asyncio.run(scenario())
