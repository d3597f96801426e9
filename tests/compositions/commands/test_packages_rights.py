"""What a replica that installs functions asks of a cluster: all that it may, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial

import pytest
from tests.app.test_installing import Recording, gone, until
from tests.compositions.commands.test_packages import composition_revision
from tests.compositions.composing import GROUP, bucket, composition, definition, version
from tests.compositions.controllers.installing import condition
from tests.compositions.samples import function, package
from tests.deadlines import HANG
from tests.rights import Asked, grants
from tests.walks.installed import free_port

from polyver.apis import Webhook
from polyver.app import _replica
from polyver.app._replica import ReplicaSettings, replica
from polyver.app.capabilities import Choices
from polyver.app.installing import Installation, Installer, manifests
from polyver.app.installing.options import CERTIFICATES
from polyver.capability.capability import Surroundings
from polyver.client import CRDS, Client, GroupVersionResource
from polyver.client.cluster import ClusterClient, find_access
from polyver.compositions.controllers.compositions import (
    COMPOSITION_REVISIONS,
    COMPOSITIONS,
    DEFINITIONS,
)
from polyver.compositions.controllers.packages import FUNCTION_REVISIONS, FUNCTIONS
from polyver.compositions.decisions import composition_changes
from polyver.compositions.names import COMPOSITION, IN_USE, USED, revision_name
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError
from polyver.testing import EmbeddedServer

AROUND = Surroundings(namespace="polyver-system")
CHOICES = Choices(frozenset({"apis", "compositions"}))
WANTED = Installation("a:1", contributions=CHOICES.contributions(AROUND))
BUCKETS = GroupVersionResource(GROUP, "v1beta1", "acmebuckets", namespaced=False)
DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
HOOKS = GroupVersionResource(
    "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", namespaced=False
)
OURS = {"pkg.crossplane.io", COMPOSITIONS.group, CRDS.group, "apps"}
NOT_WALKED = {("update", "secrets")}
"""The authority of functions is written again when it is renewed, in some months."""


def name_of(reference: str) -> str:
    return revision_name("resize", reference)


@pytest.fixture(scope="module")
def asked() -> Iterator[set[Asked]]:
    """All that a replica asks for while functions come, change and go."""
    with pytest.MonkeyPatch.context() as patch, EmbeddedServer(capabilities=()) as server:
        found: set[Asked] = set()
        patch.setattr(Recording, "asked", found, raising=False)
        patch.setattr(_replica, "ClusterClient", Recording)
        asyncio.run(walk(server))
        yield found


async def walk(server: EmbeddedServer) -> None:
    async with ClusterClient(find_access(kubeconfig=server.kubeconfig)) as client:
        await Installer(client, server.url, lambda _: None).install(WANTED, manifests(WANTED))
        port = free_port()
        own = "127.0.0.1", port, WANTED.namespace, ("127.0.0.1",)
        at = Webhook(url=f"https://127.0.0.1:{port}")
        settings = ReplicaSettings(client.access, at, *own, choices=CHOICES)
        async with replica(settings), asyncio.timeout(HANG):
            await steps(client)


async def steps(client: Client) -> None:
    """A function is installed, used, changed and deleted."""
    await until(client, HOOKS, "polyver", "", lambda _: True)
    first, second = (name_of(package(version)) for version in ("v1", "v2"))
    with pytest.raises(ApiError, match="more than revisionHistoryLimit keeps, 1"):
        await client.create(FUNCTIONS, function(activeRevisionLimit=2))
    await client.create(FUNCTIONS, function(version="v1"))
    await until(client, DEPLOYMENTS, first, WANTED.namespace, lambda _: True)
    await client.create(COMPOSITION_REVISIONS, composition_revision("shop-1", 1))
    await until(client, FUNCTIONS, "resize", "", is_held)
    await client.delete(COMPOSITION_REVISIONS, "shop-1")
    await until(client, FUNCTIONS, "resize", "", lambda obj: not is_held(obj))
    change = {"spec": {"package": package("v2")}}
    await client.patch(FUNCTIONS, "resize", change=change)
    await gone(client, FUNCTION_REVISIONS, first, "")
    await until(client, DEPLOYMENTS, second, WANTED.namespace, lambda _: True)
    await client.delete(FUNCTIONS, "resize", propagation="Background")
    await gone(client, FUNCTION_REVISIONS, second, "")
    await gone(client, DEPLOYMENTS, second, WANTED.namespace)
    await compositions(client)


async def compositions(client: Client) -> None:
    """A kind is defined, composed in two ways, and deleted."""
    kind, older = definition(), version("v1alpha1", referenceable=False)
    name = kind["metadata"]["name"]
    await client.create(DEFINITIONS, kind)
    await until(client, DEFINITIONS, name, "", is_established)
    moved = [version("v1beta1"), older]
    for versions in (moved, moved[:1]):
        await client.patch(DEFINITIONS, name, change={"spec": {"versions": versions}})
        await until(client, CRDS, name, "", partial(has_versions, count=len(versions)))
    mine = composition(api_version=f"{GROUP}/v1beta1")
    await client.create(COMPOSITIONS, await taken(client, mine))
    await client.create(COMPOSITIONS, mine)
    using: Object = {"compositionRef": {"name": "example"}}
    using["compositionRevisionRef"] = {"name": await revised(client, 1)}
    await client.create(BUCKETS, {**bucket(**using), "apiVersion": f"{GROUP}/v1beta1"})
    await until(client, COMPOSITIONS, "example", "", is_used)
    await until(client, COMPOSITIONS, "example", "", lambda obj: bool(condition(obj, "Adopted")))
    await client.patch(COMPOSITIONS, "example", change={"metadata": {"labels": {"a": "b"}}})
    await revised(client, 2)
    await client.patch(COMPOSITIONS, "example", change={"metadata": {"labels": {"a": None}}})
    await revised(client, 3)
    await client.delete(BUCKETS, "my-bucket")
    await until(client, COMPOSITIONS, "example", "", lambda obj: not is_used(obj))
    await client.delete(DEFINITIONS, name)
    await gone(client, CRDS, name, "")


async def taken(client: Client, obj: Object) -> Object:
    """The same composition with another name, whose first revision would be called as another."""
    obj = {**obj, "metadata": {**obj["metadata"], "name": "shop"}}
    wanted = composition_changes(obj, []).create
    assert wanted is not None
    theirs = composition_revision(wanted.name, 1)
    theirs["metadata"]["labels"] = {COMPOSITION: "other"}
    await client.create(COMPOSITION_REVISIONS, theirs)
    return obj


def is_established(obj: Object) -> bool:
    return condition(obj, "Established").get("status") == "True"


def has_versions(obj: Object, *, count: int) -> bool:
    return len(obj["spec"]["versions"]) == count and is_established(obj)


async def revised(client: Client, number: int) -> str:
    """The revision with some number, as soon as it is there."""
    while True:
        labels = f"{COMPOSITION}=example"
        for each in (await client.list(COMPOSITION_REVISIONS, labels=labels)).items:
            if each["spec"]["revision"] == number:
                return str(each["metadata"]["name"])
        await asyncio.sleep(0.02)


def is_used(obj: Object) -> bool:
    return USED in (obj["metadata"].get("finalizers") or ())


def is_held(obj: Object) -> bool:
    return IN_USE in (obj["metadata"].get("finalizers") or ())


def test_a_replica_asks_for_nothing_that_it_has_no_right_to(asked: set[Asked]) -> None:
    given = grants(WANTED)
    mine = [each for each in asked if each.group in OURS or each.resource in _CORE]
    assert [str(each) for each in mine if not any(right.allows(each) for right in given)] == []


_CORE = ("services", "secrets", "events")


def test_each_right_of_the_capability_is_needed(asked: set[Asked]) -> None:
    [_, mine, *_] = WANTED.contributions
    rights = [*mine.rights, *mine.rights_inside]
    used = {(each.verb, each.resource) for each in asked if each.name != CERTIFICATES}
    unused = {(verb, each.resource) for each in rights for verb in each.verbs} - used
    assert unused == NOT_WALKED
