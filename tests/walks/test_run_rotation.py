"""Certificates are rotated under two replicas while an API server asks them all the time."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest
from tests.deadlines import HANG
from tests.walks.replicas import NAMESPACE, Balancer
from tests.walks.test_run import define, lamp, prepare

from polyver.app._replica import ReplicaSettings, replica
from polyver.client import GroupVersionResource
from polyver.client.cluster import ClusterAccess, ClusterClient, find_access
from polyver.core.plain import Object
from polyver.kube.objects.webhooks import Webhook
from polyver.testing import EmbeddedServer, LocalCluster
from polyver.webhook import rotation
from polyver.webhook import shared_certificates as shared
from polyver.webhook.shared_certificates import SecretDocument

if TYPE_CHECKING:
    from tests.walks.support import Server

GROUP = "lamps.dev"
LAMPS = {version: GroupVersionResource(GROUP, version, "lamps") for version in ("v1", "v2")}
ROTATIONS = 2


@pytest.fixture(params=["embedded", pytest.param("kubernetes", marks=pytest.mark.kube)])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    start = EmbeddedServer(capabilities=()) if request.param == "embedded" else LocalCluster()
    with start as running:
        prepare(running)
        yield running


@pytest.fixture
def restless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every authority is about to end, and what took minutes and days takes seconds."""
    seconds = datetime.timedelta(seconds=1.5)
    monkeypatch.setattr(rotation, "REPLACED_BEFORE", datetime.timedelta(days=36_500))
    for module in (rotation, shared):
        monkeypatch.setattr(module, "SETTLED_AFTER", seconds)
    monkeypatch.setattr(shared, "_LOOK_EVERY", 0.2)


class Load:
    """Requests that never stop, each of which needs a conversion."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self.done = 0
        self.failures: list[str] = []

    async def keep_on(self, act: Callable[[int], Awaitable[Any]]) -> None:
        for number in range(1_000_000):
            try:
                await act(number)
                self.done += 1
            except Exception as error:
                self.failures.append(repr(error))
            await asyncio.sleep(0.01)

    async def read(self, number: int) -> None:
        resource = LAMPS["v1" if number % 2 else "v2"]
        found = await self._client.get(resource, "a", "default")
        assert found["spec"].keys() <= {"watts", "colour", "power"}

    async def list(self, number: int) -> None:
        found = await self._client.list(LAMPS["v2" if number % 2 else "v1"], "default")
        assert len(found.items) == 2

    async def write(self, number: int) -> None:
        change: Object = {"spec": {"watts": str(number)}}
        made = await self._client.patch(LAMPS["v1"], "b", "default", change=change)
        assert made["spec"] == {"watts": str(number), "colour": "red"}


@pytest.mark.usefixtures("restless")
def test_no_request_fails_while_certificates_are_rotated(server: Server) -> None:
    balancer = Balancer()
    access = find_access(kubeconfig=server.kubeconfig)

    async def story() -> None:
        async with AsyncExitStack() as undo:
            for name in ("one", "two"):
                running = await undo.enter_async_context(
                    replica(settings(access, balancer.url, name))
                )
                balancer.ports.append(int(running.url.rpartition(":")[2]))
            await asyncio.to_thread(define, server, GROUP)
            client = await undo.enter_async_context(ClusterClient(access))
            for name in ("a", "b"):
                content = lamp(GROUP, "v1", name, watts="60", colour="red")
                await client.create(LAMPS["v1"], content, "default")
            load = Load(client)
            tasks = [asyncio.create_task(load.keep_on(each)) for each in (load.read, load.list)]
            tasks.append(asyncio.create_task(load.keep_on(load.write)))
            signers = await signers_seen(client, ROTATIONS + 1)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            assert load.failures == [], f"{load.done} others went well"
            assert signers > ROTATIONS
            assert load.done > 50

    try:
        asyncio.run(story())
    finally:
        balancer.close()


def settings(access: ClusterAccess, url: str, name: str) -> ReplicaSettings:
    webhook = Webhook(url=url)
    names = ("127.0.0.1", "localhost")
    return ReplicaSettings(access, webhook, "127.0.0.1", 0, NAMESPACE, names, identity=name)


async def signers_seen(client: ClusterClient, count: int) -> int:
    """Wait until so many authorities have signed what is shown, and the last is trusted alone."""
    document = SecretDocument(client, NAMESPACE, "polyver-webhook")
    seen: set[str] = set()
    async with asyncio.timeout(HANG):
        while True:
            held = await document.read()
            assert held is not None
            assert held.kept.leaf is not None
            seen.add(held.kept.leaf.signer)
            if len(seen) >= count and held.kept.serials[0] == held.kept.leaf.signer:
                return len(seen)
            await asyncio.sleep(0.1)
