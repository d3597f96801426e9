"""Composed resources: each has one composite resource, and nobody takes it from another."""

from __future__ import annotations

import asyncio
import json

from tests.compositions import composing
from tests.compositions.controllers.composing import (
    BUCKETS,
    MAPS,
    SECRETS,
    World,
    condition,
    is_ready,
    run,
    says,
)
from tests.compositions.controllers.installing import ADMIN
from tests.compositions.running import config, passing

from polyver.client import find
from polyver.client.client import ClientRequest, ClientResponse
from polyver.client.in_process import DirectClient
from polyver.compositions.controllers.composites._apply import MANAGER
from polyver.compositions.messages import Ready, Request, Resource, Response, State
from polyver.core.plain import Object
from polyver.kube.server.api import ApiServer


def shared(request: Request) -> Response:
    """Composes an object that is called the same for everybody, and always calls it ready."""
    composite = request.observed.composite.resource
    name, size = composite["metadata"]["name"], composite["spec"].get("size", 0)
    data = {"of": name} | ({"size": str(int(size))} if size else {})
    made = {"shared": Resource(config("shared", **data), ready=Ready.TRUE)}
    return passing(request, desired=State(resources=made))


async def prepared(world: World) -> None:
    await world.define()
    await world.install("a", 1, shared)
    await world.compose(composing.composition())


def controller(found: Object) -> str:
    [owner] = found["metadata"]["ownerReferences"]
    assert owner["controller"]
    return str(owner["name"])


def test_the_second_is_told_who_has_an_object_and_the_object_stays_as_it_is() -> None:
    async def scenario(world: World) -> None:
        await prepared(world)
        await world.bucket("one", size=1)
        await world.until(is_ready, "one")
        before = await world.client.get(MAPS, "shared", "shop")
        await world.bucket("two", size=2)
        found = await world.until(says("ReconcileError"), "two")
        message = condition(found, "Synced")["message"]
        assert "AcmeBucket one" in message
        assert condition(found, "Ready")["status"] == "False"
        await world.until_told("Taken", message.removeprefix("not accepted: "))
        assert await world.client.get(MAPS, "shared", "shop") == before
        assert is_ready(await world.client.get(BUCKETS, "one"))
        await world.client.delete(BUCKETS, "two")
        await world.gone("two")
        assert await world.client.get(MAPS, "shared", "shop") == before

    run(scenario)


def test_when_the_first_is_deleted_the_second_gets_an_object_of_its_own() -> None:
    async def scenario(world: World) -> None:
        await prepared(world)
        await world.bucket("one")
        await world.until(is_ready, "one")
        await world.bucket("two")
        await world.until(says("ReconcileError"), "two")
        await world.client.delete(BUCKETS, "one")
        await world.until(is_ready, "two")
        found = await world.client.get(MAPS, "shared", "shop")
        assert (controller(found), found["data"]) == ("two", {"of": "two"})

    # Nothing is tried again in time: it has to be woken.
    run(scenario, patient=True)


class Simultaneous(DirectClient):
    """Holds back the first applies of composed resources until there are two of them."""

    def __init__(self, api: ApiServer) -> None:
        super().__init__(api, ADMIN)
        self.both = asyncio.Event()
        self._waiting = 0

    async def _send(self, ask: ClientRequest) -> ClientResponse:
        if ask.method == "PATCH" and ask.path.endswith("/configmaps/shared"):
            self._waiting += 1
            if self._waiting >= 2:
                self.both.set()
            await self.both.wait()
        return await super()._send(ask)


def test_of_two_at_the_same_moment_one_has_it_and_the_other_is_told() -> None:
    async def scenario(world: World) -> None:
        await prepared(world)
        await world.bucket("one")
        await world.bucket("two")
        async with world.engine(Simultaneous(world.api)):
            while True:
                found = [await world.client.get(BUCKETS, name) for name in ("one", "two")]
                if all(condition(each, "Synced") for each in found):
                    break
                await asyncio.sleep(0.002)
        there = await world.client.get(MAPS, "shared", "shop")
        [winner] = [each for each in found if is_ready(each)]
        [loser] = [each for each in found if not is_ready(each)]
        assert controller(there) == winner["metadata"]["name"] == there["data"]["of"]
        assert f"AcmeBucket {controller(there)}" in condition(loser, "Synced")["message"]

    run(scenario, acting=False)


async def applied_as_before(world: World, owner: Object, **data: str) -> Object:
    """An object as it was applied when one field manager was for all composite resources."""
    about = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
    about |= {name: owner["metadata"][name] for name in ("name", "uid")}
    metadata = {
        "name": "shared",
        "namespace": "shop",
        "labels": {"crossplane.io/composite": owner["metadata"]["name"]},
        "annotations": {"crossplane.io/composition-resource-name": "shared"},
        "ownerReferences": [{**about, "blockOwnerDeletion": True}],
    }
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    return await world.client.apply(MAPS, obj, manager=MANAGER, force=True)


def test_objects_of_the_former_field_manager_are_taken_over_as_a_whole() -> None:
    async def scenario(world: World) -> None:
        await prepared(world)
        owner = await world.bucket("one", size=1)
        await applied_as_before(world, owner, of="one", size="1", removed="since")
        async with world.engine():
            await world.until(is_ready, "one")
            found = await world.client.get(MAPS, "shared", "shop")
            assert found["data"] == {"of": "one", "size": "1"}
            assert controller(found) == "one"
            managers = {each["manager"] for each in found["metadata"]["managedFields"]}
            assert managers == {f"{MANAGER}-acmebucket-{owner['metadata']['uid']}"}
            # A field that is wanted no longer goes, as ever.
            await world.client.patch(BUCKETS, "one", change={"spec": {"size": 0}})
            await world.mapped(shared={"of": "one"})

    run(scenario, acting=False)


def test_an_object_of_the_former_field_manager_is_not_taken_from_its_owner() -> None:
    async def scenario(world: World) -> None:
        await prepared(world)
        owner = await world.bucket("one", crossplane={}, size=1)
        await applied_as_before(world, owner, of="one")
        await world.client.patch(
            BUCKETS, "one", change={"metadata": {"annotations": {"crossplane.io/paused": "true"}}}
        )
        await world.bucket("two")
        async with world.engine():
            found = await world.until(says("ReconcileError"), "two")
            assert "AcmeBucket one" in condition(found, "Synced")["message"]
        there = await world.client.get(MAPS, "shared", "shop")
        assert (controller(there), there["data"]) == ("one", {"of": "one"})

    run(scenario, acting=False)


def test_what_an_owner_left_behind_is_adopted_without_its_fields() -> None:
    async def scenario(world: World) -> None:
        await prepared(world)
        await world.bucket("one", size=1)
        await world.until(is_ready, "one")
        await world.client.delete(BUCKETS, "one", propagation="Orphan")
        await world.gone("one")
        there = await world.client.get(MAPS, "shared", "shop")
        assert there["data"]["size"] == "1"
        await world.bucket("two")
        await world.until(is_ready, "two")
        found = await world.client.get(MAPS, "shared", "shop")
        assert (controller(found), found["data"]) == ("two", {"of": "two"})

    run(scenario)


def test_two_that_publish_to_the_same_secret() -> None:
    async def scenario(world: World) -> None:
        def telling(request: Request) -> Response:
            name = request.observed.composite.resource["metadata"]["name"]
            return passing(request, desired=State(Resource({}, {"user": name.encode()})))

        await world.define()
        await world.install("a", 1, telling)
        await world.compose(composing.composition())
        to = {"writeConnectionSecretToRef": {"namespace": "shop", "name": "key"}}
        await world.bucket("one", **to)
        await world.until(is_ready, "one")
        before = await world.client.get(SECRETS, "key", "shop")
        await world.bucket("two", **to)
        await world.until(says("ReconcileError"), "two")
        assert await find(world.client, SECRETS, "key", "shop") == before
        assert json.dumps(before["metadata"]["managedFields"]).count('"manager"') == 1

    run(scenario)
