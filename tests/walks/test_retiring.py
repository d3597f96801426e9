"""A version is retired: nothing is lost, and who applied in it goes on in another one."""

from __future__ import annotations

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
    spec = {"definition": NAME, "version": version, **spec}
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
