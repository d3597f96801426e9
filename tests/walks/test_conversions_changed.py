"""Conversions and definitions that change, or go, while there are objects; and carries that do."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.editing import edited
from tests.walks.conftest import DEFINITIONS
from tests.walks.kubectl import Kubectl, kubectls
from tests.walks.support import Walk, eventually, request
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
    visible,
)

from polyver.apis.conversion import ANNOTATION
from polyver.kube.objects.status import ApiError
from polyver.testing import EmbeddedServer

Object = dict[str, Any]
FORCED = "conversion.polyver.dev/remove-by-force"


@pytest.fixture
def server() -> Iterator[EmbeddedServer]:
    """A server on which CronTabs are converted, with one of them."""
    with EmbeddedServer() as running:
        start(running)
        running.request("POST", path("v1"), crontab("v1", **V1))
        yield running


def start(running: EmbeddedServer, crd: Object | None = None) -> None:
    running.request("POST", DEFINITIONS, crd or definition())
    running.request("POST", CONVERSIONS, conversion())
    eventually(lambda: is_serving(running))
    eventually(lambda: request(running, "GET", path("v1")))


def condition(server: EmbeddedServer) -> tuple[str, str, str]:
    found = server.request("GET", f"{CONVERSIONS}/{NAME}").get("status", {}).get("conditions")
    return tuple(found[0][name] for name in ("status", "reason", "message")) if found else ("",) * 3


def define(server: EmbeddedServer, versions: list[Object]) -> None:
    path = f"{DEFINITIONS}/{NAME}"
    edited(server.request, path, lambda crd: crd["spec"].update(versions=versions))


def change_conversion(server: EmbeddedServer, **spec: Any) -> None:
    edited(server.request, f"{CONVERSIONS}/{NAME}", lambda found: found["spec"].update(spec))


def versions() -> list[Object]:
    found: list[Object] = copy.deepcopy(definition()["spec"]["versions"])
    return found


def fields(version: Object) -> Object:
    found: Object = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    return found


def seen(server: EmbeddedServer) -> Object:
    return visible(server.request("GET", path("v1", "a")), V1)


# Definitions that change


def test_a_version_that_the_conversion_does_not_know_does_not_take_the_others_down(
    server: EmbeddedServer,
) -> None:
    define(server, [*versions(), versions()[1] | {"name": "v4", "storage": False}])
    eventually(lambda: condition(server)[:2] == ("False", "DoesNotFit"))
    assert condition(server)[2].startswith(f"{NAME} has also v4 (spec.versions); versions that")
    assert seen(server) == V1
    eventually(lambda: refusal(server, "GET", path("v4", "a"))[0] == 500)
    assert "has no version v4; known: v1, v2, v3" in refusal(server, "GET", path("v4", "a"))[1]
    written = crontab("v4", schedule="x") | {"metadata": {"name": "b"}}
    assert refusal(server, "POST", path("v4"), written)[0] == 422
    edges = [*conversion()["spec"]["edges"], {"from": "v3", "to": "v4"}]
    change_conversion(server, versions=["v1", "v2", "v3", "v4"], edges=edges)
    eventually(lambda: is_serving(server))
    assert server.request("GET", path("v4", "a"))["spec"]["schedule"] == "@daily"
    assert seen(server) == V1


def test_a_version_that_goes_leaves_the_others(server: EmbeddedServer) -> None:
    define(server, [each for each in versions() if each["name"] != "v3"])
    eventually(lambda: condition(server)[:2] == ("False", "DoesNotFit"))
    assert f"{NAME} has no version v3 (spec.versions[2])" in condition(server)[2]
    assert seen(server) == V1


def test_what_a_rule_writes_and_the_schema_lacks_by_now_is_carried(
    server: EmbeddedServer,
) -> None:
    less = versions()
    del fields(less[1])["policy"]
    define(server, less)
    eventually(lambda: condition(server)[:2] == ("False", "DoesNotFit"))
    told = condition(server)[2]
    assert told.startswith("values writes spec.policy, but v2 has no such field (spec.edges[0].")
    new = crontab("v1", policy="Allow", image="y") | {"metadata": {"name": "b"}}
    server.request("POST", path("v1"), new)
    found = server.request("GET", path("v1", "b"))["spec"]
    assert (found["policy"], found["image"]) == ("Allow", "y")
    define(server, versions())
    eventually(lambda: is_serving(server))
    assert server.request("GET", path("v1", "b"))["spec"]["policy"] == "Allow"


def test_after_a_restart_as_much_is_served_as_before(tmp_path: Path) -> None:
    with EmbeddedServer(data=tmp_path) as server:
        start(server)
        server.request("POST", path("v1"), crontab("v1", **V1))
        define(server, [*versions(), versions()[1] | {"name": "v4", "storage": False}])
        eventually(lambda: condition(server)[:2] == ("False", "DoesNotFit"))
    with EmbeddedServer(data=tmp_path) as server:
        assert seen(server) == V1
        assert condition(server)[:2] == ("False", "DoesNotFit")


def refusal(server: EmbeddedServer, method: str, at: str, body: object = None) -> tuple[int, str]:
    try:
        server.request(method, at, body)
    except ApiError as error:
        return error.code, error.message
    return 200, ""


# Conversions that change, or go


def test_a_rule_that_writes_what_the_schema_lacks_is_refused_with_its_place(
    server: EmbeddedServer,
) -> None:
    wrong = conversion()["spec"]["edges"]
    wrong[0]["rules"][0] = {"move": {"from": "spec.cronSpec", "to": "spec.cron"}}
    with pytest.raises(ApiError) as refused:
        change_conversion(server, edges=wrong)
    assert refused.value.code == 422
    [cause] = (refused.value.details or {})["causes"]
    assert cause["field"] == "spec.edges[0].rules[0].move.to"
    assert "move writes spec.cron, but v2 has no such field" in cause["message"]
    assert seen(server) == V1


def test_a_conversion_that_came_before_its_definition_waits_for_one_that_fits() -> None:
    less = definition()
    less["spec"]["versions"] = versions()
    del fields(less["spec"]["versions"][0])["policy"]
    with EmbeddedServer() as server:
        server.request("POST", CONVERSIONS, conversion())
        eventually(lambda: condition(server)[1] == "NoDefinition")
        server.request("POST", DEFINITIONS, less)
        eventually(lambda: condition(server)[1] == "DoesNotFit")
        assert "values writes spec.policy, but v1 has no such field" in condition(server)[2]
        define(server, versions())
        eventually(lambda: is_serving(server))


def test_a_conversion_that_its_kind_needs_is_not_deleted(server: EmbeddedServer) -> None:
    for at in (f"{CONVERSIONS}/{NAME}", CONVERSIONS):
        code, text = refusal(server, "DELETE", at)
        assert (code, f"{NAME} serves or stores v1, v2, v3; without" in text) == (403, True)
    assert "deletionTimestamp" not in server.request("GET", f"{CONVERSIONS}/{NAME}")["metadata"]
    found = server.request("GET", path("v3", "a"))
    found["metadata"]["labels"] = {"new": "label"}
    server.request("PUT", path("v3", "a"), found)
    assert seen(server) == V1


def test_a_conversion_is_not_narrowed_while_its_kind_has_the_version(
    server: EmbeddedServer,
) -> None:
    for less in (
        {"versions": ["v1", "v2"], "edges": conversion()["spec"]["edges"][:1]},
        {"edges": conversion()["spec"]["edges"][:1]},
        {"versions": ["v2"], "edges": []},
    ):
        with pytest.raises(ApiError) as refused:
            change_conversion(server, **less)
        assert refused.value.code == 422
    assert seen(server) == V1


def test_a_conversion_goes_by_force_and_nothing_is_lost(server: EmbeddedServer) -> None:
    force(server, "v1, v2")
    assert refusal(server, "DELETE", f"{CONVERSIONS}/{NAME}")[0] == 403
    force(server, "v1, v2, v3")
    server.request("DELETE", f"{CONVERSIONS}/{NAME}")
    eventually(lambda: refusal(server, "GET", f"{CONVERSIONS}/{NAME}")[0] == 404)
    # The controller lets the Conversion go first, and stops converting then.
    eventually(lambda: refusal(server, "GET", path("v3", "a"))[0] == 500)
    crd = server.request("GET", f"{DEFINITIONS}/{NAME}")
    assert crd["spec"]["conversion"]["strategy"] == "Webhook"
    server.request("POST", CONVERSIONS, conversion())
    eventually(lambda: is_serving(server))
    assert seen(server) == V1


def force(server: EmbeddedServer, versions: str) -> None:
    """Annotate the Conversion with the versions that nobody needs it for."""
    said = {"annotations": {FORCED: versions}}
    edited(server.request, f"{CONVERSIONS}/{NAME}", lambda found: found["metadata"].update(said))


def test_a_kind_and_its_conversion_can_be_deleted_at_once(
    server: EmbeddedServer, kubectl: Kubectl, tmp_path: Path
) -> None:
    """kubectl deletes in the order of the files, and waits until all are gone."""
    folder = tmp_path / "all"
    folder.mkdir()
    (folder / "1.json").write_text(json.dumps(definition()))
    (folder / "2.json").write_text(json.dumps(conversion()))
    kubectl("delete", "-f", str(folder))
    for at in (f"{DEFINITIONS}/{NAME}", f"{CONVERSIONS}/{NAME}"):
        assert refusal(server, "GET", at)[0] == 404


def test_a_rule_that_cannot_work_on_the_type_of_its_field_is_refused_with_its_place(
    server: EmbeddedServer,
) -> None:
    wrong = conversion()["spec"]["edges"]
    scale = {"from": "spec.cronSpec", "to": "spec.schedule", "factor": 1000}
    wrong[0]["rules"][0] = {"scale": scale}
    with pytest.raises(ApiError) as refused:
        change_conversion(server, edges=wrong)
    assert refused.value.code == 422
    [cause] = (refused.value.details or {})["causes"]
    assert cause["field"] == "spec.edges[0].rules[0].scale"
    text = "spec.cronSpec of v1: scale expects an integer, but the schema has type string"
    assert text in cause["message"]
    assert seen(server) == V1


def test_what_was_for_another_kind_converts_nothing(server: EmbeddedServer) -> None:
    server.request("DELETE", f"{DEFINITIONS}/{NAME}")
    eventually(lambda: refusal(server, "GET", f"{DEFINITIONS}/{NAME}")[0] == 404)
    other = definition()
    other["spec"]["names"] |= {"kind": "Other"}
    server.request("POST", DEFINITIONS, other)
    eventually(lambda: condition(server)[1] == "Refused")
    assert condition(server)[2] == f"{NAME} defines Other, not CronTab (spec.kind)"
    made = crontab("v2", schedule="x") | {"kind": "Other"}
    eventually(lambda: refusal(server, "POST", path("v2"), made)[0] in (200, 409))
    assert server.request("GET", path("v3", "a"))["spec"]["schedule"] == "x"


def test_a_namespace_with_objects_that_cannot_be_converted_goes_when_they_are_gone() -> None:
    crd, rules = definition("v1"), conversion()
    crd["spec"]["versions"] = [each | {"storage": each["name"] == "v1"} for each in versions()]
    keeping = copy.deepcopy(crd)
    for each in keeping["spec"]["versions"][1:]:
        fields(each)["legacyMode"] = fields(each | versions()[0])["legacyMode"]
    first, drop = rules["spec"]["edges"][0], {"drop": {"at": "spec.legacyMode"}}
    kept = [each for each in first["rules"] if each != drop]
    edges = [first | {"rules": kept}, rules["spec"]["edges"][1]]
    with EmbeddedServer() as server:
        server.request("POST", DEFINITIONS, keeping)
        server.request("POST", CONVERSIONS, rules | {"spec": rules["spec"] | {"edges": edges}})
        eventually(lambda: is_serving(server))
        server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "full"}})
        at = path("v1").replace("default", "full")
        big = crontab("v1", legacyMode={"text": "x" * 300_000})
        eventually(lambda: refusal(server, "POST", at, big)[0] in (200, 409))
        define(server, crd["spec"]["versions"])
        eventually(lambda: refusal(server, "GET", f"{at.replace('/v1/', '/v3/')}/a")[0] == 500)
        assert "at most 262116 are allowed: spec.legacyMode of v1" in _listing(server)
        server.request("DELETE", "/api/v1/namespaces/full")
        failed = eventually(lambda: _failed(server))
        assert "spec.legacyMode of v1 (300018 bytes)" in failed["message"]
        server.request("DELETE", f"{at}/a")
        eventually(lambda: refusal(server, "GET", "/api/v1/namespaces/full")[0] == 404)


def _listing(server: EmbeddedServer) -> str:
    return refusal(server, "GET", f"/apis/{GROUP}/v3/crontabs")[1]


def _failed(server: EmbeddedServer) -> Any:
    found = server.request("GET", "/api/v1/namespaces/full")["status"].get("conditions", [])
    told = {each["type"]: each for each in found}.get("NamespaceDeletionContentFailure", {})
    return told if told.get("status") == "True" else None


# Carries that somebody takes away


@pytest.fixture(params=kubectls()[:1])
def kubectl(server: EmbeddedServer, tmp_path: Path, request: pytest.FixtureRequest) -> Kubectl:
    (tmp_path / "config").write_bytes(server.kubeconfig.read_bytes())
    return Kubectl(request.param, Walk(server, "default", GROUP), tmp_path)


CRONTABS = f"crontabs.v2.{GROUP}"


def test_no_command_of_kubectl_takes_the_carry_away(
    server: EmbeddedServer, kubectl: Kubectl
) -> None:
    kubectl("annotate", CRONTABS, "a", f"{ANNOTATION}-")
    assert seen(server) == V1
    null = {"metadata": {"annotations": None}}
    kubectl("patch", CRONTABS, "a", "--type=merge", "-p", json.dumps(null))
    assert seen(server) == V1
    found = kubectl.get(CRONTABS, "a")
    found["metadata"] = {"name": "a", "resourceVersion": found["metadata"]["resourceVersion"]}
    found["spec"]["schedule"] = "replaced"
    kubectl("replace", "-f", "-", given=found)
    assert seen(server) == V1 | {"cronSpec": "replaced"}


def test_who_applied_the_carry_itself_and_does_so_no_longer_takes_nothing_away(
    server: EmbeddedServer, kubectl: Kubectl
) -> None:
    found = kubectl.get(CRONTABS, "a", "--show-managed-fields")
    # With owners of what is carried, servers would keep it anyway.
    found["metadata"]["managedFields"] = [{}]
    kubectl("replace", "-f", "-", given=found)
    carry = {ANNOTATION: found["metadata"]["annotations"][ANNOTATION]}
    about = {"apiVersion": f"{GROUP}/v2", "kind": "CronTab", "spec": {"schedule": "@daily"}}
    for applied in (carry, {}):
        config = about | {"metadata": {"name": "a", "annotations": applied}}
        kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=config)
        assert kubectl.get(CRONTABS, "a")["metadata"]["annotations"] == carry
    assert seen(server) == V1
