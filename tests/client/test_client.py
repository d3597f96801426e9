"""One suite for every client: whatever a controller relies on holds wherever it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

import pytest
from tests.client.fake import FakeApi

from polyver.client import Client, Object, Propagation, Resource, preferred
from polyver.objects.status import ApiError
from polyver.server._http import User
from polyver.server.direct import DirectClient
from polyver.store import MemoryStore

MAPS = Resource("", "v1", "configmaps")
NAMESPACES = Resource("", "v1", "namespaces", namespaced=False)
ADMIN = User("admin", ("system:masters", "system:authenticated"))


def fake() -> Client:
    return DirectClient(FakeApi(), ADMIN)


def embedded() -> Client:
    from polyver.server.api import Api

    return DirectClient(Api(MemoryStore()), ADMIN)


@pytest.fixture(params=[fake, embedded])
def run(request: pytest.FixtureRequest) -> Callable[[Callable[[Client], Awaitable[None]]], None]:
    """Runs a scenario on a fresh server with a namespace `a`."""

    def within(scenario: Callable[[Client], Awaitable[None]]) -> None:
        async def prepared() -> None:
            client: Client = request.param()
            await client.create(NAMESPACES, _object("Namespace", "a"))
            await asyncio.wait_for(scenario(client), 10)

        asyncio.run(prepared())

    return within


Run = Callable[[Callable[[Client], Awaitable[None]]], None]


def _object(kind: str, name: str, **more: object) -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **more}


def _map(name: str, **metadata: object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "a", **metadata},
    }


def test_what_was_created_is_got_and_listed(run: Run) -> None:
    async def scenario(client: Client) -> None:
        made = await client.create(MAPS, _map("m"))
        assert await client.get(MAPS, "m", "a") == made
        listing = await client.list(MAPS, "a")
        assert [item["metadata"]["name"] for item in listing.items] == ["m"]
        assert int(listing.resource_version) >= int(made["metadata"]["resourceVersion"])

    run(scenario)


def test_a_refusal_has_a_code_and_a_reason(run: Run) -> None:
    async def scenario(client: Client) -> None:
        with pytest.raises(ApiError, match="not found") as caught:
            await client.get(MAPS, "m", "a")
        assert (caught.value.code, caught.value.reason) == (404, "NotFound")
        await client.create(MAPS, _map("m"))
        with pytest.raises(ApiError) as caught:
            await client.create(MAPS, _map("m"))
        assert (caught.value.code, caught.value.reason) == (409, "AlreadyExists")

    run(scenario)


def test_a_kind_that_is_not_served_is_not_found(run: Run) -> None:
    async def scenario(client: Client) -> None:
        with pytest.raises(ApiError) as caught:
            await client.list(Resource("none.io", "v1", "things"))
        assert caught.value.code == 404

    run(scenario)


def test_a_name_never_leads_to_another_path(run: Run) -> None:
    async def scenario(client: Client) -> None:
        for name in ("", "..", "m/status"):
            with pytest.raises(ValueError, match="not the name"):
                await client.delete(MAPS, name, "a")

    run(scenario)


def test_pages_go_on_after_each_other(run: Run) -> None:
    async def scenario(client: Client) -> None:
        for number in range(5):
            await client.create(MAPS, _map(f"m{number}"))
        names, more = [], ""
        while True:
            page = await client.list(MAPS, "a", limit=2, more=more)
            assert len(page.items) <= 2
            names += [item["metadata"]["name"] for item in page.items]
            more = page.more
            if not more:
                break
        assert names == [f"m{number}" for number in range(5)]

    run(scenario)


def test_labels_select(run: Run) -> None:
    async def scenario(client: Client) -> None:
        await client.create(MAPS, _map("m", labels={"x": "1"}))
        await client.create(MAPS, _map("n", labels={"x": "2"}))
        found = await client.list(MAPS, labels="x=2")
        assert [item["metadata"]["name"] for item in found.items] == ["n"]

    run(scenario)


def test_an_update_of_an_old_state_is_a_conflict(run: Run) -> None:
    async def scenario(client: Client) -> None:
        old = await client.create(MAPS, _map("m"))
        new = await client.update(MAPS, old | {"data": {"k": "1"}})
        assert new["data"] == {"k": "1"}
        with pytest.raises(ApiError) as caught:
            await client.update(MAPS, old | {"data": {"k": "2"}})
        assert (caught.value.code, caught.value.reason) == (409, "Conflict")

    run(scenario)


def test_patches_merge_or_go_step_by_step(run: Run) -> None:
    async def scenario(client: Client) -> None:
        await client.create(MAPS, _map("m") | {"data": {"k": "1"}})
        merged = await client.patch(MAPS, "m", "a", change={"data": {"k": None, "l": "2"}})
        assert merged["data"] == {"l": "2"}
        steps = [{"op": "add", "path": "/data/m", "value": "3"}]
        patched = await client.patch(MAPS, "m", "a", change=steps, type="json")
        assert patched["data"] == {"l": "2", "m": "3"}

    run(scenario)


def test_a_patch_never_meets_another_object_of_the_same_name(run: Run) -> None:
    async def scenario(client: Client) -> None:
        await client.create(MAPS, _map("m"))
        with pytest.raises(ApiError) as caught:
            await client.patch(MAPS, "m", "a", change={"metadata": {"uid": "other"}})
        assert (caught.value.code, caught.value.reason) == (422, "Invalid")

    run(scenario)


def test_apply_makes_what_is_not_there_and_changes_what_is(run: Run) -> None:
    async def scenario(client: Client) -> None:
        made = await client.apply(MAPS, _map("m") | {"data": {"k": "1"}}, manager="me")
        assert made["data"] == {"k": "1"}
        changed = await client.apply(MAPS, _map("m") | {"data": {"k": "2"}}, manager="me")
        assert changed["data"] == {"k": "2"}
        assert changed["metadata"]["uid"] == made["metadata"]["uid"]

    run(scenario)


def test_a_status_is_written_apart(run: Run) -> None:
    async def scenario(client: Client) -> None:
        found = await client.get(NAMESPACES, "a")
        condition = {"type": "Tried", "status": "True"}
        status = found["status"] | {"conditions": [condition]}
        told = found | {"status": status, "metadata": found["metadata"] | {"labels": {"x": "y"}}}
        after = await client.update(NAMESPACES, told, subresource="status")
        assert after["status"]["conditions"][0]["type"] == "Tried"
        assert "x" not in after["metadata"].get("labels", {})

    run(scenario)


def test_a_dry_run_changes_nothing(run: Run) -> None:
    async def scenario(client: Client) -> None:
        await client.create(MAPS, _map("m"), dry_run=True)
        assert (await client.list(MAPS, "a")).items == []

    run(scenario)


def test_only_the_very_object_is_deleted(run: Run) -> None:
    async def scenario(client: Client) -> None:
        made = await client.create(MAPS, _map("m"))
        version = made["metadata"]["resourceVersion"]
        with pytest.raises(ApiError) as caught:
            await client.delete(MAPS, "m", "a", uid="other")
        assert caught.value.code == 409
        await client.patch(MAPS, "m", "a", change={"data": {"k": "1"}})
        with pytest.raises(ApiError) as caught:
            await client.delete(MAPS, "m", "a", resource_version=version)
        assert caught.value.code == 409
        await client.delete(MAPS, "m", "a", uid=made["metadata"]["uid"])
        assert (await client.list(MAPS, "a")).items == []

    run(scenario)


@pytest.mark.parametrize(
    ("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")]
)
def test_how_dependents_are_treated_is_a_finalizer(
    run: Run, policy: Propagation, finalizer: str
) -> None:
    async def scenario(client: Client) -> None:
        await client.create(MAPS, _map("m"))
        held = await client.delete(MAPS, "m", "a", propagation=policy)
        assert held["metadata"]["finalizers"] == [finalizer]
        assert "deletionTimestamp" in held["metadata"]

    run(scenario)


def test_a_collection_is_deleted_by_label(run: Run) -> None:
    async def scenario(client: Client) -> None:
        await client.create(MAPS, _map("m", labels={"x": "1"}))
        await client.create(MAPS, _map("n"))
        await client.delete_collection(MAPS, "a", labels="x=1", propagation="Background")
        assert [each["metadata"]["name"] for each in (await client.list(MAPS, "a")).items] == ["n"]

    run(scenario)


def test_metadata_alone_can_be_asked_for(run: Run) -> None:
    async def scenario(client: Client) -> None:
        made = await client.create(MAPS, _map("m") | {"data": {"k": "1"}})
        uid = made["metadata"]["uid"]
        one = await client.get(MAPS, "m", "a", metadata=True)
        [item] = (await client.list(MAPS, "a", metadata=True)).items
        for found in (one, item):
            assert found["metadata"]["uid"] == uid
            assert "data" not in found
        async with aclosing(client.watch(MAPS, resource_version="1", metadata=True)) as events:
            event = await anext(events)
        assert event.object["metadata"]["uid"] == uid
        assert "data" not in event.object

    run(scenario)


def test_a_watch_tells_every_change_in_order(run: Run) -> None:
    async def scenario(client: Client) -> None:
        version = (await client.list(MAPS, "a")).resource_version
        await client.create(MAPS, _map("m"))
        await client.patch(MAPS, "m", "a", change={"data": {"k": "1"}})
        await client.delete(MAPS, "m", "a")
        async with aclosing(client.watch(MAPS, "a", resource_version=version)) as events:
            found = [(await anext(events)).type for _ in range(3)]
        assert found == ["ADDED", "MODIFIED", "DELETED"]

    run(scenario)


def test_a_watch_goes_on_while_others_write(run: Run) -> None:
    async def scenario(client: Client) -> None:
        version = (await client.list(MAPS, "a")).resource_version
        async with aclosing(client.watch(MAPS, "a", resource_version=version)) as events:
            waiting = asyncio.create_task(anext(events))
            await asyncio.sleep(0)
            await client.create(MAPS, _map("m"))
            event = await waiting
        assert (event.type, event.object["metadata"]["name"]) == ("ADDED", "m")

    run(scenario)


def test_what_is_served_is_discovered(run: Run) -> None:
    async def scenario(client: Client) -> None:
        found = await client.discover()
        kind = found.find("v1", "ConfigMap")
        assert kind is not None
        assert Resource.of(kind) == MAPS
        assert {"delete", "list", "watch"} <= set(kind.verbs)
        namespaces = found.find("v1", "Namespace")
        assert namespaces is not None
        assert not namespaces.namespaced
        every = [(kind.group, kind.plural) for kind in preferred(found.kinds, verbs=["list"])]
        assert len(every) == len(set(every))
        assert not found.failures

    run(scenario)
