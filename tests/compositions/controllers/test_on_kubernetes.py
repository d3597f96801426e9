"""Controllers on a real API server that has none of its own: they run there as they do here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from tests.compositions import composing
from tests.compositions.controllers.composing import (
    BUCKETS,
    QUICK,
    World,
    condition,
    is_ready,
    says,
    settings,
)
from tests.compositions.controllers.test_composites_owning import applied_as_before, shared
from tests.deadlines import HANG

from polyver.client import GroupVersionResource, find
from polyver.client.cluster import ClusterClient, find_access
from polyver.compositions.messages import Request, Response, Result, Severity
from polyver.compositions.messages import Resource as Composed
from polyver.controllers import ControllerManager, GarbageCollector, NamespaceController
from polyver.testing import LocalCluster

MAPS = GroupVersionResource("", "v1", "configmaps")
NAMESPACES = GroupVersionResource("", "v1", "namespaces", namespaced=False)


async def gone(look: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(HANG):
        while await look() is not None:
            await asyncio.sleep(0.02)


@pytest.mark.kube
def test_garbage_and_namespaces_are_collected() -> None:
    async def scenario(client: ClusterClient) -> None:
        await client.create(NAMESPACES, {"metadata": {"name": "a"}})
        owner = await client.create(MAPS, {"metadata": {"name": "owner"}}, "a")
        reference = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "owner",
            "uid": owner["metadata"]["uid"],
        }
        owned = {"metadata": {"name": "owned", "ownerReferences": [reference]}}
        await client.create(MAPS, owned, "a")
        await client.create(MAPS, {"metadata": {"name": "free"}}, "a")
        await client.delete(MAPS, "owner", "a", propagation="Background")
        await gone(lambda: find(client, MAPS, "owned", "a"))
        assert await find(client, MAPS, "free", "a") is not None
        await client.delete(NAMESPACES, "a")
        await gone(lambda: find(client, NAMESPACES, "a"))

    async def run(cluster: LocalCluster) -> None:
        async with (
            ClusterClient(find_access(kubeconfig=cluster.kubeconfig)) as client,
            ControllerManager(client, [GarbageCollector(client), NamespaceController(client)]),
        ):
            await scenario(client)

    with LocalCluster(controllers=["serviceaccount-controller"]) as cluster:
        asyncio.run(run(cluster))


def moody(request: Request) -> Response:
    """Composes settings, tells their size, and takes no more than 9."""
    made = settings(request)
    size = int(request.observed.composite.resource["spec"]["size"])
    if size > 9:
        return replace(made, results=(Result(Severity.FATAL, "too large"),))
    status = {"small": True} if size < 5 else {"large": {"size": size}}
    desired = replace(made.desired, composite=Composed({"status": status}))
    return replace(made, desired=desired)


@pytest.mark.kube
def test_composite_resources_are_composed() -> None:
    async def scenario(world: World) -> None:
        version = composing.version()
        inside = {"type": "object", "properties": {"size": {"type": "integer"}}}
        status = {"type": "object", "properties": {"small": {"type": "boolean"}, "large": inside}}
        version["schema"]["openAPIV3Schema"]["properties"]["status"] = status
        await world.define(version)
        await world.install("a", 1, moody)
        await world.compose(composing.composition())
        await world.bucket(size=3)
        found = await world.until(is_ready)
        assert found["status"]["small"] is True
        await world.client.patch(BUCKETS, "my-bucket", change={"spec": {"size": 10}})
        found = await world.until(says("FatalResult"))
        assert condition(found, "Ready")["status"] == "True"
        assert found["status"]["small"] is True
        await world.client.patch(BUCKETS, "my-bucket", change={"spec": {"size": 7}})
        await world.mapped(settings={"size": "7"})
        found = await world.until(lambda found: is_ready(found) and "large" in found["status"])
        assert "small" not in found["status"]
        assert "message" not in condition(found, "Synced")
        await world.idle()
        written = (await world.client.get(BUCKETS, "my-bucket"))["metadata"]["resourceVersion"]
        runs = world.controller.counts["runs"]
        world.controller.wake(world.key)
        await world.ran(runs + 1)
        await world.idle()
        found = await world.client.get(BUCKETS, "my-bucket")
        assert found["metadata"]["resourceVersion"] == written
        await world.client.delete(BUCKETS, "my-bucket")
        await world.mapped()

    composing_on_a_cluster(scenario)


def composing_on_a_cluster(scenario: Callable[[World], Awaitable[None]]) -> None:
    async def run(cluster: LocalCluster) -> None:
        async with ClusterClient(find_access(kubeconfig=cluster.kubeconfig)) as client:
            world = World(client)
            await world.prepare()
            async with world.engine(limits=QUICK):
                await asyncio.wait_for(scenario(world), HANG)
            await world.close()

    with LocalCluster(controllers=["serviceaccount-controller"]) as cluster:
        asyncio.run(run(cluster))


@pytest.mark.kube
def test_composed_resources_are_not_taken_from_each_other_nor_lost_by_a_release() -> None:
    async def scenario(world: World) -> None:
        await world.define()
        await world.install("a", 1, shared)
        await world.compose(composing.composition())
        paused = {"metadata": {"annotations": {"crossplane.io/paused": "true"}}}
        owner = await world.bucket("one", size=1)
        await world.until(is_ready, "one")
        await world.client.patch(BUCKETS, "one", change=paused)
        await world.until(says("ReconcilePaused"), "one")
        # As it would be if one field manager had applied it for all, as in former releases.
        await world.client.delete(MAPS, "shared", "shop")
        await applied_as_before(world, owner, of="one", size="1", removed="since")
        await world.bucket("two", size=2)
        found = await world.until(says("ReconcileError"), "two")
        assert "AcmeBucket one" in condition(found, "Synced")["message"]
        there = await world.client.get(MAPS, "shared", "shop")
        assert there["data"] == {"of": "one", "size": "1", "removed": "since"}
        back = {"metadata": {"annotations": {"crossplane.io/paused": None}}}
        await world.client.patch(BUCKETS, "one", change=back)
        await world.mapped(shared={"of": "one", "size": "1"})
        await world.until(is_ready, "one")
        # A release that composes nothing is held.
        await world.install("b", 2, nothing)
        found = await world.until(lambda found: condition(found, "Updated"), "one")
        assert condition(found, "Updated")["reason"] == "WouldDelete"
        assert await world.maps() == {"shared": {"of": "one", "size": "1"}}

    composing_on_a_cluster(scenario)


def nothing(request: Request) -> Response:
    return replace(settings(request), desired=request.desired)
