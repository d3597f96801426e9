"""StorageVersionMigrations: what they write, what stops them, and where they go on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.client.virtual import VirtualClock
from tests.deadlines import HANG

from polyver.client import CRDS, GroupVersionResource
from polyver.client.in_process import DirectClient
from polyver.controllers import MigrationController
from polyver.controllers.kubernetes.migrations import MIGRATIONS, MigratedResource
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError
from polyver.kube.server.api import ApiServer
from polyver.kube.server.bootstrap import prepare
from polyver.kube.server.identity import CONTROLLERS
from polyver.kube.store.memory import MemoryStore

GROUP = "ex.io"
THINGS = {v: GroupVersionResource(GROUP, v, "things") for v in ("v1", "v2")}
NAME = f"things.{GROUP}"
KEY = MigratedResource(GROUP, "things")


class Interrupted(DirectClient):
    """A client that does something else before the first patches of some objects."""

    def __init__(self, api: ApiServer) -> None:
        super().__init__(api, CONTROLLERS, agent="kube-controller-manager")
        self.before: dict[str, Callable[[], Awaitable[None]]] = {}
        self.patched: list[str] = []

    async def patch(
        self, resource: GroupVersionResource, name: str, *rest: Any, **more: Any
    ) -> Any:
        if resource in THINGS.values():
            if name in self.before:
                await self.before.pop(name)()
            self.patched.append(name)
        return await super().patch(resource, name, *rest, **more)


class World:
    """A server with things that are stored in v1, while v2 is the storage version by now."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.api = ApiServer(MemoryStore(), now=self.clock.now)
        self.client = Interrupted(self.api)
        self.controller = MigrationController(self.client, clock=self.clock)

    async def begin(self) -> None:
        versions = [_version("v1", storage=True), _version("v2", storage=False)]
        names = {"plural": "things", "kind": "Thing"}
        spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": versions}
        about = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        await self.client.create(CRDS, {**about, "metadata": {"name": NAME}, "spec": spec})
        await self.until(lambda: self.api.catalogue.get(GROUP, "v1", "things") is not None)
        for name in "abc":
            thing = {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {"name": name}}
            await self.client.create(THINGS["v1"], thing, "default")
        await self.store_in("v2")

    async def store_in(self, version: str) -> None:
        versions = [_version(each, storage=each == version) for each in ("v1", "v2")]
        await self.client.patch(CRDS, NAME, change={"spec": {"versions": versions}})

        def is_done() -> bool:
            resource = self.api.catalogue.get(GROUP, "v1", "things")
            stored = resource.stored if resource is not None else None
            return stored is not None and stored.version == version

        await self.until(is_done)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(HANG):
            while not holds():
                await asyncio.sleep(0.005)

    async def ask(self, name: str = "all", plural: str = "things") -> None:
        about = {"apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration"}
        spec = {"resource": {"group": GROUP, "resource": plural}}
        await self.client.create(MIGRATIONS, {**about, "metadata": {"name": name}, "spec": spec})

    async def conditions(self, name: str = "all") -> dict[str, Object]:
        found = await self.client.get(MIGRATIONS, name)
        return {each["type"]: each for each in found["status"].get("conditions") or ()}

    async def reconcile(self, times: int = 1) -> None:
        for _ in range(times):
            await self.controller.reconcile(KEY)

    async def definition(self) -> tuple[list[str], Object]:
        crd = await self.client.get(CRDS, NAME)
        conditions = {each["type"]: each for each in crd["status"]["conditions"]}
        return crd["status"]["storedVersions"], conditions["StorageMigrating"]

    @property
    def stored(self) -> dict[str, str]:
        """The version in which each thing is stored."""
        resource = self.api.catalogue.get(GROUP, "v2", "things")
        assert resource is not None
        page = self.api.server.store.page(resource.key("default", ""), after="", limit=100)
        found = [resource.as_stored(entry) for entry in page.entries]
        return {each["metadata"]["name"]: each["apiVersion"][len(GROUP) + 1 :] for each in found}


def _version(name: str, *, storage: bool) -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    about = {"name": name, "served": True, "storage": storage}
    return about | {"schema": {"openAPIV3Schema": schema}}


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


def test_all_objects_are_stored_in_the_storage_version() -> None:
    async def scenario(world: World) -> None:
        assert world.stored == dict.fromkeys("abc", "v1")
        await world.ask()
        await world.reconcile()
        assert (await world.definition())[1]["reason"] == "MigrationRunning"
        await world.reconcile(2)
        assert world.stored == dict.fromkeys("abc", "v2")
        found = await world.conditions()
        assert (
            found["Running"]["message"] == "The migration is running, 3 objects verified migrated"
        )
        assert (await world.definition())[0] == ["v1", "v2"]
        await world.reconcile()
        assert (await world.conditions())["Running"]["status"] == "False"
        assert (await world.definition())[0] == ["v2"]

    run(scenario)


def test_an_interrupted_migration_goes_on_where_it_was() -> None:
    async def scenario(world: World) -> None:
        async def fail() -> None:
            raise ApiError(503, "ServiceUnavailable", "the webhook is away")

        await world.ask()
        await world.reconcile(2)
        world.client.before["b"] = fail
        with pytest.raises(ApiError):
            await world.reconcile()
        assert world.stored == {"a": "v2", "b": "v1", "c": "v1"}
        assert (await world.conditions())["Running"]["message"] == (
            "The migration is running, 2/3 objects not yet migrated; "
            "transient error: the webhook is away"
        )
        world.client.patched.clear()
        # A new process knows nothing but what is stored.
        world.controller = MigrationController(world.client, clock=world.clock)
        await world.reconcile(2)
        assert world.client.patched == ["b", "c"]
        assert (await world.definition())[0] == ["v2"]

    run(scenario)


def test_an_object_that_is_changed_or_deleted_meanwhile_is_left_alone() -> None:
    async def scenario(world: World) -> None:
        async def change() -> None:
            labels = {"metadata": {"labels": {"mine": "kept"}}}
            await world.client.patch(THINGS["v1"], "b", "default", change=labels)
            await world.client.delete(THINGS["v1"], "c", "default")
            thing = {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {"name": "d"}}
            await world.client.create(THINGS["v1"], thing, "default")

        await world.ask()
        await world.reconcile(2)
        world.client.before["a"] = change
        await world.reconcile(2)
        assert world.stored == dict.fromkeys("abd", "v2")
        found = await world.client.get(THINGS["v2"], "b", "default")
        assert found["metadata"]["labels"] == {"mine": "kept"}
        assert (await world.conditions())["Succeeded"]["status"] == "True"

    run(scenario)


def test_an_object_that_is_refused_fails_the_migration() -> None:
    async def scenario(world: World) -> None:
        async def refuse() -> None:
            raise ApiError(422, "Invalid", "b is wrong")

        await world.ask()
        await world.reconcile(2)
        world.client.before["b"] = refuse
        await world.reconcile()
        assert (await world.conditions())["Failed"]["message"] == (
            "2/3 not yet migrated. migration encountered unhandled error: b is wrong"
        )
        await world.reconcile()
        stored, condition = await world.definition()
        assert stored == ["v1", "v2"]
        assert (condition["status"], condition["reason"]) == ("False", "MigrationFailed")

    run(scenario)


def test_stored_versions_stay_if_the_definition_changes_meanwhile() -> None:
    async def scenario(world: World) -> None:
        await world.ask()
        await world.reconcile(2)
        await world.store_in("v1")
        await world.reconcile(2)
        stored, condition = await world.definition()
        assert {*stored} == {"v1", "v2"}
        assert condition["message"].endswith("not been updated due to a generation mismatch")

    run(scenario)


def test_migrations_of_a_resource_run_one_after_the_other() -> None:
    async def scenario(world: World) -> None:
        await world.ask("one")
        await world.ask("two")
        await world.reconcile(3)
        assert "Succeeded" in await world.conditions("one")
        assert await world.conditions("two") == {}
        await world.reconcile(4)
        assert (await world.conditions("two"))["Running"]["status"] == "False"
        assert (await world.conditions("two"))["Succeeded"]["status"] == "True"

    run(scenario)


def test_a_resource_that_does_not_exist_fails_after_a_minute() -> None:
    async def scenario(world: World) -> None:
        await world.ask(plural="nothings")
        key = MigratedResource(GROUP, "nothings")
        await world.controller.reconcile(key)
        await world.controller.reconcile(key)
        assert {*await world.conditions()} == {"Running"}
        await world.clock.advance(61)
        await world.controller.reconcile(key)
        found = await world.conditions()
        assert found["Failed"]["message"] == "resource does not exist in discovery"

    run(scenario)
