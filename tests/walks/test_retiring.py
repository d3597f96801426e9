"""A version is retired: nothing is lost, and who applied in it goes on in another one."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.definitions.samples import SYSTEM, templated
from tests.editing import edited
from tests.walks.conftest import DEFINITIONS
from tests.walks.installed_kinds import GROUP as KITES_GROUP
from tests.walks.installed_kinds import KITES
from tests.walks.support import eventually, request
from tests.walks.test_conversions import (
    CONVERSIONS,
    GROUP,
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
    written = {each["step"]: each["written"] for each in status["passes"]}
    assert written == {
        "RewriteObjects": 3,
        "VerifyObjects": 0,
        "RewriteManagedFields": 3,
        "PurgePreservedFields": 3,
    }
    for each in server.request("GET", path("v2"))["items"]:
        assert "v1" not in json.dumps(each["metadata"]["managedFields"])
        assert '"v1"' not in each["metadata"].get("annotations", {}).get(ANNOTATION, "")
    assert {each["path"]: each["objects"] for each in status["purged"]}["spec.only1"] == 3


# Reasons that block a retirement.


def reasons(status: Object) -> list[str]:
    return [each["reason"] for each in status.get("blockers") or []]


def test_the_storage_version_is_not_retired(server: EmbeddedServer) -> None:
    status = retire(server, "v2")
    assert (status["state"], reasons(status)) == ("Blocked", ["StorageVersion", "ConversionPath"])
    assert "first make another version the storage version" in status["blockers"][0]["message"]
    assert server.request("GET", path("v2"))["items"]


def test_clients_that_used_the_version_recently_keep_it(server: EmbeddedServer) -> None:
    usage = f"/apis/polyver.dev/v1alpha1/versionusages/{NAME}"
    # The counts are written once a minute, and when another kind is served.
    server.request("POST", DEFINITIONS, another_kind())
    eventually(lambda: "v1" in counted(request(server, "GET", usage)))
    status = retire(server, ignoreClients=None)
    assert reasons(status) == ["Clients"]
    assert "clients have recently used v1: " in status["blockers"][0]["message"]
    assert server.request("GET", path("v1"))["items"]
    confirmed(server, quietPeriod="1ms")
    assert ended(server, "v1", "Completed")["state"] == "Completed"


def another_kind() -> Object:
    made = copy.deepcopy(definition("v1"))
    made["metadata"] = {"name": f"others.{GROUP}"}
    made["spec"]["names"] = {"plural": "others", "kind": "Other"}
    return made


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


def test_objects_of_other_capabilities_that_use_the_version_keep_it() -> None:
    with EmbeddedServer(capabilities=("apis", "definitions", "compositions")) as running:
        running.request("POST", DEFINITIONS, definition("v2"))
        running.request("POST", CONVERSIONS, conversion())
        eventually(lambda: is_serving(running))
        eventually(lambda: request(running, "GET", path("v1")))
        made = f"{{apiVersion: {GROUP}/v1, kind: CronTab, metadata: {{name: made}}}}"
        spec: Object = {"versions": [templated("1.0.0", made)]}
        oam = "/apis/core.oam.dev/v1beta1"
        about = {"apiVersion": "core.oam.dev/v2beta1", "kind": "ComponentDefinition"}
        at = f"/apis/core.oam.dev/v2beta1/namespaces/{SYSTEM}/componentdefinitions"
        running.request("POST", at, {**about, "metadata": {"name": "cron"}, "spec": spec})
        about = {"apiVersion": "core.oam.dev/v1beta1", "kind": "Application"}
        used = {"components": [{"name": "a", "type": "cron@1", "properties": {"image": "x"}}]}
        app = {**about, "metadata": {"name": "shop"}, "spec": used}
        running.request("POST", f"{oam}/namespaces/default/applications", app)
        eventually(lambda: request(running, "GET", path("v1", "made")))
        application = f"{oam}/namespaces/default/applications/shop"
        eventually(lambda: applied_by(running, application))
        target = {"apiVersion": f"{GROUP}/v1", "kind": "CronTab"}
        about = {"apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition"}
        pipeline = [{"step": "a", "functionRef": {"name": "f"}}]
        spec = {"compositeTypeRef": target, "mode": "Pipeline", "pipeline": pipeline}
        at = "/apis/apiextensions.crossplane.io/v1/compositions"
        running.request("POST", at, {**about, "metadata": {"name": "tabs"}, "spec": spec})
        status = retire(running)
        assert reasons(status) == ["Dependents"]
        users = "objects use v1: Application default/shop, Composition tabs"
        assert status["blockers"][0]["message"] == users
        confirmed(running, ignoreDependents=True)
        eventually(lambda: (found(running).get("status") or {}).get("stopped") is not None)


def applied_by(server: EmbeddedServer, application: str) -> bool:
    status = server.request("GET", application).get("status") or {}
    return bool(status.get("appliedResources"))


def test_a_kind_in_python_waits_for_its_code_unless_polyver_takes_over() -> None:
    with EmbeddedServer(kinds=[KITES]) as running:
        at = f"/apis/{KITES_GROUP}/v1/namespaces/default/kites"
        kite = {"apiVersion": f"{KITES_GROUP}/v1", "kind": "Kite", "metadata": {"name": "red"}}
        running.request("POST", at, {**kite, "spec": {"length": 3}})
        name = f"kites.{KITES_GROUP}"
        made = retirement(definition=name)
        made["metadata"]["name"] = name
        running.request("POST", RETIREMENTS, made)

        def state() -> Object:
            status: Object = running.request("GET", f"{RETIREMENTS}/{name}").get("status") or {}
            return status

        eventually(lambda: state().get("state") == "Blocked")
        assert reasons(state()) == ["AppliedElsewhere"]
        assert "from Python kinds" in state()["blockers"][0]["message"]
        edited(
            running.request, f"{RETIREMENTS}/{name}", lambda obj: obj["spec"].update(takeOver=True)
        )
        eventually(lambda: state().get("state") == "Completed")
        red = running.request("GET", f"{at.replace('v1', 'v2')}/red")
        assert red["spec"] == {"metres": 3}
        owners = {each["apiVersion"] for each in red["metadata"]["managedFields"]}
        assert owners == {f"{KITES_GROUP}/v2"}
