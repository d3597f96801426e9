"""The health of an applied object in a list: its items have neither apiVersion nor kind."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.definitions.controllers.world import World, run

from polyver.client import GroupVersionResource
from polyver.controllers import Watch
from polyver.definitions.controllers.applications import ApplicationController

CLAIMS = GroupVersionResource("", "v1", "persistentvolumeclaims")
CLAIM: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "pending", "namespace": "default"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    },
}


def test_an_object_of_a_list_is_as_healthy_as_the_object_itself() -> None:
    async def scenario(world: World) -> None:
        made = await world.client.create(CLAIMS, CLAIM, manager="test")
        [item] = (await world.client.list(CLAIMS, "default")).items
        discovery = await world.client.discover()
        [kind] = [each for each in discovery.kinds if each.kind == "PersistentVolumeClaim"]
        outputs: Watch[Any, Any] = ApplicationController(world.client).watches[-1]
        assert not outputs.keep(kind, made).health.healthy
        assert outputs.keep(kind, item) == outputs.keep(kind, made)

    asyncio.run(run(scenario))
