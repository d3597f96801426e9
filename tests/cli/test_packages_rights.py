"""What a replica that installs functions asks of a cluster: all that it may, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.capabilities.revisions.samples import function, package
from tests.cli.test_installing import Recording, gone, until
from tests.cli.test_packages import composition_revision, definition
from tests.rights import Asked, grants
from tests.walks.installed import free_port

from polyver.apis import Webhook
from polyver.capabilities.revisions.names import IN_USE, revision_name
from polyver.cli import _replica
from polyver.cli._contributions import Choices
from polyver.cli._installing import Installation, Installer, manifests
from polyver.cli._installing.parts import CERTIFICATES
from polyver.cli._replica import Settings, replica
from polyver.client import CRDS, Client, Object, Resource
from polyver.client.cluster import ClusterClient, find_access
from polyver.engine.packages import FUNCTION_REVISIONS, FUNCTIONS
from polyver.objects.status import ApiError
from polyver.testing import EmbeddedServer

CHOICES = Choices(frozenset({"apis", "revisions"}))
WANTED = Installation("a:1", contributions=CHOICES.contributions(namespace="polyver-system"))
COMPOSITIONS = Resource(
    "apiextensions.crossplane.io", "v1", "compositionrevisions", namespaced=False
)
DEPLOYMENTS = Resource("apps", "v1", "deployments")
HOOKS = Resource(
    "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", namespaced=False
)
OURS = {"pkg.crossplane.io", COMPOSITIONS.group, "apps"}
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
        kind = definition(COMPOSITIONS.group, COMPOSITIONS.plural, "CompositionRevision")
        await client.create(CRDS, kind)
        await Installer(client, server.url, lambda _: None).install(WANTED, manifests(WANTED))
        port = free_port()
        own = "127.0.0.1", port, WANTED.namespace, ("127.0.0.1",)
        at = Webhook(url=f"https://127.0.0.1:{port}")
        settings = Settings(client.access, at, *own, choices=CHOICES)
        async with replica(settings), asyncio.timeout(60):
            await steps(client)


async def steps(client: Client) -> None:
    """A function is installed, used, changed and deleted."""
    await until(client, HOOKS, "polyver", "", lambda _: True)
    first, second = (name_of(package(version)) for version in ("v1", "v2"))
    with pytest.raises(ApiError, match="more than revisionHistoryLimit keeps, 1"):
        await client.create(FUNCTIONS, function(activeRevisionLimit=2))
    await client.create(FUNCTIONS, function(version="v1"))
    await until(client, DEPLOYMENTS, first, WANTED.namespace, lambda _: True)
    await client.create(COMPOSITIONS, composition_revision("shop-1", 1))
    await until(client, FUNCTIONS, "resize", "", is_held)
    await client.delete(COMPOSITIONS, "shop-1")
    await until(client, FUNCTIONS, "resize", "", lambda obj: not is_held(obj))
    change = {"spec": {"package": package("v2")}}
    await client.patch(FUNCTIONS, "resize", change=change)
    await gone(client, FUNCTION_REVISIONS, first, "")
    await until(client, DEPLOYMENTS, second, WANTED.namespace, lambda _: True)
    await client.delete(FUNCTIONS, "resize", propagation="Background")
    await gone(client, FUNCTION_REVISIONS, second, "")
    await gone(client, DEPLOYMENTS, second, WANTED.namespace)


def is_held(obj: Object) -> bool:
    return IN_USE in (obj["metadata"].get("finalizers") or ())


def test_a_replica_asks_for_nothing_that_it_has_no_right_to(asked: set[Asked]) -> None:
    given = grants(WANTED)
    mine = [each for each in asked if each.group in OURS or each.resource in _CORE]
    assert [str(each) for each in mine if not any(right.allows(each) for right in given)] == []


_CORE = ("services", "secrets", "events")


def test_each_right_of_the_capability_is_needed(asked: set[Asked]) -> None:
    [mine] = WANTED.contributions
    rights = [*mine.rights, *mine.rights_inside]
    used = {(each.verb, each.resource) for each in asked if each.name != CERTIFICATES}
    unused = {(verb, each.resource) for each in rights for verb in each.verbs} - used
    assert unused == NOT_WALKED
