"""Controllers on a real API server that has none of its own: they run there as they do here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from polyver.client import Resource, find
from polyver.client.cluster import ClusterClient, find_access
from polyver.engine import Engine, GarbageCollector, NamespaceController
from polyver.testing import LocalCluster

MAPS = Resource("", "v1", "configmaps")
NAMESPACES = Resource("", "v1", "namespaces", namespaced=False)


async def gone(look: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(30):
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
            Engine(client, [GarbageCollector(client), NamespaceController(client)]),
        ):
            await scenario(client)

    with LocalCluster(controllers=["serviceaccount-controller"]) as cluster:
        asyncio.run(run(cluster))
