"""The controllers on the embedded server: what the transcripts of deletion show, at its speed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.deadlines import HANG
from tests.kube.record import transcript

from polyver.client import GroupVersionResource, Propagation
from polyver.client.in_process import DirectClient
from polyver.controllers import (
    AccountController,
    ControllerManager,
    GarbageCollector,
    NamespaceController,
)
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError
from polyver.kube.server.api import ApiServer
from polyver.kube.server.http import User
from polyver.kube.store import MemoryStore

SPACES = GroupVersionResource("", "v1", "namespaces", namespaced=False)
MAPS = GroupVersionResource("", "v1", "configmaps")
SECRETS = GroupVersionResource("", "v1", "secrets")
ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
ROLES = GroupVersionResource("rbac.authorization.k8s.io", "v1", "clusterroles", namespaced=False)
DEFINITIONS = GroupVersionResource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
)
PLAINS = GroupVersionResource("ex.io", "v1", "plains")
CONTROLLERS = User("system:kube-controller-manager", ("system:masters", "system:authenticated"))
KINDS = {MAPS: "ConfigMap", SECRETS: "Secret", ROLES: "ClusterRole", PLAINS: "Plain"}
UNKNOWN = "00000000-0000-0000-0000-000000000001"


class World:
    """An embedded server with the namespace `a`, and its controllers at work."""

    def __init__(self) -> None:
        self.api = ApiServer(MemoryStore())
        self.client = DirectClient(self.api, CONTROLLERS, agent="kube-controller-manager")
        self.api.catalogue.subscribe(self.client.kinds_changed)
        self.engine = ControllerManager(
            self.client,
            [
                GarbageCollector(self.client),
                NamespaceController(self.client),
                AccountController(self.client, ca="the CA"),
            ],
        )

    async def make(
        self, resource: GroupVersionResource, name: str, *owners: Object, **metadata: object
    ) -> Object:
        group = f"{resource.group}/" if resource.group else ""
        kind = {"apiVersion": f"{group}{resource.version}", "kind": KINDS[resource]}
        about = {"name": name, "ownerReferences": list(owners)} | metadata
        inside = "a" if resource.namespaced else ""
        made = await self.client.create(resource, kind | {"metadata": about}, inside)
        return kind | {"name": name, "uid": made["metadata"]["uid"]}

    async def get(self, resource: GroupVersionResource, name: str) -> Object | None:
        inside = "a" if resource.namespaced else ""
        try:
            return await self.client.get(resource, name, inside)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    async def delete(
        self, resource: GroupVersionResource, name: str, propagation: Propagation = "Background"
    ) -> None:
        inside = "a" if resource.namespaced else ""
        await self.client.delete(resource, name, inside, propagation=propagation)

    async def until(
        self, resource: GroupVersionResource, name: str, holds: Callable[[Any], bool]
    ) -> Object | None:
        """An object, as soon as it is as it should be; in vain this would go on for ever."""
        while not holds(found := await self.get(resource, name)):
            await asyncio.sleep(0.001)
        return found

    async def gone(self, resource: GroupVersionResource, name: str) -> None:
        await self.until(resource, name, lambda found: found is None)

    async def release(self, resource: GroupVersionResource, name: str) -> None:
        change = {"metadata": {"finalizers": None}}
        await self.client.patch(resource, name, "a", change=change)

    async def serve_plains(self) -> None:
        await self.client.create(DEFINITIONS, _definition())
        while (await self.client.discover()).find("ex.io/v1", "Plain") is None:
            await asyncio.sleep(0.001)


def _definition() -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "plains.ex.io"},
        "spec": {
            "group": "ex.io",
            "scope": "Namespaced",
            "names": {"plural": "plains", "singular": "plain", "kind": "Plain"},
            "versions": [version],
        },
    }


def run(scenario: Callable[[World], Awaitable[None]]) -> None:
    async def within() -> None:
        world = World()
        serving = asyncio.create_task(world.api.run())
        async with world.engine:
            await world.client.create(
                SPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}
            )
            async with asyncio.timeout(HANG):
                await scenario(world)
                while world.engine.problems:  # a kind that was just withdrawn is still asked for
                    await asyncio.sleep(0.01)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(within())


def _deleting(found: Object | None) -> bool:
    return found is not None and "deletionTimestamp" in found["metadata"]


def test_in_the_background() -> None:
    async def scenario(world: World) -> None:
        owner = await world.make(MAPS, "owner")
        other = await world.make(SECRETS, "other")
        await world.make(MAPS, "dependent", owner)
        await world.make(MAPS, "shared", owner, other)
        await world.delete(MAPS, "owner")
        await world.gone(MAPS, "dependent")
        await world.until(
            MAPS, "shared", lambda found: found["metadata"]["ownerReferences"] == [other]
        )

    run(scenario)


@pytest.mark.parametrize("blocks", [True, False])
def test_in_the_foreground(blocks: bool) -> None:
    async def scenario(world: World) -> None:
        owner = await world.make(MAPS, "owner")
        reference = owner | ({"blockOwnerDeletion": True} if blocks else {})
        await world.make(SECRETS, "dependent", reference, finalizers=["ex.io/one"])
        await world.delete(MAPS, "owner", "Foreground")
        await world.until(SECRETS, "dependent", _deleting)
        if blocks:
            assert _deleting(await world.get(MAPS, "owner"))
            await world.release(SECRETS, "dependent")
            await world.gone(SECRETS, "dependent")
        await world.gone(MAPS, "owner")

    run(scenario)


def test_orphans() -> None:
    async def scenario(world: World) -> None:
        owner = await world.make(MAPS, "owner")
        await world.make(MAPS, "dependent", owner | {"blockOwnerDeletion": True})
        await world.delete(MAPS, "owner", "Orphan")
        await world.gone(MAPS, "owner")
        found = await world.get(MAPS, "dependent")
        assert found is not None
        assert "ownerReferences" not in found["metadata"]

    run(scenario)


def test_without_an_owner() -> None:
    async def scenario(world: World) -> None:
        owner = await world.make(SECRETS, "owner")
        await world.make(MAPS, "a", owner | {"name": "none", "uid": UNKNOWN})
        await world.make(MAPS, "b", owner | {"uid": UNKNOWN})
        await world.gone(MAPS, "a")
        await world.gone(MAPS, "b")

    run(scenario)


def test_a_cluster_wide_owner() -> None:
    async def scenario(world: World) -> None:
        owner = await world.make(ROLES, "owner")
        await world.make(MAPS, "dependent", owner)
        await world.delete(ROLES, "owner")
        await world.gone(MAPS, "dependent")

    run(scenario)


def test_many_dependents_go_at_once() -> None:
    async def scenario(world: World) -> None:
        owner = await world.make(MAPS, "owner")
        blocking = owner | {"blockOwnerDeletion": True}
        for number in range(200):
            await world.make(SECRETS, f"d{number}", blocking)
        await world.delete(MAPS, "owner", "Foreground")
        await world.gone(MAPS, "owner")
        assert (await world.client.list(SECRETS, "a")).items == []

    run(scenario)


def test_custom_kinds_own_and_go_with_their_definition() -> None:
    async def scenario(world: World) -> None:
        await world.serve_plains()
        owner = await world.make(PLAINS, "owner")
        await world.make(PLAINS, "dependent", owner)
        await world.make(MAPS, "dependent", owner)
        await world.delete(PLAINS, "owner")
        await world.gone(PLAINS, "dependent")
        await world.gone(MAPS, "dependent")
        another = await world.make(PLAINS, "another")
        await world.make(MAPS, "last", another)
        await world.client.delete(DEFINITIONS, "plains.ex.io")
        await world.gone(MAPS, "last")

    run(scenario)


def test_a_namespace_goes_with_all_that_is_in_it() -> None:
    async def scenario(world: World) -> None:
        await world.make(MAPS, "m")
        await world.make(SECRETS, "s")
        await world.client.delete(SPACES, "a")
        await world.gone(SPACES, "a")
        for resource in (MAPS, SECRETS, ACCOUNTS):
            found = await world.client.list(resource)
            assert [each for each in found.items if each["metadata"]["namespace"] == "a"] == []

    run(scenario)


def test_a_namespace_held_by_a_finalizer() -> None:
    async def scenario(world: World) -> None:
        await world.make(SECRETS, "s", finalizers=["ex.io/one"])
        await world.client.delete(SPACES, "a")
        found = await world.until(SPACES, "a", lambda found: found["status"].get("conditions"))
        assert found is not None
        steps = transcript("namespace-held-by-a-finalizer")
        assert steps
        recorded = steps[2]["body"]["status"]["conditions"]
        for real, ours in zip(recorded, found["status"]["conditions"], strict=True):
            for field in ("type", "status", "reason"):
                assert ours[field] == real[field]
        await world.release(SECRETS, "s")
        await world.gone(SPACES, "a")

    run(scenario)


def test_a_new_namespace_has_what_all_have() -> None:
    async def scenario(world: World) -> None:
        await world.until(ACCOUNTS, "default", bool)
        found = await world.until(MAPS, "kube-root-ca.crt", bool)
        assert found is not None
        assert found["data"] == {"ca.crt": "the CA"}
        await world.client.delete(ACCOUNTS, "default", "a")
        await world.until(ACCOUNTS, "default", bool)

    run(scenario)
