"""One suite for every client: whatever a controller relies on holds wherever it runs.

In process on a small API in memory, in process on the embedded server, over HTTPS to the embedded
server, and over HTTPS to a real one.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest
from tests.client.running import (
    NAMESPACES,
    ONE,
    SECRETS,
    TWO,
    Run,
    next_of,
    secret,
)

from polyver.client import Client, GroupVersionResource, Propagation, find, preferred
from polyver.kube.objects.status import ApiError


def test_what_was_created_is_got_and_listed(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        made = await client.create(SECRETS, secret("m", ns))
        assert await client.get(SECRETS, "m", ns) == made
        listing = await client.list(SECRETS, ns)
        assert [item["metadata"]["name"] for item in listing.items] == ["m"]
        assert int(listing.resource_version) >= int(made["metadata"]["resourceVersion"])

    run(scenario)


def test_a_refusal_has_a_code_and_a_reason(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        with pytest.raises(ApiError, match="not found") as caught:
            await client.get(SECRETS, "m", ns)
        assert (caught.value.code, caught.value.reason) == (404, "NotFound")
        await client.create(SECRETS, secret("m", ns))
        with pytest.raises(ApiError) as caught:
            await client.create(SECRETS, secret("m", ns))
        assert (caught.value.code, caught.value.reason) == (409, "AlreadyExists")

    run(scenario)


def test_a_kind_that_is_not_served_is_not_found(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        with pytest.raises(ApiError) as caught:
            await client.list(GroupVersionResource("none.io", "v1", "things"))
        assert caught.value.code == 404

    run(scenario)


def test_a_name_never_leads_to_another_path(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        for name in ("", "..", "m/status"):
            for call in (client.delete, client.get):
                with pytest.raises(ApiError, match="is not a name") as caught:
                    await call(SECRETS, name, ns)
                assert (caught.value.code, caught.value.reason) == (404, "NotFound")
            assert await find(client, SECRETS, "m", f"{ns}/secrets") is None
            with pytest.raises(ApiError, match=r"invalid metadata\.name") as caught:
                await client.apply(SECRETS, secret(name, ns), manager="test")
            assert caught.value.code == 400
        with pytest.raises(ApiError, match="invalid namespace") as caught:
            await client.list(SECRETS, "../nodes")
        assert caught.value.code == 400

    run(scenario)


def test_pages_go_on_after_each_other(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        for number in range(5):
            await client.create(SECRETS, secret(f"m{number}", ns))
        names, more = [], ""
        while True:
            page = await client.list(SECRETS, ns, limit=2, more=more)
            assert len(page.items) <= 2
            names += [item["metadata"]["name"] for item in page.items]
            more = page.more
            if not more:
                break
        assert names == [f"m{number}" for number in range(5)]

    run(scenario)


def test_labels_select(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        await client.create(SECRETS, secret("m", ns, labels={"x": "1"}))
        await client.create(SECRETS, secret("n", ns, labels={"x": "2"}))
        found = await client.list(SECRETS, labels="x=2")
        assert [item["metadata"]["name"] for item in found.items] == ["n"]

    run(scenario)


def test_an_update_of_an_old_state_is_a_conflict(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        old = await client.create(SECRETS, secret("m", ns))
        new = await client.update(SECRETS, old | {"data": {"k": ONE}})
        assert new["data"] == {"k": ONE}
        with pytest.raises(ApiError) as caught:
            await client.update(SECRETS, old | {"data": {"k": TWO}})
        assert (caught.value.code, caught.value.reason) == (409, "Conflict")

    run(scenario)


def test_patches_merge_or_go_step_by_step(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        await client.create(SECRETS, secret("m", ns) | {"data": {"k": ONE}})
        merged = await client.patch(SECRETS, "m", ns, change={"data": {"k": None, "l": TWO}})
        assert merged["data"] == {"l": TWO}
        steps = [{"op": "add", "path": "/data/m", "value": "Mw=="}]
        patched = await client.patch(SECRETS, "m", ns, change=steps, type="json")
        assert patched["data"] == {"l": TWO, "m": "Mw=="}

    run(scenario)


def test_a_patch_never_meets_another_object_of_the_same_name(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        await client.create(SECRETS, secret("m", ns))
        with pytest.raises(ApiError) as caught:
            await client.patch(SECRETS, "m", ns, change={"metadata": {"uid": "other"}})
        assert (caught.value.code, caught.value.reason) == (422, "Invalid")

    run(scenario)


def test_apply_makes_what_is_not_there_and_changes_what_is(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        made = await client.apply(SECRETS, secret("m", ns) | {"data": {"k": ONE}}, manager="me")
        assert made["data"] == {"k": ONE}
        changed = await client.apply(SECRETS, secret("m", ns) | {"data": {"k": TWO}}, manager="me")
        assert changed["data"] == {"k": TWO}
        assert changed["metadata"]["uid"] == made["metadata"]["uid"]

    run(scenario)


def test_a_status_is_written_apart(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        found = await client.get(NAMESPACES, ns)
        condition = {"type": "Tried", "status": "True"}
        status = found["status"] | {"conditions": [condition]}
        told = found | {"status": status, "spec": {"finalizers": ["kubernetes", "ex.io/more"]}}
        after = await client.update(NAMESPACES, told, subresource="status")
        assert after["status"]["conditions"][0]["type"] == "Tried"
        assert after["spec"] == found["spec"]

    run(scenario)


def test_a_dry_run_changes_nothing(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        await client.create(SECRETS, secret("m", ns), dry_run=True)
        assert (await client.list(SECRETS, ns)).items == []

    run(scenario)


def test_only_the_very_object_is_deleted(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        made = await client.create(SECRETS, secret("m", ns))
        version = made["metadata"]["resourceVersion"]
        with pytest.raises(ApiError) as caught:
            await client.delete(SECRETS, "m", ns, uid="other")
        assert caught.value.code == 409
        await client.patch(SECRETS, "m", ns, change={"data": {"k": ONE}})
        with pytest.raises(ApiError) as caught:
            await client.delete(SECRETS, "m", ns, resource_version=version)
        assert caught.value.code == 409
        await client.delete(SECRETS, "m", ns, uid=made["metadata"]["uid"])
        assert (await client.list(SECRETS, ns)).items == []

    run(scenario)


@pytest.mark.parametrize(
    ("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")]
)
def test_how_dependents_are_treated_is_a_finalizer(
    run: Run, policy: Propagation, finalizer: str
) -> None:
    async def scenario(client: Client, ns: str) -> None:
        await client.create(SECRETS, secret("m", ns))
        held = await client.delete(SECRETS, "m", ns, propagation=policy)
        assert held["metadata"]["finalizers"] == [finalizer]
        assert "deletionTimestamp" in held["metadata"]

    run(scenario)


def test_a_collection_is_deleted_by_label(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        await client.create(SECRETS, secret("m", ns, labels={"x": "1"}))
        await client.create(SECRETS, secret("n", ns))
        await client.delete_collection(SECRETS, ns, labels="x=1", propagation="Background")
        assert [each["metadata"]["name"] for each in (await client.list(SECRETS, ns)).items] == [
            "n"
        ]

    run(scenario)


def test_metadata_alone_can_be_asked_for(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        version = (await client.list(SECRETS, ns)).resource_version
        made = await client.create(SECRETS, secret("m", ns) | {"data": {"k": ONE}})
        uid = made["metadata"]["uid"]
        one = await client.get(SECRETS, "m", ns, metadata=True)
        [item] = (await client.list(SECRETS, ns, metadata=True)).items
        for found in (one, item):
            assert found["metadata"]["uid"] == uid
            assert "data" not in found
        watch = client.watch(SECRETS, ns, resource_version=version, metadata=True)
        async with aclosing(watch) as events:
            event = await next_of(events)
        assert event.object["metadata"]["uid"] == uid
        assert "data" not in event.object

    run(scenario)


def test_a_watch_tells_every_change_in_order(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        version = (await client.list(SECRETS, ns)).resource_version
        await client.create(SECRETS, secret("m", ns))
        await client.patch(SECRETS, "m", ns, change={"data": {"k": ONE}})
        await client.delete(SECRETS, "m", ns)
        async with aclosing(client.watch(SECRETS, ns, resource_version=version)) as events:
            found = [(await next_of(events)).type for _ in range(3)]
        assert found == ["ADDED", "MODIFIED", "DELETED"]

    run(scenario)


def test_a_watch_goes_on_while_others_write(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        version = (await client.list(SECRETS, ns)).resource_version
        async with aclosing(client.watch(SECRETS, ns, resource_version=version)) as events:
            waiting = asyncio.create_task(next_of(events))
            await asyncio.sleep(0)
            await client.create(SECRETS, secret("m", ns))
            event = await waiting
        assert (event.type, event.object["metadata"]["name"]) == ("ADDED", "m")

    run(scenario)


def test_what_is_served_is_discovered(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        found = await client.discover()
        kind = found.find("v1", "Secret")
        assert kind is not None
        assert GroupVersionResource.of(kind) == SECRETS
        assert {"delete", "list", "watch"} <= set(kind.verbs)
        namespaces = found.find("v1", "Namespace")
        assert namespaces is not None
        assert not namespaces.namespaced
        every = [(kind.group, kind.plural) for kind in preferred(found.kinds, verbs=["list"])]
        assert len(every) == len(set(every))
        assert not found.failures

    run(scenario)
