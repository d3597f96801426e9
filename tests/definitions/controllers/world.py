"""A control plane in this process, whose controller of applications is started again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.deadlines import HANG
from tests.definitions.samples import GROUP, SYSTEM, application, definition

from polyver.apis.capability import own_webhook, serve_kinds
from polyver.capability.capability import Surroundings
from polyver.client import Client, GroupVersionResource, find
from polyver.client.in_process import DirectClient
from polyver.controllers import Controller, ControllerManager, GarbageCollector
from polyver.core.plain import Object
from polyver.definitions.capability import CAPABILITY
from polyver.definitions.controllers.applications import ApplicationController
from polyver.kube.server.api import ApiServer
from polyver.kube.server.bootstrap import prepare
from polyver.kube.server.identity import CONTROLLERS
from polyver.kube.store import MemoryStore

APPLICATIONS = GroupVersionResource(GROUP, "v1beta1", "applications")
RECORDS = GroupVersionResource(GROUP, "v1beta1", "applicationrevisions")
DEFINITIONS = GroupVersionResource(GROUP, "v2beta1", "componentdefinitions")
MAPS = GroupVersionResource("", "v1", "configmaps")
NAMESPACES = GroupVersionResource("", "v1", "namespaces", namespaced=False)
MINE = "app.oam.dev/name=shop"


class World:
    """A control plane whose controller of applications is started again and again."""

    def __init__(self, api: ApiServer, client: DirectClient) -> None:
        self.api, self.client = api, client

    async def maps(self) -> dict[str, str]:
        """What the application has: versions by names."""
        found = await self.client.list(MAPS, labels=MINE)
        return {each["metadata"]["name"]: each["data"]["version"] for each in found.items}

    async def settled(self, state: str, **maps: str) -> None:
        """Until the application is in a state, with these objects and no others."""
        wanted = {f"shop-{name.replace('_', '-')}": version for name, version in maps.items()}
        while not (await self.state() == state and await self.maps() == wanted):
            await asyncio.sleep(0.005)

    async def state(self) -> str:
        found = await find(self.client, APPLICATIONS, "shop", "default")
        return str((found or {}).get("status", {}).get("status", ""))

    async def live(self, client: Client, until: Callable[[], Awaitable[object]]) -> None:
        """Have the controller run with a client, until something is so."""
        async with (
            ControllerManager(client, [ApplicationController(client)]),
            asyncio.timeout(HANG),
        ):
            await until()

    async def deploy(self, *versions: Object) -> None:
        """Publish the definition, and have the application."""
        await self.publish(*versions)
        app = application("shop", "web@1", properties={"image": "a"})
        await self.client.apply(APPLICATIONS, app, manager="test")

    async def publish(self, *versions: Object) -> None:
        made = definition("web", *versions)
        await self.client.apply(DEFINITIONS, made, manager="test", force=True)
        while await self.published() != len(versions):
            await asyncio.sleep(0.005)

    async def published(self) -> int:
        found = await self.client.get(DEFINITIONS, "web", SYSTEM)
        return len(found.get("status", {}).get("versions") or ())


async def run(scenario: Callable[[World], Awaitable[None]]) -> None:
    api = ApiServer(MemoryStore())
    await prepare(api, port=6443)
    client = DirectClient(api, CONTROLLERS)
    api.catalogue.subscribe(client.kinds_changed)
    serving = asyncio.create_task(api.run())
    around: list[Controller[Any]] = [GarbageCollector(client)]
    own = CAPABILITY.contribution(None, Surroundings())
    around += await serve_kinds(api, client, own.kinds, own_webhook("127.0.0.1:6443", ""))
    for link in own.links(client):
        api.admission.add(link)
    await client.create(NAMESPACES, {"metadata": {"name": SYSTEM}})
    around += own.controllers(client)
    others = [each for each in around if not isinstance(each, ApplicationController)]
    async with ControllerManager(client, others):
        await scenario(World(api, client))
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
