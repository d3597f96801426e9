"""Revisions served by Deployments: what is applied, what is told of it, and what becomes of it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from tests.compositions.runtimes.support import until
from tests.deadlines import HANG

from polyver.client import Client, GroupVersionResource, SystemClock, find
from polyver.client.cluster import ClusterClient, find_access
from polyver.client.in_process import DirectClient
from polyver.compositions.runtimes import DesiredRevision, ServingStatus
from polyver.compositions.runtimes.kubernetes import KubernetesRuntime
from polyver.compositions.runtimes.kubernetes._manifests import served_of
from polyver.core.plain import Object
from polyver.kube.server.api import ApiServer
from polyver.kube.server.http import User
from polyver.kube.store import MemoryStore
from polyver.testing import LocalCluster

SPACE = "functions"
SPACES = GroupVersionResource("", "v1", "namespaces", namespaced=False)
DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
SERVICES = GroupVersionResource("", "v1", "services")
SECRETS = GroupVersionResource("", "v1", "secrets")
MAPS = GroupVersionResource("", "v1", "configmaps")
ALL = (DEPLOYMENTS, SERVICES, SECRETS)
IMAGE = "registry.example.com/fn:v1"
WANTED = DesiredRevision("fn-0123456789ab", IMAGE, IMAGE)
ENDPOINT = f"dns:///fn-0123456789ab.{SPACE}:9443"

Scenario = Callable[[Client], Awaitable[None]]


def embedded(scenario: Scenario) -> None:
    async def run() -> None:
        user = User("polyver", ("system:masters", "system:authenticated"))
        await scenario(DirectClient(ApiServer(MemoryStore()), user, agent="polyver"))

    asyncio.run(run())


def on_kubernetes(scenario: Scenario) -> None:
    async def run(cluster: LocalCluster) -> None:
        async with ClusterClient(find_access(kubeconfig=cluster.kubeconfig)) as client:
            await scenario(client)

    with LocalCluster() as cluster:
        asyncio.run(run(cluster))


async def set_condition(client: Client, **condition: str) -> None:
    """What the controller of Deployments would say."""
    about = {"lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "Because", "message": ""}
    change = {"status": {"conditions": [about | condition], "availableReplicas": 1}}
    change["status"] |= {"replicas": 1, "readyReplicas": 1, "updatedReplicas": 1}
    await client.patch(DEPLOYMENTS, WANTED.name, SPACE, change=change, subresource="status")


async def gone(client: Client, resource: GroupVersionResource, name: str) -> None:
    async with asyncio.timeout(HANG):
        while await find(client, resource, name, SPACE) is not None:
            await asyncio.sleep(0.02)


def certificate_in(secret: Object) -> x509.Certificate:
    return x509.load_pem_x509_certificate(base64.b64decode(secret["data"]["tls.crt"]))


async def served_and_ended(client: Client) -> None:
    """From nothing to a revision that is served, and back."""
    await client.create(SPACES, {"metadata": {"name": SPACE}})
    owner = await client.create(MAPS, {"metadata": {"name": "owner"}}, SPACE)
    wanted = DesiredRevision(WANTED.name, IMAGE, IMAGE, uid=owner["metadata"]["uid"])
    runtime = KubernetesRuntime(client, SPACE)
    starting = await until(runtime, wanted, lambda s: "no replica yet" in s.message)
    assert (starting.reason, starting.healthy) == ("Starting", False)
    await set_condition(client, type="Available", status="True")
    served = await until(runtime, wanted)
    assert served.endpoint == ENDPOINT
    await set_condition(client, type="Progressing", status="False", message="no image")
    failed = await until(runtime, wanted, lambda s: s.reason == "NotStarting")
    assert failed.message == "no image"
    await looks_right(client, wanted)
    before = await client.get(DEPLOYMENTS, wanted.name, SPACE)
    await runtime.close()

    # Whoever comes next goes on with the same, and changes nothing.
    runtime = KubernetesRuntime(client, SPACE)
    await until(runtime, wanted, lambda s: s.reason == "NotStarting")
    assert await client.get(DEPLOYMENTS, wanted.name, SPACE) == before
    await put_right(client, runtime, wanted)
    await runtime.end(wanted.name)
    for resource in ALL:
        await gone(client, resource, wanted.name)
    await runtime.close()


async def looks_right(client: Client, wanted: DesiredRevision) -> None:
    deployment, service, secret = [
        await client.get(resource, wanted.name, SPACE) for resource in ALL
    ]
    for each in (deployment, service, secret):
        [owner] = each["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("FunctionRevision", wanted.uid)
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == IMAGE
    labels = deployment["spec"]["template"]["metadata"]["labels"].items()
    assert service["spec"]["selector"].items() <= labels
    assert service["spec"]["ports"][0]["port"] == 9443
    names = certificate_in(secret).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert f"{wanted.name}.{SPACE}.svc" in names.value.get_values_for_type(x509.DNSName)


async def put_right(client: Client, runtime: KubernetesRuntime, wanted: DesiredRevision) -> None:
    """What others change comes back, and what they delete, too."""
    change = {"spec": {"template": {"spec": {"containers": [{"name": "package-runtime"}]}}}}
    change["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
    await client.patch(DEPLOYMENTS, wanted.name, SPACE, change=change, type="strategic")
    async with asyncio.timeout(HANG):
        while await image_of(client) != IMAGE:
            await asyncio.sleep(0.02)
    await client.delete(DEPLOYMENTS, wanted.name, SPACE, propagation="Background")
    async with asyncio.timeout(HANG):
        while await image_of(client) != IMAGE:
            await asyncio.sleep(0.02)


async def image_of(client: Client) -> str:
    found = await find(client, DEPLOYMENTS, WANTED.name, SPACE)
    if found is None or "deletionTimestamp" in found["metadata"]:
        return ""
    image: str = found["spec"]["template"]["spec"]["containers"][0]["image"]
    return image


def test_a_revision_is_served_by_a_deployment() -> None:
    embedded(served_and_ended)


@pytest.mark.kube
def test_a_revision_is_served_by_a_deployment_on_kubernetes() -> None:
    on_kubernetes(served_and_ended)


def test_what_somebody_else_made_is_left_alone() -> None:
    async def scenario(client: Client) -> None:
        await client.create(SPACES, {"metadata": {"name": SPACE}})
        theirs = {
            "metadata": {"name": WANTED.name},
            "spec": {"ports": [{"port": 80}], "selector": {"app": "theirs"}},
        }
        before = await client.create(SERVICES, theirs, SPACE)
        runtime = KubernetesRuntime(client, SPACE)
        refused = await until(runtime, WANTED, lambda s: s.reason == "NotOurs")
        assert WANTED.name in refused.message
        await runtime.end(WANTED.name)
        assert await client.get(SERVICES, WANTED.name, SPACE) == before
        await runtime.close()

    embedded(scenario)


def test_a_namespace_that_is_not_there_is_told_and_waited_for() -> None:
    async def scenario(client: Client) -> None:
        runtime = KubernetesRuntime(client, SPACE)
        refused = await until(runtime, WANTED, lambda s: s.reason == "NotApplied")
        assert SPACE in refused.message
        await client.create(SPACES, {"metadata": {"name": SPACE}})
        await until(runtime, WANTED, lambda s: "no replica yet" in s.message)
        await runtime.close()

    embedded(scenario)


class Calendar(SystemClock):
    """The clock of this machine, on some other day."""

    ahead = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.ahead


def test_renewed_certificates_come_with_new_pods() -> None:
    async def scenario(client: Client) -> None:
        await client.create(SPACES, {"metadata": {"name": SPACE}})
        clock = Calendar()
        before, mark = await _applied(client, clock)
        assert (before, mark) == await _applied(client, clock)
        clock.ahead = timedelta(days=300)
        after, other_mark = await _applied(client, clock)
        assert after.serial_number != before.serial_number
        assert after.not_valid_after_utc > datetime.now(UTC) + timedelta(days=600)
        assert mark != other_mark

    embedded(scenario)


async def _applied(client: Client, clock: Calendar) -> tuple[x509.Certificate, object]:
    runtime = KubernetesRuntime(client, SPACE, clock=clock)
    await until(runtime, WANTED, lambda s: "no replica yet" in s.message)
    secret = await client.get(SECRETS, WANTED.name, SPACE)
    deployment = await client.get(DEPLOYMENTS, WANTED.name, SPACE)
    await runtime.close()
    return certificate_in(secret), deployment["spec"]["template"]["metadata"]["annotations"]


def test_replicas_that_start_at_once_agree_on_one_authority() -> None:
    async def scenario(client: Client) -> None:
        await client.create(SPACES, {"metadata": {"name": SPACE}})
        runtimes = [KubernetesRuntime(client, SPACE) for _ in range(3)]
        reached = await asyncio.gather(*(each.reach("fn-1", ENDPOINT) for each in runtimes))
        assert len({each.trust.bundle for each in reached if each.trust}) == 1

    embedded(scenario)


def test_a_secret_that_nobody_can_read_is_told() -> None:
    async def scenario(client: Client) -> None:
        await client.create(SPACES, {"metadata": {"name": SPACE}})
        spoilt = {"metadata": {"name": "polyver-functions"}, "data": {"authorities.json": "e30="}}
        spoilt["data"]["authorities.json"] = base64.b64encode(b"nonsense").decode()
        await client.create(SECRETS, spoilt, SPACE)
        runtime = KubernetesRuntime(client, SPACE)
        refused = await until(runtime, WANTED, lambda s: s.reason == "NotApplied")
        assert "polyver-functions has unexpected content" in refused.message
        await runtime.close()

    embedded(scenario)


@pytest.mark.parametrize("name", ["1-starts-with-a-digit", "x" * 64, "has.dots"])
def test_a_name_that_no_service_can_have_is_told(name: str) -> None:
    async def scenario(client: Client) -> None:
        runtime = KubernetesRuntime(client, SPACE)
        refused = await runtime.serve(DesiredRevision(name, IMAGE, IMAGE))
        assert refused.reason == "InvalidName"

    embedded(scenario)


def test_the_digest_of_an_image_is_its_own_or_its_reference() -> None:
    async def scenario(client: Client) -> None:
        runtime = KubernetesRuntime(client, SPACE)
        digest = f"sha256:{'0' * 64}"
        assert await runtime.digest(f"registry.example.com/fn:v1@{digest}") == digest
        assert await runtime.digest(IMAGE) == IMAGE

    embedded(scenario)


def test_a_deployment_that_nobody_has_seen_to_is_starting() -> None:
    assert served_of(None, "fn-1", SPACE).reason == "Starting"
    refused = {"type": "ReplicaFailure", "status": "True", "message": "quota"}
    failed = {"status": {"conditions": [refused]}}
    assert served_of(failed, "fn-1", SPACE) == ServingStatus(reason="NotStarting", message="quota")
