"""API services: one for everything that is served, and nothing more than a note of the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.crds import widget_definition
from tests.kube.server.test_pipeline import DEFINITIONS, Client, eventually, run

from polyver.kube.objects.builtin import builtin_kinds
from polyver.kube.server.registrations import builtin_registrations
from polyver.testing import EmbeddedServer

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
ELSEWHERE = {
    "apiVersion": "apiregistration.k8s.io/v1",
    "kind": "APIService",
    "metadata": {"name": "v1.ex.io"},
    "spec": {
        "group": "ex.io",
        "version": "v1",
        "groupPriorityMinimum": 10,
        "versionPriority": 10,
        "service": {"namespace": "default", "name": "web"},
    },
}


async def names(client: Client) -> set[str]:
    found = await client.get(SERVICES)
    return {item["metadata"]["name"] for item in found["items"]}


async def registered(client: Client, *wanted: str) -> None:
    async def are() -> bool:
        return set(wanted) <= await names(client)

    await eventually(are)


def test_every_version_that_is_served_is_registered() -> None:
    async def test(client: Client) -> None:
        groups = await client.get("/apis")
        served = {
            f"{version['version']}.{group['name']}"
            for group in groups["groups"]
            for version in group["versions"]
        }
        # Whoever keeps the list is not on it.
        assert await names(client) == served - {"v1.apiregistration.k8s.io"} | {"v1."}

    run(test)


def test_registrations_are_in_the_order_of_discovery() -> None:
    specs = [each["spec"] for each in builtin_registrations(builtin_kinds())]
    by_priority = sorted(specs, key=lambda spec: -int(spec["groupPriorityMinimum"]))
    groups = list(dict.fromkeys(spec.get("group", "") for spec in by_priority))
    assert groups[:4] == ["", "apps", "events.k8s.io", "authentication.k8s.io"]


def test_many_definitions_at_once_are_all_registered() -> None:
    async def test(client: Client) -> None:
        for number in range(20):
            await client.make(DEFINITIONS, widget_definition(f"g{number}.io"))
        wanted = {f"v1.g{number}.io" for number in range(20)}
        await registered(client, *wanted)
        for number in range(20):
            await client.ask("DELETE", f"{DEFINITIONS}/widgets.g{number}.io")

        async def gone() -> bool:
            return not wanted & await names(client)

        await eventually(gone)

    run(test)


def test_one_that_leads_elsewhere_is_kept_with_a_warning_and_said_to_be_unavailable() -> None:
    async def test(client: Client) -> None:
        answer = await client.ask("POST", SERVICES, ELSEWHERE)
        assert answer.status == 201
        warning = "API services are stored, but this server does not forward requests"
        assert ("warning", f'299 - "{warning}"') in answer.headers

        async def told() -> bool:
            return bool((await client.get(f"{SERVICES}/v1.ex.io"))["status"])

        await eventually(told)
        [condition] = (await client.get(f"{SERVICES}/v1.ex.io"))["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("Available", "False")
        assert condition["reason"] == "NotAggregated"
        assert (await client.ask("GET", "/apis/ex.io/v1/things")).status == 404

    run(test)


def test_one_of_the_same_name_is_nobody_elses() -> None:
    async def test(client: Client) -> None:
        await client.ask("POST", SERVICES, ELSEWHERE)
        await client.make(DEFINITIONS, widget_definition("ex.io"))

        async def served() -> bool:
            return (await client.ask("GET", "/apis/ex.io/v1/widgets")).status == 200

        await eventually(served)
        await client.ask("DELETE", f"{DEFINITIONS}/widgets.ex.io")
        await client.make(DEFINITIONS, widget_definition("later.io"))
        await registered(client, "v1.later.io")
        found = await client.get(f"{SERVICES}/v1.ex.io")
        assert found["spec"]["service"]["name"] == "web"

    run(test)


@pytest.mark.parametrize("name", ["v1.apps", "v1.batch"])
def test_what_was_deleted_comes_back_with_the_server(tmp_path: Path, name: str) -> None:
    with EmbeddedServer(data=tmp_path) as server:
        server.request("DELETE", f"{SERVICES}/{name}")
        assert name not in listed(server)
    with EmbeddedServer(data=tmp_path) as server:
        assert name in listed(server)


def listed(server: EmbeddedServer) -> list[str]:
    found: Any = server.request("GET", SERVICES)
    return [item["metadata"]["name"] for item in found["items"]]
