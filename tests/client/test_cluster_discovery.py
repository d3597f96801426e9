"""What a cluster serves: in one document or in many, and told when it changes."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace

import pytest
from tests.client.scripted import Reply, Scripted, Seen, asked, refused, reply
from tests.client.virtual import VirtualClock

from polyver.client.client import BadAnswer
from polyver.client.cluster import (
    ClusterClient,
    find_access,
)
from polyver.testing import EmbeddedServer

PLAIN = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {
        "kind": "APIGroupList",
        "groups": [
            {
                "name": "ex.io",
                "versions": [
                    {"groupVersion": "ex.io/v1beta1", "version": "v1beta1"},
                    {"groupVersion": "ex.io/v1", "version": "v1"},
                ],
                "preferredVersion": {"groupVersion": "ex.io/v1", "version": "v1"},
            },
            {"name": "away.io", "versions": [{"groupVersion": "away.io/v1", "version": "v1"}]},
            {"name": "odd.io", "versions": [{"groupVersion": "odd.io/v1", "version": "v1"}]},
        ],
    },
    "/api/v1": {"resources": [{"name": "pods", "kind": "Pod", "namespaced": True}]},
    "/apis/ex.io/v1": {
        "resources": [
            {"name": "toys", "singularName": "toy", "kind": "Toy", "namespaced": True},
            {"name": "toys/scale", "group": "autoscaling", "version": "v1", "kind": "Scale"},
        ]
    },
    "/apis/ex.io/v1beta1": {"resources": [{"name": "toys", "kind": "Toy", "namespaced": True}]},
    "/apis/odd.io/v1": {"resources": 7},
}


def test_an_older_server_is_asked_for_each_version() -> None:
    def answer(seen: Seen) -> Reply:
        if seen.path == "/apis/away.io/v1":
            return refused(503, "ServiceUnavailable", "the server is currently unable")
        return reply(PLAIN[seen.path])

    async def scenario(client: ClusterClient, server: Scripted) -> None:
        found = await client.discover()
        names = [(kind.api_version, kind.plural) for kind in found.kinds]
        assert names == [("v1", "pods"), ("ex.io/v1", "toys"), ("ex.io/v1beta1", "toys")]
        toy = found.find("ex.io/v1", "Toy")
        assert toy is not None
        scale = toy.subresource("scale")
        assert scale is not None
        assert (scale.group, scale.version, scale.kind) == ("autoscaling", "v1", "Scale")
        assert [*found.failures] == ["away.io/v1", "odd.io/v1"]
        assert found.failures["away.io/v1"] == "the server is currently unable"
        assert "GET /apis/odd.io/v1: Expected" in found.failures["odd.io/v1"]

    asked(answer, scenario)


def test_discovery_that_cannot_be_read_names_the_path() -> None:
    async def scenario(client: ClusterClient, server: Scripted) -> None:
        with pytest.raises(BadAnswer, match=r"discovery cannot be read.*GET /api"):
            await client.discover()

    asked(lambda _: reply({"kind": "APIGroupDiscoveryList", "items": [7]}), scenario)


def test_both_ways_to_ask_find_the_same(
    kube_server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with ClusterClient(find_access(kubeconfig=kube_server.kubeconfig)) as client:
            at_once = await client.discover()
        monkeypatch.setattr("polyver.client.client._GROUPS", "application/json")
        async with ClusterClient(find_access(kubeconfig=kube_server.kubeconfig)) as client:
            one_by_one = await client.discover()
        assert [_about(kind) for kind in one_by_one.kinds] == [
            _about(kind) for kind in at_once.kinds
        ]

    def _about(kind: object) -> object:
        # The parts name their groups in the one and leave them out in the other.
        return replace(kind, subresources=())  # type: ignore[type-var]

    asyncio.run(scenario())


def test_discovery_that_is_known_is_not_sent_again() -> None:
    document = {"kind": "APIGroupDiscoveryList", "items": [{"versions": [{"version": "v1"}]}]}

    def answer(seen: Seen) -> Reply:
        if seen.headers.get("if-none-match") == '"7"':
            return Reply(304, b"")
        return reply(document, etag='"7"')

    async def scenario(client: ClusterClient, server: Scripted) -> None:
        first = await client.discover()
        assert await client.discover() == first
        assert [seen.headers.get("if-none-match") for seen in server.seen] == [
            *(None, None),
            *('"7"', '"7"'),
        ]

    asked(answer, scenario)


def test_kinds_are_told_where_their_definitions_may_not_be_seen() -> None:
    """Nothing but discovery is allowed, so it is asked again after a while."""
    clock = VirtualClock()
    versions = [{"version": "v1"}]

    def answer(seen: Seen) -> Reply:
        if seen.path in ("/api", "/apis"):
            return reply({"kind": "APIGroupDiscoveryList", "items": [{"versions": versions}]})
        return refused(403, "Forbidden", "not for you")

    async def scenario(client: ClusterClient, server: Scripted) -> None:
        async with aclosing(client.watch_kinds()) as found:
            await anext(found)
            versions[0] = {"version": "v1", "freshness": "Stale"}
            waiting = asyncio.create_task(anext(found))
            while not waiting.done():
                await clock.advance(1)
                await asyncio.sleep(0.005)
            assert (await waiting).failures
        assert clock.time() <= 90

    asked(answer, scenario, clock=clock)
