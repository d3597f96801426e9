"""Applications with fields that are not executed are refused with every path."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from tests.definitions.samples import (
    Platform,
    application,
    collection_of,
    condition,
    definition,
    path_of,
    served,
    templated,
    versions_of,
)
from tests.editing import edited

from polyver.definitions.names import APPLYING
from polyver.definitions.rendered_objects import inputs_digest
from polyver.kube.objects.status import ApiError

Object = dict[str, Any]
IMAGE = {"image": "nginx:1"}
ACCOUNT = "app.oam.dev/service-account-name"
TRAIT = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "{{ .context.appName }}-trait"}\n'
HEALTH = {"healthPolicy": "isHealth: true", "customStatus": 'message: "fine"'}


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with served() as running:
        yield running


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return f"s{zlib.crc32(request.node.name.encode())}"


def is_applied(platform: Platform, name: str) -> bool:
    try:
        platform.request("GET", f"/api/v1/namespaces/default/configmaps/{name}-c0")
    except ApiError as error:
        if error.code != 404:
            raise
        return False
    return True


def refused(platform: Platform, app: Object) -> str:
    """Deploy an application that is to be refused; what the condition says."""
    found = platform.deploy(app)
    assert found["status"]["status"] == "failed", found["status"]
    assert condition(found, "Ready")["status"] == "False"
    said = condition(found, "Supported")
    assert (said["status"], said["reason"]) == ("False", "NotExecuted")
    if condition(found, "Resolved")["status"] == "True":
        assert condition(found, "Rendered")["reason"] == "Unsupported"
    return str(said["message"])


def test_every_field_that_is_not_executed_is_named_and_nothing_is_applied(
    platform: Platform, name: str
) -> None:
    platform.publish(definition(name, templated("1.0.0")))
    for kind in ("PolicyDefinition", "WorkflowStepDefinition"):
        platform.publish(definition(f"{name}-{kind[0].lower()}", "1.0.0", kind=kind))
    app = application(name, f"{name}@1", properties=IMAGE)
    app["metadata"]["annotations"] = {ACCOUNT: "somebody"}
    app["spec"]["components"][0] |= {
        "dependsOn": ["c1"],
        "inputs": [{"from": "x", "parameterKey": "image"}],
        "outputs": [{"name": "x", "valueFrom": "output.metadata.name"}],
        "externalRevision": "c0-v1",
        "scopes": {"healthscopes.core.oam.dev": "h"},
    }
    app["spec"]["policies"] = [{"name": "p", "type": f"{name}-p"}]
    step = {"name": "s", "type": f"{name}-w"}
    app["spec"]["workflow"] = {"ref": "w", "mode": {"steps": "DAG"}, "steps": [step]}
    message = refused(platform, app)
    component = "spec.components[0]"
    paths = {
        *(f"{component}.{each}" for each in ("dependsOn", "inputs", "outputs", "scopes")),
        f"{component}.externalRevision",
        "spec.policies[0]",
        *(f"spec.workflow.{each}" for each in ("ref", "mode", "steps[0]")),
        f"metadata.annotations[{ACCOUNT}]",
    }
    assert {each for each in paths if f"({each})" not in message} == set()
    assert message.count(" is not executed") == len(paths)
    assert not is_applied(platform, name)
    found = platform.get(app)
    assert versions_of(found) == ["1.0.0", "1.0.0", "1.0.0"], "all definitions are recorded"
    assert found["status"]["latestRevision"]["name"] == f"{name}-v1"


def test_objects_that_were_applied_stay_and_the_application_runs_again_without_the_field(
    platform: Platform, name: str
) -> None:
    platform.publish(definition(name, templated("1.0.0")))
    app = application(name, f"{name}@1", properties=IMAGE)
    assert condition(platform.runs(app), "Supported")["status"] == "True"
    app["spec"]["components"][0] |= {"dependsOn": ["other"], "properties": {"image": "nginx:2"}}
    assert "(spec.components[0].dependsOn)" in refused(platform, app)
    config = f"/api/v1/namespaces/default/configmaps/{name}-c0"
    assert platform.request("GET", config)["data"]["image"] == "nginx:1"
    del app["spec"]["components"][0]["dependsOn"]
    found = platform.runs(app)
    assert condition(found, "Supported")["status"] == "True"
    assert platform.request("GET", config)["data"]["image"] == "nginx:2"


def test_health_and_stages_that_a_definition_declares_are_not_taken_for_granted(
    platform: Platform, name: str
) -> None:
    platform.publish(definition(name, templated("1.0.0") | {"status": HEALTH}))
    trait = templated("2.0.0") | {"stage": "PostDispatch", "manageWorkload": True}
    platform.publish(definition(f"{name}-t", trait, kind="TraitDefinition"))
    app = application(name, f"{name}@1", properties=IMAGE)
    app["spec"]["components"][0]["traits"] = [{"type": f"{name}-t", "properties": IMAGE}]
    assert refused(platform, app).split("; ")[:-1] == [
        f"{name} 1.0.0 has status.healthPolicy, which is not executed (spec.components[0].type)",
        f"{name} 1.0.0 has status.customStatus, which is not executed (spec.components[0].type)",
        f"{name}-t 2.0.0 has manageWorkload, which is not executed"
        " (spec.components[0].traits[0].type)",
        f"{name}-t 2.0.0 has stage, which is not executed (spec.components[0].traits[0].type)",
    ]
    assert not is_applied(platform, name)


def test_fields_that_describe_a_definition_are_no_reason_to_refuse(
    platform: Platform, name: str
) -> None:
    described = {"podSpecPath": "spec", "status": {"healthPolicy": ""}, "extension": {"a": 1}}
    platform.publish(definition(name, templated("1.0.0") | described))
    trait = templated("1.0.0", TRAIT) | {"stage": "DefaultDispatch", "appliesToWorkloads": ["*"]}
    platform.publish(definition(f"{name}-t", trait, kind="TraitDefinition"))
    app = application(name, f"{name}@1", properties=IMAGE)
    app["spec"]["components"][0] |= {
        "traits": [{"type": f"{name}-t", "properties": IMAGE}],
        "dependsOn": [],
    }
    app["spec"] |= {"policies": [], "workflow": {"steps": []}}
    platform.runs(app)


def test_an_application_that_does_not_resolve_names_both_reasons(
    platform: Platform, name: str
) -> None:
    app = application(name, f"{name}@1")
    app["spec"]["policies"] = [{"name": "p", "type": "topology"}]
    message = refused(platform, app)
    assert "policy topology is not executed (spec.policies[0])" in message
    assert "topology" in condition(platform.get(app), "Resolved")["message"]


def test_an_application_that_an_earlier_release_of_polyver_applied_is_refused_as_well(
    platform: Platform, name: str
) -> None:
    platform.publish(definition(name, templated("1.0.0") | {"status": HEALTH}))
    app = application(name, f"{name}@1", properties=IMAGE)
    refused(platform, app)
    # As it was left: all of it applied, and no condition that says whether all was executed.
    found = platform.get(app)
    digest = inputs_digest(found, found["status"]["latestRevision"])
    noted = {"annotations": {APPLYING: digest}}
    edited(platform.request, path_of(app), lambda each: each["metadata"].update(noted))

    def apply(found: Object) -> None:
        kept = [each for each in found["status"]["conditions"] if each["type"] == "Resolved"]
        found["status"] |= {"status": "running", "appliedDigest": digest, "conditions": kept}

    edited(platform.request, f"{path_of(app)}/status", apply)
    found = platform.until(app, lambda each: each["status"]["status"] == "failed")
    assert condition(found, "Supported")["status"] == "False"


def test_admission_warns_about_what_will_be_refused(platform: Platform, name: str) -> None:
    made = definition(name, templated("1.0.0") | {"status": HEALTH})
    platform.request("POST", collection_of(made), made)
    assert [each for each in platform.warnings if "status.customStatus is not executed" in each]
    assert all("applications that use it are refused" in each for each in platform.warnings)
    policy = definition(f"{name}-p", "1.0.0", kind="PolicyDefinition")
    policy["spec"]["versions"][0]["global"] = True
    platform.request("POST", collection_of(policy), policy)
    assert [each.split('"')[1].partition(":")[0] for each in platform.warnings] == [
        "policies are not executed",
        "spec.versions[0].global has no effect",
    ]
    app = application(name, f"{name}@1")
    app["spec"]["policies"] = [{"name": "p", "type": f"{name}-p"}]
    platform.request("POST", collection_of(app), app)
    [warning] = platform.warnings
    assert f"policy {name}-p is not executed (spec.policies[0])" in warning
