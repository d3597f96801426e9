"""Applications where polyver may not do everything, and where others are faster than watches."""

from __future__ import annotations

import asyncio

import msgspec
from tests.definitions.controllers.world import APPLICATIONS, MAPS, RECORDS, World, run
from tests.definitions.samples import application, condition, templated

from polyver.client.client import ClientRequest, ClientResponse
from polyver.client.in_process import DirectClient
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError
from polyver.kube.server.api import ApiServer
from polyver.kube.server.identity import CONTROLLERS

NAME = "app.oam.dev/name"
FORBIDDEN = (
    'configmaps "shop-c0" is forbidden: User "system:serviceaccount:polyver-system:polyver" cannot '
    'patch resource "configmaps" in API group "" in the namespace "default"'
)


class Limited(DirectClient):
    """A user who may do something with ConfigMaps, but not everything."""

    def __init__(self, api: ApiServer, *methods: str) -> None:
        super().__init__(api, CONTROLLERS)
        self._methods = methods

    async def _send(self, ask: ClientRequest) -> ClientResponse:
        if "/configmaps" in ask.path and ask.method in self._methods:
            status = ApiError(403, "Forbidden", FORBIDDEN).status
            return ClientResponse(403, msgspec.json.encode(status))
        return await super()._send(ask)


def test_a_right_that_is_missing_is_named() -> None:
    async def scenario(world: World) -> None:
        await world.deploy(templated("1.0.0"))
        limited = Limited(world.api, "PATCH")
        await world.live(limited, lambda: world.settled("failed"))
        found = await world.client.get(APPLICATIONS, "shop", "default")
        told = condition(found, "Applied")
        assert (told["status"], told["reason"]) == ("False", "Forbidden")
        assert told["message"] == f"ConfigMap default/shop-c0 (spec.components[0]): {FORBIDDEN}"
        await world.live(world.client, lambda: world.settled("running", c0="1.0.0"))

    asyncio.run(run(scenario))


def test_a_revision_that_a_backup_brought_is_found_though_the_watch_is_behind() -> None:
    async def scenario(world: World) -> None:
        await world.publish(templated("1.0.0"))
        app = application("shop", "web", properties={"image": "a"})
        await world.client.create(APPLICATIONS, app)
        await world.live(world.client, lambda: world.settled("running", c0="1.0.0"))
        [record] = (await world.client.list(RECORDS)).items
        backup = _restored(record, "shop-v7")
        await world.client.delete(APPLICATIONS, "shop", "default")
        await world.live(world.client, lambda: world.settled(""))
        await world.publish(templated("1.0.0"), templated("2.0.0"))

        async def restore() -> None:
            await world.client.create(RECORDS, backup)
            await world.client.create(APPLICATIONS, app)
            await world.settled("running", c0="1.0.0")

        await world.live(world.client, restore)

    asyncio.run(run(scenario))


def _restored(record: Object, name: str) -> Object:
    kept = {each: record["metadata"][each] for each in ("namespace", "labels", "annotations")}
    about = {each: record[each] for each in ("apiVersion", "kind", "spec")}
    return {**about, "metadata": {**kept, "name": name}}


def test_what_somebody_makes_at_the_same_moment_is_not_taken() -> None:
    class Overtaken(DirectClient):
        """Somebody makes an object between a look and the write that follows."""

        async def _send(self, ask: ClientRequest) -> ClientResponse:
            if ask.method == "PATCH" and ask.path.endswith("/configmaps/shop-c0"):
                theirs = {"metadata": {"name": "shop-c0"}, "data": {"mine": "yes"}}
                try:
                    await world_client.create(MAPS, theirs, "default", manager="somebody")
                except ApiError as error:
                    if error.code != 409:
                        raise
            return await super()._send(ask)

    world_client: DirectClient

    async def scenario(world: World) -> None:
        nonlocal world_client
        world_client = world.client
        await world.deploy(templated("1.0.0"))
        await world.live(Overtaken(world.api, CONTROLLERS), lambda: world.settled("failed"))
        found = await world.client.get(APPLICATIONS, "shop", "default")
        assert "belongs to other users of somebody" in condition(found, "Applied")["message"]
        left = await world.client.get(MAPS, "shop-c0", "default")
        assert left["data"] == {"mine": "yes"}
        assert "ownerReferences" not in left["metadata"]

    asyncio.run(run(scenario))


def test_of_two_applications_that_make_an_object_at_the_same_moment_one_has_it() -> None:
    class Slow(DirectClient):
        """Delays reads, so that both applications read the same state before either writes."""

        async def _send(self, ask: ClientRequest) -> ClientResponse:
            answer = await super()._send(ask)
            if ask.path.endswith("/configmaps/a-b-c"):
                if ask.method == "GET":
                    await asyncio.sleep(0.1)
                if ask.method == "PATCH" and answer.status < 300:
                    owners.append(msgspec.json.decode(answer.body)["metadata"]["labels"][NAME])
            return answer

    owners: list[str] = []

    async def scenario(world: World) -> None:
        await world.publish(templated("1.0.0"))
        for name, component in (("a", "b-c"), ("a-b", "c")):
            app = application(name, "web@1", properties={"image": "a"})
            app["spec"]["components"][0]["name"] = component
            await world.client.create(APPLICATIONS, app)

        async def states() -> list[str]:
            found = (await world.client.list(APPLICATIONS)).items
            return sorted(each.get("status", {}).get("status", "") for each in found)

        async def settled() -> None:
            while await states() != ["failed", "running"]:
                await asyncio.sleep(0.005)

        await world.live(Slow(world.api, CONTROLLERS), settled)
        assert len(set(owners)) == 1

    asyncio.run(run(scenario))
