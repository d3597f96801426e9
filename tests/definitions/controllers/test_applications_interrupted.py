"""A controller that is killed between any two writes: who comes after it leaves nothing over."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.controllers.mortal import Mortal
from tests.definitions.controllers.world import APPLICATIONS, MINE, RECORDS, World, run
from tests.definitions.samples import CONFIG, condition, templated, versions_of

from polyver.client import GroupVersionResource
from polyver.client.in_process import DirectClient
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError
from polyver.kube.server.identity import CONTROLLERS

TWO = CONFIG + "---\n" + CONFIG.replace("context.name", "context.name }}-more{{ print ``")
AWAY = TWO.replace("-more{{ print ``", "-away{{ print ``").replace(
    "metadata: {", "metadata: {namespace: kube-public, ", 2
)


# It says what it will apply, records the revision, applies two objects, tells its status.
@pytest.mark.parametrize("after", range(1, 6))
def test_killed_while_it_is_made_it_is_made_once(after: int) -> None:
    async def scenario(world: World) -> None:
        await world.deploy(templated("1.0.0", TWO))
        mortal = Mortal(world.api, CONTROLLERS, after)
        await world.live(mortal, mortal.killed.wait)
        wanted = {"c0": "1.0.0", "c0_more": "1.0.0"}
        await world.live(world.client, lambda: world.settled("running", **wanted))
        assert len((await world.client.list(RECORDS, labels=MINE)).items) == 1

    asyncio.run(run(scenario))


# It tries both objects, and between these it deletes one object, and says what is left.
@pytest.mark.parametrize("after", range(1, 10))
def test_killed_while_it_moves_nothing_is_left_over(after: int) -> None:
    async def scenario(world: World) -> None:
        before, later = templated("1.0.0", AWAY), templated("1.1.0", TWO)
        await world.deploy(before)
        first = {"c0": "1.0.0", "c0_away": "1.0.0"}
        await world.live(world.client, lambda: world.settled("running", **first))
        await world.publish(before, later)
        mortal = Mortal(world.api, CONTROLLERS, after)
        await world.live(mortal, mortal.killed.wait)
        second = {"c0": "1.1.0", "c0_more": "1.1.0"}
        await world.live(world.client, lambda: world.settled("running", **second))

    asyncio.run(run(scenario))


# It says why it stays.
@pytest.mark.parametrize("template", ["", CONFIG.replace("{{ .parameter.image }}", "{{ fail }}")])
def test_killed_while_it_could_not_move_it_stays_as_it_is(template: str) -> None:
    async def scenario(world: World) -> None:
        before, later = templated("1.0.0", AWAY), templated("1.1.0", template)
        await world.deploy(before)
        first = {"c0": "1.0.0", "c0_away": "1.0.0"}
        await world.live(world.client, lambda: world.settled("running", **first))
        await world.publish(before, later)
        mortal = Mortal(world.api, CONTROLLERS, 1)
        await world.live(mortal, mortal.killed.wait)

        async def refused() -> None:
            found = await world.client.get(APPLICATIONS, "shop", "default")
            while condition(found, "Updated").get("status") != "False":
                await asyncio.sleep(0.005)
                found = await world.client.get(APPLICATIONS, "shop", "default")
            assert versions_of(found) == ["1.0.0"]

        await world.live(world.client, refused)
        await world.settled("running", **first)
        assert len((await world.client.list(RECORDS, labels=MINE)).items) == 1

    asyncio.run(run(scenario))


# It deletes what it does not own, deletes the revision, lets the application go.
@pytest.mark.parametrize("after", range(1, 4))
def test_killed_while_it_goes_nothing_is_left_over(after: int) -> None:
    async def scenario(world: World) -> None:
        await world.deploy(templated("1.0.0", AWAY))
        first = {"c0": "1.0.0", "c0_away": "1.0.0"}
        await world.live(world.client, lambda: world.settled("running", **first))
        await world.client.delete(APPLICATIONS, "shop", "default")
        mortal = Mortal(world.api, CONTROLLERS, after)
        await world.live(mortal, mortal.killed.wait)
        await world.live(world.client, lambda: world.settled(""))
        assert not (await world.client.list(RECORDS, labels=MINE)).items

    asyncio.run(run(scenario))


class Fickle(DirectClient):
    """A server that refuses an object of 1.1.0 after a dry run of it succeeded."""

    async def apply(self, resource: GroupVersionResource, content: Object, **more: Any) -> Object:
        name, version = content["metadata"]["name"], content.get("data", {}).get("version")
        if (name, version) == ("shop-c0-more", "1.1.0") and not more.get("dry_run"):
            raise ApiError(422, "Invalid", "it is refused now")
        return await super().apply(resource, content, **more)


def test_what_is_refused_after_the_trial_is_taken_back() -> None:
    async def scenario(world: World) -> None:
        before, later = templated("1.0.0"), templated("1.1.0", TWO)
        await world.deploy(before)
        await world.live(world.client, lambda: world.settled("running", c0="1.0.0"))
        await world.publish(before, later)

        async def taken_back() -> None:
            found = await world.client.get(APPLICATIONS, "shop", "default")
            while condition(found, "Updated").get("reason") != "NotApplied":
                await asyncio.sleep(0.005)
                found = await world.client.get(APPLICATIONS, "shop", "default")
            assert versions_of(found) == ["1.0.0"]
            assert "it is refused now" in condition(found, "Updated")["message"]

        await world.live(Fickle(world.api, CONTROLLERS), taken_back)
        await world.settled("running", c0="1.0.0")
        assert len((await world.client.list(RECORDS, labels=MINE)).items) == 1

    asyncio.run(run(scenario))
