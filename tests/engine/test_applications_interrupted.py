"""A controller that is killed between any two writes: who comes after it leaves nothing over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.capabilities.definitions.samples import (
    CONFIG,
    GROUP,
    SYSTEM,
    application,
    definition,
    templated,
)

from polyver.capabilities.definitions.kinds import KINDS
from polyver.cli._apis import serve_apis
from polyver.cli._definitions import serve_definitions
from polyver.client import Client, Object, Resource, find
from polyver.client.rest import Answer, Ask
from polyver.engine import Controller, Engine, GarbageCollector
from polyver.engine.applications import ApplicationController
from polyver.server.api import Api
from polyver.server.bootstrap import prepare
from polyver.server.direct import DirectClient
from polyver.server.identity import CONTROLLERS
from polyver.store import MemoryStore

APPLICATIONS = Resource(GROUP, "v1beta1", "applications")
RECORDS = Resource(GROUP, "v1beta1", "applicationrevisions")
DEFINITIONS = Resource(GROUP, "v2beta1", "componentdefinitions")
MAPS = Resource("", "v1", "configmaps")
MINE = "app.oam.dev/name=shop"
TWO = CONFIG + "---\n" + CONFIG.replace("context.name", "context.name }}-more{{ print ``")
AWAY = TWO.replace("-more{{ print ``", "-away{{ print ``").replace(
    "metadata: {", "metadata: {namespace: kube-public, ", 2
)


class Killed(Exception):
    """What a process that is gone does: nothing any more."""


class Mortal(DirectClient):
    """A client of a process that is killed right after one of its writes."""

    def __init__(self, api: Api, after: int) -> None:
        super().__init__(api, CONTROLLERS)
        self._left = after
        self.killed = asyncio.Event()

    async def _send(self, ask: Ask) -> Answer:
        if self.killed.is_set():
            raise Killed
        answer = await super()._send(ask)
        if ask.method != "GET":
            self._left -= 1
            if self._left == 0:
                self.killed.set()
                raise Killed
        return answer


class World:
    """A control plane whose controller of applications is started again and again."""

    def __init__(self, api: Api, client: DirectClient) -> None:
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
        async with Engine(client, [ApplicationController(client)]), asyncio.timeout(20):
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
    api = Api(MemoryStore())
    await prepare(api, port=6443)
    client = DirectClient(api, CONTROLLERS)
    api.catalogue.subscribe(client.kinds_changed)
    serving = asyncio.create_task(api.run())
    around: list[Controller[Any]] = [GarbageCollector(client)]
    around += await serve_apis(api, KINDS, address="127.0.0.1:6443", ca="")
    around += await serve_definitions(api, client)
    others = [each for each in around if not isinstance(each, ApplicationController)]
    async with Engine(client, others):
        await scenario(World(api, client))
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


# It says what it will apply, records the revision, applies two objects, tells its status.
@pytest.mark.parametrize("after", range(1, 6))
def test_killed_while_it_is_made_it_is_made_once(after: int) -> None:
    async def scenario(world: World) -> None:
        await world.deploy(templated("1.0.0", TWO))
        mortal = Mortal(world.api, after)
        await world.live(mortal, mortal.killed.wait)
        wanted = {"c0": "1.0.0", "c0_more": "1.0.0"}
        await world.live(world.client, lambda: world.settled("running", **wanted))
        assert len((await world.client.list(RECORDS, labels=MINE)).items) == 1

    asyncio.run(run(scenario))


# Between these, it deletes one object, and says what is left.
@pytest.mark.parametrize("after", range(1, 8))
def test_killed_while_it_moves_nothing_is_left_over(after: int) -> None:
    async def scenario(world: World) -> None:
        before, later = templated("1.0.0", AWAY), templated("1.1.0", TWO)
        await world.deploy(before)
        first = {"c0": "1.0.0", "c0_away": "1.0.0"}
        await world.live(world.client, lambda: world.settled("running", **first))
        await world.publish(before, later)
        mortal = Mortal(world.api, after)
        await world.live(mortal, mortal.killed.wait)
        second = {"c0": "1.1.0", "c0_more": "1.1.0"}
        await world.live(world.client, lambda: world.settled("running", **second))

    asyncio.run(run(scenario))


# It deletes what it does not own, deletes the revision, lets the application go.
@pytest.mark.parametrize("after", range(1, 4))
def test_killed_while_it_goes_nothing_is_left_over(after: int) -> None:
    async def scenario(world: World) -> None:
        await world.deploy(templated("1.0.0", AWAY))
        first = {"c0": "1.0.0", "c0_away": "1.0.0"}
        await world.live(world.client, lambda: world.settled("running", **first))
        await world.client.delete(APPLICATIONS, "shop", "default")
        mortal = Mortal(world.api, after)
        await world.live(mortal, mortal.killed.wait)
        await world.live(world.client, lambda: world.settled(""))
        assert not (await world.client.list(RECORDS, labels=MINE)).items

    asyncio.run(run(scenario))
