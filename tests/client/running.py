"""Clients of every kind of server, and a namespace for each scenario that is run with one."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from tests.client.fake import FakeApi

from polyver.client import Client, GroupVersionResource, WatchEvent
from polyver.client.cluster import ClusterClient, find_access
from polyver.client.in_process import DirectClient
from polyver.core.plain import Object
from polyver.kube.server.http import User
from polyver.kube.store import MemoryStore
from polyver.testing import EmbeddedServer, LocalCluster

SECRETS = GroupVersionResource("", "v1", "secrets")
NAMESPACES = GroupVersionResource("", "v1", "namespaces", namespaced=False)
DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
DEFINITIONS = GroupVersionResource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
)
ADMIN = User("admin", ("system:masters", "system:authenticated"))
ONE, TWO = "MQ==", "Mg=="
WITHIN = 30

Scenario = Callable[[Client, str], Awaitable[None]]
Run = Callable[[Scenario], None]
numbers = itertools.count(1)


@asynccontextmanager
async def fake(_: pytest.FixtureRequest) -> AsyncIterator[Client]:
    yield DirectClient(FakeApi(), ADMIN)


@asynccontextmanager
async def _direct(_: pytest.FixtureRequest) -> AsyncIterator[Client]:
    from polyver.kube.server.api import ApiServer

    api = ApiServer(MemoryStore())
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


CLIENTS = [
    pytest.param(_direct, id="direct"),
    pytest.param(_over_https, id="https"),
    pytest.param(_real, id="kube", marks=pytest.mark.kube),
]


def running(request: pytest.FixtureRequest) -> Run:
    opens = request.param

    async def prepared(scenario: Scenario) -> None:
        namespace = f"client-{next(numbers)}"
        async with opens(request) as client:
            await client.create(NAMESPACES, object_of("Namespace", namespace))
            await asyncio.wait_for(scenario(client, namespace), WITHIN)

    return lambda scenario: asyncio.run(prepared(scenario))


def object_of(kind: str, name: str, **more: object) -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **more}


def secret(name: str, namespace: str, **metadata: object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, **metadata},
    }


def names(items: list[Object]) -> list[str]:
    return [item["metadata"]["name"] for item in items]


async def next_of(events: AsyncIterator[WatchEvent]) -> WatchEvent:
    """The next event that is no bookmark."""
    async for event in events:
        if event.type != "BOOKMARK":
            return event
    raise AssertionError("the watch has ended")
