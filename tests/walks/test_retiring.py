"""A version is retired: nothing is lost, and who applied in it goes on in another one."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.editing import edited
from tests.walks.conftest import DEFINITIONS
from tests.walks.support import eventually, request
from tests.walks.test_conversions import (
    CONVERSIONS,
    NAME,
    V1,
    conversion,
    crontab,
    definition,
    is_serving,
    path,
)

from polyver.apis.conversion import ANNOTATION
from polyver.client import CRDS
from polyver.client.cluster import ClusterClient, find_access
from polyver.testing import EmbeddedServer

Object = dict[str, Any]
RETIREMENTS = "/apis/polyver.dev/v1alpha1/retirements"
OLD = {**V1, "times": "1 2 3"}


@pytest.fixture
def server() -> Iterator[EmbeddedServer]:
    """A server with CronTabs that are stored in v1 and in v2."""
    with EmbeddedServer() as running:
        running.request("POST", DEFINITIONS, definition("v1"))
        running.request("POST", CONVERSIONS, conversion())
        eventually(lambda: is_serving(running))
        eventually(lambda: request(running, "GET", path("v1")))
        for number in range(3):
            running.request("POST", path("v1"), named(crontab("v1", **OLD), f"old-{number}"))
        edited(running.request, f"{DEFINITIONS}/{NAME}", store_in("v2"))
        eventually(lambda: is_serving(running))
        running.request("POST", path("v2"), named(crontab("v2", schedule="@daily"), "new"))
        yield running


def store_in(version: str) -> Any:
    def change(crd: Object) -> None:
        for each in crd["spec"]["versions"]:
            each["storage"] = each["name"] == version

    return change


def named(obj: Object, name: str) -> Object:
    return {**obj, "metadata": {"name": name}}


def retirement(version: str = "v1", **spec: Any) -> Object:
    about = {"apiVersion": "polyver.dev/v1alpha1", "kind": "Retirement"}
    spec = {"definition": NAME, "version": version, "ignoreClients": True, **spec}
    spec = {name: value for name, value in spec.items() if value is not None}
    return {**about, "metadata": {"name": f"{NAME}-{version}"}, "spec": spec}


def retire(server: EmbeddedServer, version: str = "v1", **spec: Any) -> Object:
    server.request("POST", RETIREMENTS, retirement(version, **spec))
    return ended(server, version)


def found(server: EmbeddedServer, version: str = "v1") -> Object:
    made: Object = server.request("GET", f"{RETIREMENTS}/{NAME}-{version}")
    return made


def ended(server: EmbeddedServer, version: str = "v1", *states: str) -> Object:
    wanted = states or ("Completed", "Aborted", "Blocked")
    return eventually(
        lambda: (
            made
            if (made := found(server, version).get("status") or {}).get("state") in wanted
            else None
        )
    )


def visible(server: EmbeddedServer, version: str) -> dict[str, Object]:
    """All objects of a version by name, as clients see them, without what polyver keeps."""
    items = copy.deepcopy(server.request("GET", path(version))["items"])
    return {each["metadata"]["name"]: each["spec"] for each in items}


def versions(server: EmbeddedServer) -> list[str]:
    crd = server.request("GET", f"{DEFINITIONS}/{NAME}")
    return [each["name"] for each in crd["spec"]["versions"]]


def test_a_version_is_removed_and_no_object_loses_a_field(server: EmbeddedServer) -> None:
    before = {name: visible(server, name) for name in ("v2", "v3")}
    status = retire(server)
    assert (status["state"], status.get("blockers")) == ("Completed", None)
    assert sorted(versions(server)) == ["v2", "v3"]
    assert server.request("GET", f"{DEFINITIONS}/{NAME}")["status"]["storedVersions"] == ["v2"]
    assert {name: visible(server, name) for name in ("v2", "v3")} == before
    spec = server.request("GET", f"{CONVERSIONS}/{NAME}")["spec"]
    assert spec["versions"] == ["v2", "v3"]
    assert [(each["from"], each["to"]) for each in spec["edges"]] == [("v2", "v3")]
    eventually(lambda: is_serving(server))
    steps = [each["step"] for each in status["history"]]
    assert steps == [
        "StopServing",
        "RewriteObjects",
        "VerifyObjects",
        "TrimStoredVersions",
        "RewriteManagedFields",
        "PurgePreservedFields",
        "DropVersion",
        "NarrowConversion",
        "Completed",
    ]
    for each in server.request("GET", path("v2"))["items"]:
        assert "v1" not in json.dumps(each["metadata"]["managedFields"])
        assert '"v1"' not in each["metadata"].get("annotations", {}).get(ANNOTATION, "")
    assert {each["path"]: each["objects"] for each in status["purged"]}["spec.only1"] == 3


# What blocks a retirement, and what does not.


def reasons(status: Object) -> list[str]:
    return [each["reason"] for each in status.get("blockers") or []]


def test_the_storage_version_is_not_retired(server: EmbeddedServer) -> None:
    status = retire(server, "v2")
    assert (status["state"], reasons(status)) == ("Blocked", ["StorageVersion", "ConversionPath"])
    assert "first make another version the storage version" in status["blockers"][0]["message"]
    assert server.request("GET", path("v2"))["items"]


def test_clients_that_used_the_version_recently_keep_it(server: EmbeddedServer) -> None:
    usage = f"/apis/polyver.dev/v1alpha1/versionusages/{NAME}"
    eventually(lambda: "v1" in counted(request(server, "GET", usage)))
    status = retire(server, ignoreClients=None)
    assert reasons(status) == ["Clients"]
    assert "clients have recently used v1: " in status["blockers"][0]["message"]
    assert server.request("GET", path("v1"))["items"]
    confirmed(server, quietPeriod="1ms")
    assert ended(server, "v1", "Completed")["state"] == "Completed"


def counted(usage: Object | None) -> list[str]:
    """The versions whose clients were counted."""
    found = ((usage or {}).get("status") or {}).get("versions") or []
    return [each["version"] for each in found if each.get("clients")]


def confirmed(server: EmbeddedServer, **spec: Any) -> None:
    def change(obj: Object) -> None:
        obj["spec"].update(spec, attempt=obj["spec"].get("attempt", 0) + 1)

    edited(server.request, f"{RETIREMENTS}/{NAME}-v1", change)


def test_a_version_that_is_served_again_is_reported_and_not_taken_away(
    server: EmbeddedServer,
) -> None:
    server.request("POST", RETIREMENTS, retirement(attempt=1))
    eventually(lambda: (found(server).get("status") or {}).get("stopped"))
    if "v1" in versions(server):
        edited(server.request, f"{DEFINITIONS}/{NAME}", serve("v1"))
        status = ended(server, "v1", "Blocked", "Completed")
        if status["state"] == "Blocked":
            assert reasons(status) == ["ServedAgain"]
            confirmed(server)
    assert ended(server, "v1", "Completed")["state"] == "Completed"


def serve(version: str) -> Any:
    def change(crd: Object) -> None:
        for each in crd["spec"]["versions"]:
            each["served"] = each["served"] or each["name"] == version

    return change


def test_a_definition_that_a_manager_applies_is_left_to_this_manager(
    server: EmbeddedServer,
) -> None:
    crd = definition("v2")
    apply(server, crd)
    status = retire(server)
    assert reasons(status) == ["AppliedElsewhere"]
    assert "argocd applies the CustomResourceDefinition" in status["blockers"][0]["message"]
    crd["spec"]["versions"][0]["served"] = False
    apply(server, crd)
    eventually(lambda: (found(server).get("status") or {}).get("step") == "DropVersion")
    assert reasons(ended(server, "v1", "Blocked")) == ["AppliedElsewhere"]
    del crd["spec"]["versions"][0]
    apply(server, crd)
    ended(server, "v1", "Completed")
    assert sorted(versions(server)) == ["v2", "v3"]


def apply(server: EmbeddedServer, obj: Object) -> None:
    """Apply an object as the field manager argocd."""

    async def send() -> None:
        access = find_access("", kubeconfig=server.kubeconfig)
        async with ClusterClient(access) as client:
            await client.apply(CRDS, obj, manager="argocd", force=True)

    asyncio.run(send())
