"""One suite for every client: whatever a controller relies on holds wherever it runs.

In process on a small API in memory, in process on the embedded server, over HTTPS to the embedded
server, and over HTTPS to a real one.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager

import pytest
from tests.client.fake import FakeApi

from polyver.client import Change, Client, Event, Informer, Object, Propagation, Resource, preferred
from polyver.client.cluster import ClusterClient, find_access
from polyver.objects.status import ApiError
from polyver.server._http import User
from polyver.server.direct import DirectClient
from polyver.store import MemoryStore
from polyver.testing import EmbeddedServer, LocalCluster

SECRETS = Resource("", "v1", "secrets")
NAMESPACES = Resource("", "v1", "namespaces", namespaced=False)
DEPLOYMENTS = Resource("apps", "v1", "deployments")
DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False)
ADMIN = User("admin", ("system:masters", "system:authenticated"))
ONE, TWO = "MQ==", "Mg=="
WITHIN = 30

Scenario = Callable[[Client, str], Awaitable[None]]
Run = Callable[[Scenario], None]
_numbers = itertools.count(1)


@asynccontextmanager
async def _fake(_: pytest.FixtureRequest) -> AsyncIterator[Client]:
    yield DirectClient(FakeApi(), ADMIN)


@asynccontextmanager
async def _direct(_: pytest.FixtureRequest) -> AsyncIterator[Client]:
    from polyver.server.api import Api

    api = Api(MemoryStore())
    client = DirectClient(api, ADMIN)
    api.catalogue.subscribe(client.kinds_changed)
    background = asyncio.create_task(api.run())
    try:
        yield client
    finally:
        background.cancel()
        await asyncio.gather(background, return_exceptions=True)


@asynccontextmanager
async def _over_https(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    server: EmbeddedServer = request.getfixturevalue("kube_server")
    async with ClusterClient(find_access(kubeconfig=server.kubeconfig)) as client:
        yield client


@asynccontextmanager
async def _real(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    cluster: LocalCluster = request.getfixturevalue("real_server")
    async with ClusterClient(find_access(kubeconfig=cluster.kubeconfig)) as client:
        yield client


@pytest.fixture(scope="module")
def real_server() -> Iterator[LocalCluster]:
    with LocalCluster() as cluster:
        yield cluster


CLIENTS = [
    pytest.param(_direct, id="direct"),
    pytest.param(_over_https, id="https"),
    pytest.param(_real, id="kube", marks=pytest.mark.kube),
]


@pytest.fixture(params=[pytest.param(_fake, id="fake"), *CLIENTS])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a scenario in a namespace of its own."""
    return _running(request)


@pytest.fixture(params=CLIENTS)
def run_on_servers(request: pytest.FixtureRequest) -> Run:
    """The same for what is beyond the small API in memory."""
    return _running(request)


def _running(request: pytest.FixtureRequest) -> Run:
    opens = request.param

    async def prepared(scenario: Scenario) -> None:
        namespace = f"client-{next(_numbers)}"
        async with opens(request) as client:
            await client.create(NAMESPACES, _object("Namespace", namespace))
            await asyncio.wait_for(scenario(client, namespace), WITHIN)

    return lambda scenario: asyncio.run(prepared(scenario))


def _object(kind: str, name: str, **more: object) -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **more}


def _secret(name: str, namespace: str, **metadata: object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, **metadata},
    }


def _names(items: list[Object]) -> list[str]:
    return [item["metadata"]["name"] for item in items]


async def _next(events: AsyncIterator[Event]) -> Event:
    """The next event that is no bookmark."""
    async for event in events:
        if event.type != "BOOKMARK":
            return event
    raise AssertionError("the watch has ended")


def test_what_was_created_is_got_and_listed(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        made = await client.create(SECRETS, _secret("m", ns))
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
        await client.create(SECRETS, _secret("m", ns))
        with pytest.raises(ApiError) as caught:
            await client.create(SECRETS, _secret("m", ns))
        assert (caught.value.code, caught.value.reason) == (409, "AlreadyExists")

    run(scenario)


def test_a_kind_that_is_not_served_is_not_found(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        with pytest.raises(ApiError) as caught:
            await client.list(Resource("none.io", "v1", "things"))
        assert caught.value.code == 404

    run(scenario)


def test_a_name_never_leads_to_another_path(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        for name in ("", "..", "m/status"):
            with pytest.raises(ValueError, match="not the name"):
                await client.delete(SECRETS, name, ns)

    run(scenario)


def test_pages_go_on_after_each_other(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        for number in range(5):
            await client.create(SECRETS, _secret(f"m{number}", ns))
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
        await client.create(SECRETS, _secret("m", ns, labels={"x": "1"}))
        await client.create(SECRETS, _secret("n", ns, labels={"x": "2"}))
        found = await client.list(SECRETS, labels="x=2")
        assert [item["metadata"]["name"] for item in found.items] == ["n"]

    run(scenario)


def test_an_update_of_an_old_state_is_a_conflict(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        old = await client.create(SECRETS, _secret("m", ns))
        new = await client.update(SECRETS, old | {"data": {"k": ONE}})
        assert new["data"] == {"k": ONE}
        with pytest.raises(ApiError) as caught:
            await client.update(SECRETS, old | {"data": {"k": TWO}})
        assert (caught.value.code, caught.value.reason) == (409, "Conflict")

    run(scenario)


def test_patches_merge_or_go_step_by_step(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        await client.create(SECRETS, _secret("m", ns) | {"data": {"k": ONE}})
        merged = await client.patch(SECRETS, "m", ns, change={"data": {"k": None, "l": TWO}})
        assert merged["data"] == {"l": TWO}
        steps = [{"op": "add", "path": "/data/m", "value": "Mw=="}]
        patched = await client.patch(SECRETS, "m", ns, change=steps, type="json")
        assert patched["data"] == {"l": TWO, "m": "Mw=="}

    run(scenario)


def test_a_patch_never_meets_another_object_of_the_same_name(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        await client.create(SECRETS, _secret("m", ns))
        with pytest.raises(ApiError) as caught:
            await client.patch(SECRETS, "m", ns, change={"metadata": {"uid": "other"}})
        assert (caught.value.code, caught.value.reason) == (422, "Invalid")

    run(scenario)


def test_apply_makes_what_is_not_there_and_changes_what_is(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        made = await client.apply(SECRETS, _secret("m", ns) | {"data": {"k": ONE}}, manager="me")
        assert made["data"] == {"k": ONE}
        changed = await client.apply(SECRETS, _secret("m", ns) | {"data": {"k": TWO}}, manager="me")
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
        await client.create(SECRETS, _secret("m", ns), dry_run=True)
        assert (await client.list(SECRETS, ns)).items == []

    run(scenario)


def test_only_the_very_object_is_deleted(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        made = await client.create(SECRETS, _secret("m", ns))
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
        await client.create(SECRETS, _secret("m", ns))
        held = await client.delete(SECRETS, "m", ns, propagation=policy)
        assert held["metadata"]["finalizers"] == [finalizer]
        assert "deletionTimestamp" in held["metadata"]

    run(scenario)


def test_a_collection_is_deleted_by_label(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        await client.create(SECRETS, _secret("m", ns, labels={"x": "1"}))
        await client.create(SECRETS, _secret("n", ns))
        await client.delete_collection(SECRETS, ns, labels="x=1", propagation="Background")
        assert [each["metadata"]["name"] for each in (await client.list(SECRETS, ns)).items] == [
            "n"
        ]

    run(scenario)


def test_metadata_alone_can_be_asked_for(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        version = (await client.list(SECRETS, ns)).resource_version
        made = await client.create(SECRETS, _secret("m", ns) | {"data": {"k": ONE}})
        uid = made["metadata"]["uid"]
        one = await client.get(SECRETS, "m", ns, metadata=True)
        [item] = (await client.list(SECRETS, ns, metadata=True)).items
        for found in (one, item):
            assert found["metadata"]["uid"] == uid
            assert "data" not in found
        watch = client.watch(SECRETS, ns, resource_version=version, metadata=True)
        async with aclosing(watch) as events:
            event = await _next(events)
        assert event.object["metadata"]["uid"] == uid
        assert "data" not in event.object

    run(scenario)


def test_a_watch_tells_every_change_in_order(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        version = (await client.list(SECRETS, ns)).resource_version
        await client.create(SECRETS, _secret("m", ns))
        await client.patch(SECRETS, "m", ns, change={"data": {"k": ONE}})
        await client.delete(SECRETS, "m", ns)
        async with aclosing(client.watch(SECRETS, ns, resource_version=version)) as events:
            found = [(await _next(events)).type for _ in range(3)]
        assert found == ["ADDED", "MODIFIED", "DELETED"]

    run(scenario)


def test_a_watch_goes_on_while_others_write(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        version = (await client.list(SECRETS, ns)).resource_version
        async with aclosing(client.watch(SECRETS, ns, resource_version=version)) as events:
            waiting = asyncio.create_task(_next(events))
            await asyncio.sleep(0)
            await client.create(SECRETS, _secret("m", ns))
            event = await waiting
        assert (event.type, event.object["metadata"]["name"]) == ("ADDED", "m")

    run(scenario)


def test_what_is_served_is_discovered(run: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        found = await client.discover()
        kind = found.find("v1", "Secret")
        assert kind is not None
        assert Resource.of(kind) == SECRETS
        assert {"delete", "list", "watch"} <= set(kind.verbs)
        namespaces = found.find("v1", "Namespace")
        assert namespaces is not None
        assert not namespaces.namespaced
        every = [(kind.group, kind.plural) for kind in preferred(found.kinds, verbs=["list"])]
        assert len(every) == len(set(every))
        assert not found.failures

    run(scenario)


# What is beyond the small API in memory


def test_a_refusal_is_the_status_of_the_server(run_on_servers: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        with pytest.raises(ApiError) as caught:
            await client.create(SECRETS, _secret("Not A Name", ns))
        status = caught.value.status
        assert (status["code"], status["reason"]) == (422, "Invalid")
        assert status["details"]["causes"][0]["field"] == "metadata.name"
        assert status["details"]["causes"][0]["message"] in status["message"]

    run_on_servers(scenario)


def test_fields_select(run_on_servers: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        for name in ("m", "n"):
            await client.create(SECRETS, _secret(name, ns))
        found = await client.list(SECRETS, ns, fields="metadata.name=n")
        assert _names(found.items) == ["n"]
        version = (await client.list(SECRETS, ns, resource_version="0")).resource_version
        assert int(version) >= 1
        watch = client.watch(
            SECRETS, ns, resource_version=found.resource_version, fields="metadata.name=n"
        )
        async with aclosing(watch) as events:
            for name in ("m", "n"):
                await client.patch(SECRETS, name, ns, change={"data": {"k": ONE}})
            assert (await _next(events)).object["metadata"]["name"] == "n"
        await client.delete_collection(SECRETS, ns, fields="metadata.name=n")
        assert _names((await client.list(SECRETS, ns)).items) == ["m"]

    run_on_servers(scenario)


def test_a_strategic_patch_knows_which_lists_are_sets(run_on_servers: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        await client.create(SECRETS, _secret("m", ns, finalizers=["ex.io/a"]))
        change = {"metadata": {"finalizers": ["ex.io/b"]}}
        patched = await client.patch(SECRETS, "m", ns, change=change, type="strategic")
        assert sorted(patched["metadata"]["finalizers"]) == ["ex.io/a", "ex.io/b"]

    run_on_servers(scenario)


def test_what_another_owns_is_applied_by_force_alone(run_on_servers: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        content = _secret("m", ns) | {"data": {"k": ONE}}
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
        made = await client.create(SECRETS, _secret("m", ns), manager="maker")
        changed = {**made, "data": {"k": ONE}}
        await client.update(SECRETS, changed, manager="updater")
        found = await client.patch(SECRETS, "m", ns, change={"type": None}, manager="patcher")
        found = await client.get(SECRETS, "m", ns)
        managers = {each["manager"] for each in found["metadata"]["managedFields"]}
        assert "updater" in managers

    run_on_servers(scenario)


def test_no_dry_run_changes_anything(run_on_servers: Run) -> None:
    async def scenario(client: Client, ns: str) -> None:
        made = await client.create(SECRETS, _secret("m", ns))
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
    roles = Resource("rbac.authorization.k8s.io", "v1", "roles")

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
    group = f"clients{next(_numbers)}.example.org"

    async def scenario(client: Client, ns: str) -> None:
        async with aclosing(client.watch_kinds()) as found:
            assert (await anext(found)).find(f"{group}/v1", "Toy") is None
            await client.create(DEFINITIONS, _definition(group))
            kind = None
            while kind is None:
                kind = (await anext(found)).find(f"{group}/v1", "Toy")
            assert Resource.of(kind) == Resource(group, "v1", "toys")
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
        await client.create(SECRETS, _secret("m", ns))
        seen: asyncio.Queue[tuple[str, bool]] = asyncio.Queue()

        async def tell(change: Change[str]) -> None:
            seen.put_nowait((change.key.name, change.after is not None))

        informer = Informer(client, SECRETS, keep=_version_of, handler=tell, namespace=ns)
        task = asyncio.create_task(informer.run())
        assert await seen.get() == ("m", True)
        await client.create(SECRETS, _secret("n", ns))
        assert await seen.get() == ("n", True)
        await client.delete(SECRETS, "m", ns)
        assert await seen.get() == ("m", False)
        assert (informer.relists, {key.name for key in informer.known}) == (1, {"n"})
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run_on_servers(scenario)


def _version_of(content: Object) -> str:
    return str(content["metadata"]["resourceVersion"])
