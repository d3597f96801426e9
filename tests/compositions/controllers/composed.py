"""A control plane that serves compositions, and whose controllers of them tests start again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.compositions.composing import GROUP, KIND
from tests.compositions.controllers.installing import condition
from tests.deadlines import HANG

from polyver.apis.capability import own_webhook, serve_conversions, serve_kinds
from polyver.client import CRDS, Client, GroupVersionResource, find
from polyver.client.in_process import DirectClient
from polyver.compositions.capability import package_links
from polyver.compositions.controllers.compositions import (
    COMPOSITION_REVISIONS,
    COMPOSITIONS,
    DEFINITIONS,
    CompositeDefinitionController,
    CompositionController,
)
from polyver.compositions.controllers.packages import NoDependents
from polyver.compositions.kinds import COMPOSITION_KINDS
from polyver.compositions.names import COMPOSITION
from polyver.controllers import Controller, ControllerManager, GarbageCollector
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError
from polyver.kube.server.api import ApiServer
from polyver.kube.server.bootstrap import prepare
from polyver.kube.server.identity import ADMIN
from polyver.kube.store import MemoryStore

NAME = f"acmebuckets.{GROUP}"
CONVERSIONS = GroupVersionResource("polyver.dev", "v1alpha1", "conversions", namespaced=False)
EVENTS = GroupVersionResource("", "v1", "events")


def buckets(version: str = "v1alpha1") -> GroupVersionResource:
    return GroupVersionResource(GROUP, version, "acmebuckets", namespaced=False)


def bucket(name: str = "one", *, version: str = "v1alpha1", revision: str = "") -> Object:
    using = {"compositionRevisionRef": {"name": revision}} if revision else {}
    api_version = f"{GROUP}/{version}"
    return {"apiVersion": api_version, "kind": KIND, "metadata": {"name": name}, "spec": using}


class World:
    """An API server with the kinds of compositions, whose controllers are started by `live`."""

    def __init__(self, api: ApiServer, client: DirectClient, *, several: bool) -> None:
        self.api, self.client, self.several = api, client, several

    def controllers(self, client: Client) -> list[Controller[Any]]:
        return [
            CompositeDefinitionController(client),
            CompositionController(client, several=self.several),
        ]

    async def live(
        self, until: Callable[[], Awaitable[object]], client: Client | None = None
    ) -> None:
        """Have the controllers run, until something has happened."""
        mine = client or self.client
        async with ControllerManager(mine, self.controllers(mine)), asyncio.timeout(HANG):
            await until()

    async def write(self, resource: GroupVersionResource, obj: Object) -> Object:
        """Create an object, or have it say what this one says."""
        while True:
            found = await find(self.client, resource, obj["metadata"]["name"])
            try:
                if found is None:
                    return await self.client.create(resource, obj)
                labels = obj["metadata"].get("labels") or {}
                metadata = {**found["metadata"], "labels": labels}
                return await self.client.update(
                    resource, {**found, "metadata": metadata, "spec": obj["spec"]}
                )
            except ApiError as error:
                if error.reason != "Conflict":
                    raise

    async def until(
        self, resource: GroupVersionResource, name: str, holds: Callable[[Object], object]
    ) -> Object:
        """An object, as soon as it is as it should be; in vain this would go on for ever."""
        while True:
            found = await find(self.client, resource, name)
            if found is not None and holds(found):
                return found
            await asyncio.sleep(0.002)

    async def created(self, resource: GroupVersionResource, obj: Object) -> Object:
        """An object of a version that is served in a moment."""
        while True:
            try:
                return await self.client.create(resource, obj)
            except ApiError as error:
                if error.code != 404:
                    raise
            await asyncio.sleep(0.002)

    async def gone(self, resource: GroupVersionResource, name: str) -> None:
        while await find(self.client, resource, name) is not None:
            await asyncio.sleep(0.002)

    async def told(self, kind: str, status: str, reason: str, name: str = NAME) -> str:
        """What a condition of a definition says, as soon as it is that one."""

        def holds(obj: Object) -> bool:
            said = condition(obj, kind)
            current = said.get("observedGeneration") == obj["metadata"]["generation"]
            return current and (said.get("status"), said.get("reason")) == (status, reason)

        found = await self.until(DEFINITIONS, name, holds)
        return str(condition(found, kind).get("message", ""))

    async def established(self, name: str = NAME) -> Object:
        """The definition, as soon as its kind is served as it says."""
        await self.told("Applied", "True", "Applied", name)
        await self.told("Established", "True", "WatchingCompositeResource", name)
        return await self.client.get(DEFINITIONS, name)

    async def crd(self) -> Object:
        return await self.client.get(CRDS, NAME)

    async def event(self, reason: str) -> str:
        """What an Event says, as soon as there is one."""
        while True:
            for each in (await self.client.list(EVENTS)).items:
                if each["reason"] == reason:
                    return str(each["message"])
            await asyncio.sleep(0.002)

    async def revisions(self, composition: str = "example") -> list[Object]:
        """By their numbers."""
        labels = f"{COMPOSITION}={composition}"
        found = (await self.client.list(COMPOSITION_REVISIONS, labels=labels)).items
        return sorted(found, key=lambda each: int(each["spec"]["revision"]))

    async def numbered(self, *numbers: int, composition: str = "example") -> list[Object]:
        """The revisions, as soon as they have these numbers."""
        while True:
            found = await self.revisions(composition)
            if [each["spec"]["revision"] for each in found] == [*numbers]:
                return found
            await asyncio.sleep(0.002)


async def _play(
    scenario: Callable[[World], Awaitable[None]], *, several: bool, admitted: bool
) -> None:
    api = ApiServer(MemoryStore())
    await prepare(api, port=6443)
    client = DirectClient(api, ADMIN, agent="polyver")
    api.catalogue.subscribe(client.kinds_changed)
    serving = asyncio.create_task(api.run())
    webhook = own_webhook("127.0.0.1:6443", "")
    around: list[Controller[Any]] = [GarbageCollector(client)]
    around += await serve_conversions(api, client, webhook)
    around += await serve_kinds(api, client, COMPOSITION_KINDS, webhook)
    if admitted:
        for link in package_links(client, NoDependents(), several=several):
            api.admission.add(link)
    async with ControllerManager(client, around):
        await asyncio.wait_for(scenario(World(api, client, several=several)), HANG)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


def run(
    scenario: Callable[[World], Awaitable[None]], *, several: bool = True, admitted: bool = True
) -> None:
    """Play a scenario on a control plane of its own, with all controllers but those of `live`."""
    asyncio.run(_play(scenario, several=several, admitted=admitted))


def alive(
    scenario: Callable[[World], Awaitable[None]], *, several: bool = True, admitted: bool = True
) -> None:
    """The same with the controllers of compositions at work all the time."""

    async def whole(world: World) -> None:
        await world.live(lambda: scenario(world))

    run(whole, several=several, admitted=admitted)


__all__ = [
    "COMPOSITIONS",
    "COMPOSITION_REVISIONS",
    "CONVERSIONS",
    "DEFINITIONS",
    "NAME",
    "World",
    "alive",
    "bucket",
    "buckets",
    "run",
]
