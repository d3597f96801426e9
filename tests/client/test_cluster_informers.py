"""Informers, unchanged, over lines and servers that fail: what they tell adds up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs
from tests.client.running import numbers
from tests.client.scripted import Line, Reply, Scripted, Seen, asked, line_to, reply, settled
from tests.deadlines import HANG

from polyver.client import Backoff, Change, GroupVersionResource, Informer, Key
from polyver.client.cluster import (
    ClientLimits,
    ClusterAccess,
    ClusterClient,
    Unreachable,
    find_access,
)
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError, expired
from polyver.testing import EmbeddedServer

MAPS = GroupVersionResource("", "v1", "configmaps")


class World:
    """An informer of ConfigMaps over a line to an embedded server, and what it told."""

    def __init__(self, client: ClusterClient, line: Line, namespace: str) -> None:
        self.client = client
        self.line = line
        self.namespace = namespace
        self.shown: dict[Key, str] = {}
        self.told = 0
        self.informer = Informer(
            client,
            MAPS,
            keep=lambda content: str(content["metadata"]["resourceVersion"]),
            handler=self._tell,
            namespace=namespace,
            labels="mine=yes",
            backoff=Backoff(first=0.01, most=0.1),
        )

    async def _tell(self, change: Change[str]) -> None:
        assert change.before == self.shown.get(change.key)
        self.told += 1
        if change.after is None:
            del self.shown[change.key]
        else:
            self.shown[change.key] = change.after

    @property
    def names(self) -> set[str]:
        return {key.name for key in self.shown}

    def map(self, name: str) -> Object:
        about = {"name": name, "namespace": self.namespace, "labels": {"mine": "yes"}}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about}


def informed(
    server: EmbeddedServer,
    scenario: Callable[[World, ClusterClient], Awaitable[None]],
    *,
    namespace: str,
    limits: ClientLimits | None = None,
) -> None:
    """The scenario gets the informer's world, and a client that goes straight to the server."""

    async def run() -> None:
        access = find_access(kubeconfig=server.kubeconfig)
        async with (
            line_to(int(access.server.rpartition(":")[2])) as line,
            ClusterClient(access) as straight,
            ClusterClient(_through(line, server), limits=limits) as client,
        ):
            world = World(client, line, namespace)
            task = asyncio.create_task(world.informer.run())
            try:
                await asyncio.wait_for(world.informer.synced.wait(), HANG)
                await asyncio.wait_for(scenario(world, straight), HANG)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


def _through(line: Line, server: EmbeddedServer) -> ClusterAccess:
    access = find_access(kubeconfig=server.kubeconfig)
    return replace(access, cluster=structs.replace(access.cluster, server=line.url))


def _space(server: EmbeddedServer, name: str) -> str:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    server.request("POST", "/api/v1/namespaces", body)
    return name


def test_a_connection_that_is_cut_costs_no_list(kube_server: EmbeddedServer) -> None:
    async def scenario(world: World, straight: ClusterClient) -> None:
        await straight.create(MAPS, world.map("m"))
        await settled(lambda: world.names == {"m"})
        world.line.refuses = True
        world.line.cut()
        await straight.create(MAPS, world.map("n"))
        await settled(lambda: isinstance(world.informer.problem, Unreachable))
        await settled(lambda: world.informer._failures > 3)
        world.line.refuses = False
        await settled(lambda: world.names == {"m", "n"})
        assert world.informer.relists == 1
        assert world.told == 2

    informed(kube_server, scenario, namespace=_space(kube_server, "cut"))


def test_a_line_that_is_frozen_is_left_for_another(kube_server: EmbeddedServer) -> None:
    async def scenario(world: World, straight: ClusterClient) -> None:
        await straight.create(MAPS, world.map("m"))
        await settled(lambda: world.names == {"m"})
        world.line.frozen = True
        await straight.create(MAPS, world.map("n"))
        await settled(lambda: isinstance(world.informer.problem, Unreachable))
        world.line.frozen = False
        await settled(lambda: world.names == {"m", "n"})
        assert world.informer.relists == 1

    limits = ClientLimits(silence=1.5, request=1.0)
    informed(kube_server, scenario, namespace=_space(kube_server, "frozen"), limits=limits)


def test_a_server_that_is_started_again_is_found_again(tmp_path: Path) -> None:
    async def scenario(world: World, straight: ClusterClient) -> None:
        await straight.create(MAPS, world.map("m"))
        await settled(lambda: world.names == {"m"})
        await asyncio.to_thread(first.__exit__, None, None, None)
        await settled(lambda: isinstance(world.informer.problem, Unreachable))
        second = EmbeddedServer(data=tmp_path)
        await asyncio.to_thread(second.__enter__)
        try:
            second.request(
                "POST", f"/api/v1/namespaces/{world.namespace}/configmaps", world.map("n")
            )
            world.line.target = int(second.url.rpartition(":")[2])
            await settled(lambda: world.names == {"m", "n"})
        finally:
            await asyncio.to_thread(second.__exit__, None, None, None)

    first = EmbeddedServer(data=tmp_path)
    first.__enter__()
    informed(first, scenario, namespace=_space(first, "again"))


@pytest.mark.parametrize("way", ["status", "event"])
def test_what_is_gone_is_listed_again(way: str) -> None:
    """A server that has forgotten where a watch was says so with a code, or in an event."""
    gone = expired("too old resource version: 1 (7)").status
    lists = 0

    def answer(seen: Seen) -> Reply:
        nonlocal lists
        if "watch=true" not in seen.target:
            lists += 1
            item = {"metadata": {"name": "m", "namespace": "a", "resourceVersion": str(lists)}}
            return reply({"metadata": {"resourceVersion": str(lists)}, "items": [item]})
        if lists > 1:
            return Reply(body=b"", hangs=True)
        if way == "status":
            return reply(gone, 410)
        return Reply(body=json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")

    async def scenario(client: ClusterClient, server: Scripted) -> None:
        with pytest.raises(ApiError, match="too old") as caught:
            await _first(client)
        assert (caught.value.code, caught.value.reason) == (410, "Expired")
        told: list[str | None] = []

        async def tell(change: Change[str]) -> None:
            told.append(change.after)

        backoff = Backoff(first=0.01, most=0.02)
        informer = Informer(client, MAPS, keep=_version, handler=tell, backoff=backoff)
        task = asyncio.create_task(informer.run())
        await settled(lambda: told == ["1", "2"])
        assert informer.relists == 2
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asked(answer, scenario)


async def _first(client: ClusterClient) -> None:
    async with aclosing(client.watch(MAPS, "a", resource_version="1")) as events:
        await anext(events)


def _version(content: Object) -> str:
    return str(content["metadata"]["resourceVersion"])


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "delete", "cut", "refuse", "allow", "wait"]),
        st.integers(0, 2),
    ),
    min_size=5,
    max_size=15,
)


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_whatever_happens_to_the_line_it_ends_with_what_is_there(
    kube_server: EmbeddedServer, steps: list[tuple[str, int]]
) -> None:
    """Every change told begins where the one before it ended: `World._tell` checks that."""
    there: dict[str, str] = {}

    async def take(world: World, straight: ClusterClient, step: str, name: str) -> None:
        match step:
            case "write":
                content = world.map(name) | {"data": {"k": str(len(there) + world.told)}}
                made = await straight.apply(MAPS, content, manager="me")
                there[name] = made["metadata"]["resourceVersion"]
            case "delete" if name in there:
                await straight.delete(MAPS, name, world.namespace)
                del there[name]
            case "cut":
                world.line.cut()
            case "refuse" | "allow":
                world.line.refuses = step == "refuse"
            case "wait":
                await asyncio.sleep(0.02)

    async def scenario(world: World, straight: ClusterClient) -> None:
        for step, number in steps:
            await take(world, straight, step, f"m{number}")
        world.line.refuses = False
        await settled(lambda: {key.name: at for key, at in world.shown.items()} == there)
        assert world.informer.relists == 1

    informed(kube_server, scenario, namespace=_space(kube_server, f"line-{next(numbers)}"))
