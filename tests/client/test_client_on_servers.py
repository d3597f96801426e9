"""The rest of the suite for every client: what is beyond the small API in memory."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest
from tests.client.running import (
    DEFINITIONS,
    DEPLOYMENTS,
    ONE,
    SECRETS,
    TWO,
    Run,
    names,
    next_of,
    numbers,
    secret,
)

from polyver.client import Change, Client, GroupVersionResource, Informer
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError


def test_a_refusal_is_the_status_of_the_server(run_on_servers: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        with pytest.raises(ApiError) as caught:
            await client.create(SECRETS, secret("Not A Name", ns))
        status = caught.value.status
        assert (status["code"], status["reason"]) == (422, "Invalid")
        assert status["details"]["causes"][0]["field"] == "metadata.name"
        assert status["details"]["causes"][0]["message"] in status["message"]

    run_on_servers(scenario)


def test_fields_select(run_on_servers: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        for name in ("m", "n"):
            await client.create(SECRETS, secret(name, ns))
        found = await client.list(SECRETS, ns, fields="metadata.name=n")
        assert names(found.items) == ["n"]
        version = (await client.list(SECRETS, ns, resource_version="0")).resource_version
        assert int(version) >= 1
        watch = client.watch(
            SECRETS, ns, resource_version=found.resource_version, fields="metadata.name=n"
        )
        async with aclosing(watch) as events:
            for name in ("m", "n"):
                await client.patch(SECRETS, name, ns, change={"data": {"k": ONE}})
            assert (await next_of(events)).object["metadata"]["name"] == "n"
        await client.delete_collection(SECRETS, ns, fields="metadata.name=n")
        assert names((await client.list(SECRETS, ns)).items) == ["m"]

    run_on_servers(scenario)


def test_a_strategic_patch_knows_which_lists_are_sets(run_on_servers: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        await client.create(SECRETS, secret("m", ns, finalizers=["ex.io/a"]))
        change = {"metadata": {"finalizers": ["ex.io/b"]}}
        patched = await client.patch(SECRETS, "m", ns, change=change, type="strategic")
        assert sorted(patched["metadata"]["finalizers"]) == ["ex.io/a", "ex.io/b"]

    run_on_servers(scenario)


def test_what_another_owns_is_applied_by_force_alone(run_on_servers: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        content = secret("m", ns) | {"data": {"k": ONE}}
        await client.apply(SECRETS, content, manager="one")
        other = content | {"data": {"k": TWO}}
        with pytest.raises(ApiError, match="conflict with") as caught:
            await client.apply(SECRETS, other, manager="two")
        assert caught.value.code == 409
        assert [cause["field"] for cause in caught.value.status["details"]["causes"]] == [".data.k"]
        dry = await client.apply(SECRETS, other, manager="two", force=True, dry_run=True)
        assert dry["data"] == {"k": TWO}
        assert (await client.get(SECRETS, "m", ns))["data"] == {"k": ONE}
        forced = await client.apply(SECRETS, other, manager="two", force=True)
        assert forced["data"] == {"k": TWO}
        managers = {each["manager"] for each in forced["metadata"]["managedFields"]}
        assert "two" in managers

    run_on_servers(scenario)


def test_who_writes_is_told(run_on_servers: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        made = await client.create(SECRETS, secret("m", ns), manager="maker")
        changed = {**made, "data": {"k": ONE}}
        await client.update(SECRETS, changed, manager="updater")
        found = await client.patch(SECRETS, "m", ns, change={"type": None}, manager="patcher")
        found = await client.get(SECRETS, "m", ns)
        managers = {each["manager"] for each in found["metadata"]["managedFields"]}
        assert "updater" in managers

    run_on_servers(scenario)


def test_no_dry_run_changes_anything(run_on_servers: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        made = await client.create(SECRETS, secret("m", ns))
        changed = {**made, "data": {"k": ONE}}
        assert (await client.update(SECRETS, changed, dry_run=True))["data"] == {"k": ONE}
        change = {"data": {"k": TWO}}
        patched = await client.patch(SECRETS, "m", ns, change=change, dry_run=True)
        assert patched["data"] == {"k": TWO}
        await client.delete(SECRETS, "m", ns, dry_run=True)
        assert await client.get(SECRETS, "m", ns) == made

    run_on_servers(scenario)


def test_parts_of_objects_have_paths_of_their_own(run_on_servers: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        await client.create(DEPLOYMENTS, _deployment("d", ns))
        scale = await client.get(DEPLOYMENTS, "d", ns, subresource="scale")
        assert (scale["kind"], scale["spec"]["replicas"]) == ("Scale", 1)
        change = {"spec": {"replicas": 3}}
        await client.patch(DEPLOYMENTS, "d", ns, change=change, subresource="scale")
        assert (await client.get(DEPLOYMENTS, "d", ns))["spec"]["replicas"] == 3
        condition = {"type": "Available", "status": "True"}
        status = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d", "namespace": ns},
            "status": {"conditions": [condition]},
        }
        applied = await client.apply(DEPLOYMENTS, status, manager="me", subresource="status")
        assert applied["status"]["conditions"][0]["type"] == "Available"
        await client.delete(DEPLOYMENTS, "d", ns, grace=0, propagation="Background")

    run_on_servers(scenario)


def _deployment(name: str, namespace: str) -> Object:
    labels = {"app": "a"}
    container = {"name": "c", "image": "example.org/c:1"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def test_names_with_odd_characters_are_found(run_on_servers: Run) -> None:
    roles = GroupVersionResource("rbac.authorization.k8s.io", "v1", "roles")

    async def scenario(client: Client, ns: str) -> None:
        role: Object = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "system:client#1?x=é", "namespace": ns},
            "rules": [],
        }
        await client.create(roles, role)
        found = await client.get(roles, "system:client#1?x=é", ns)
        assert found["metadata"]["name"] == "system:client#1?x=é"

    run_on_servers(scenario)


def test_a_watch_ends_when_it_was_asked_to(run_on_servers: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        version = (await client.list(SECRETS, ns)).resource_version
        watch = client.watch(SECRETS, ns, resource_version=version, timeout=1)
        assert [event.type async for event in watch if event.type != "BOOKMARK"] == []

    run_on_servers(scenario)


def test_a_version_that_is_no_number_is_refused(run_on_servers: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        watch = client.watch(SECRETS, ns, resource_version="yesterday")
        with pytest.raises(ApiError, match="Invalid value"):
            await anext(watch)

    run_on_servers(scenario)


def test_new_kinds_are_told(run_on_servers: Run) -> None:
    group = f"clients{next(numbers)}.example.org"

    async def scenario(client: Client, ns: str) -> None:
        async with aclosing(client.watch_kinds()) as found:
            assert (await anext(found)).find(f"{group}/v1", "Toy") is None
            await client.create(DEFINITIONS, _definition(group))
            kind = None
            while kind is None:
                kind = (await anext(found)).find(f"{group}/v1", "Toy")
            assert GroupVersionResource.of(kind) == GroupVersionResource(group, "v1", "toys")
            assert kind.subresource("status") is not None
            await client.delete(DEFINITIONS, f"toys.{group}")
            async for served in found:
                if not served.find(f"{group}/v1", "Toy"):
                    break

    run_on_servers(scenario)


def _definition(group: str) -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"toys.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "toys", "singular": "toy", "kind": "Toy", "listKind": "ToyList"},
            "versions": [version],
        },
    }


def test_an_informer_knows_what_is_there(run_on_servers: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        await client.create(SECRETS, secret("m", ns))
        seen: asyncio.Queue[tuple[str, bool]] = asyncio.Queue()

        async def tell(change: Change[str]) -> None:
            seen.put_nowait((change.key.name, change.after is not None))

        informer = Informer(client, SECRETS, keep=_version_of, handler=tell, namespace=ns)
        task = asyncio.create_task(informer.run())
        assert await seen.get() == ("m", True)
        await client.create(SECRETS, secret("n", ns))
        assert await seen.get() == ("n", True)
        await client.delete(SECRETS, "m", ns)
        assert await seen.get() == ("m", False)
        assert (informer.relists, {key.name for key in informer.known}) == (1, {"n"})
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run_on_servers(scenario)


def _version_of(content: Object) -> str:
    return str(content["metadata"]["resourceVersion"])
