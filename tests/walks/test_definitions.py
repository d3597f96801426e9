"""Definitions with `polyver run`, on an API server that knows nothing of polyver."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.definitions.samples import (
    CONFIG,
    GROUP,
    SYSTEM,
    Platform,
    application,
    collection_of,
    condition,
    definition,
    entry,
    path_of,
    templated,
)
from tests.editing import edited
from tests.walks.replicas import NAMESPACE, Balancer, replicas
from tests.walks.seeded import printed_definition
from tests.walks.support import Server, eventually, request

from polyver import apis
from polyver.apis.conversion_kind import CONVERSIONS
from polyver.definitions.kinds import COMPONENTS, DEFINITIONS, KINDS
from polyver.kube.objects.status import ApiError
from polyver.testing import EmbeddedServer, LocalCluster

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/polyver"


@pytest.fixture(
    scope="module", params=["embedded", pytest.param("kubernetes", marks=pytest.mark.kube)]
)
def platform(request: pytest.FixtureRequest) -> Iterator[Platform]:
    start = EmbeddedServer(capabilities=()) if request.param == "embedded" else LocalCluster()
    balancer = Balancer()
    with start as server:
        prepare(server)
        with replicas(server, balancer, 1, "--capabilities", "apis,definitions"):
            eventually(lambda: is_registered(server))
            running = Platform(server)
            yield running
            running.close()
    balancer.close()


def prepare(server: Server) -> None:
    for name in (NAMESPACE, SYSTEM):
        request(server, "POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    for kind in (CONVERSIONS, *KINDS):
        # What somebody else has defined is taken over, conversion included.
        ours = apis.crd_of(kind.definition())
        request(server, "POST", CRDS, printed_definition() if kind is COMPONENTS else ours)


def is_registered(server: Server) -> bool:
    """Whether the server asks, and has all versions converted."""
    crds = [request(server, "GET", f"{CRDS}/{kind.definition().name}") for kind in DEFINITIONS]
    told = [(crd.get("spec", {}).get("conversion") or {}).get("strategy") for crd in crds]
    found = request(server, "GET", HOOKS)
    return told == ["Webhook"] * len(crds) and bool(found and found.get("webhooks"))


def test_definitions_are_published_followed_and_refused(platform: Platform) -> None:
    whole = definition("web", "1.0.0", entry("1.1.0"))
    found = platform.publish(whole)
    annotations = found["metadata"]["annotations"]
    assert annotations["definition.polyver.dev/api-version"] == "v2beta1"
    assert platform.revisions("web") == ["web-v1.0.0", "web-v1.1.0"]
    stored = platform.get(whole | {"apiVersion": f"{GROUP}/v1beta1"})
    assert stored["spec"] == entry("1.1.0")
    app = application("shop", "web@1", "web")
    platform.write(app)
    platform.uses(app, "1.1.0", "1.1.0")
    platform.publish(definition("web", "1.0.0", "1.1.0", "1.2.0"))
    platform.uses(app, "1.2.0", "1.1.0")
    for wrong, complaint in (
        (definition("web", "1.0.0", "1.2.0"), "1.1.0 is used by Application default/shop"),
        (definition("web", "1.0.0", "1.1.0", "1.2.0", "v2"), 'a leading "v"'),
        (definition("web", entry("1.0.0", podSpecPath="x"), "1.1.0", "1.2.0"), "sha256:"),
        (stored | {"spec": entry("3.0.0")}, "was created in v2beta1"),
    ):
        with pytest.raises(ApiError) as refused:
            platform.write(wrong)
        assert complaint in refused.value.message
    with pytest.raises(ApiError, match="is used by Application default/shop"):
        platform.request("DELETE", path_of(whole))
    platform.request("DELETE", path_of(app))
    eventually(lambda: not platform.request("GET", collection_of(app))["items"])
    platform.publish(definition("web", "1.2.0"))
    eventually(lambda: platform.revisions("web") == ["web-v1.2.0"])
    whole = definition("large", *(f"1.{number}.0" for number in range(300)))
    if isinstance(platform.server, LocalCluster):  # elsewhere this is tested without a webhook
        assert platform.publish(whole)["spec"] == whole["spec"]
        stored = platform.get(whole | {"apiVersion": f"{GROUP}/v1beta1"})
        assert stored["spec"] == entry("1.299.0")


def test_applications_are_rendered_applied_moved_pruned_and_put_back(platform: Platform) -> None:
    away = CONFIG.replace("metadata: {", f"metadata: {{namespace: {NAMESPACE}, ")
    role = CONFIG.replace("v1\nkind: ConfigMap", "rbac.authorization.k8s.io/v1\nkind: ClusterRole")
    more = "---\n".join([CONFIG, away, role.rpartition("data:")[0]])
    platform.publish(definition("parts", templated("1.2.3", more)))
    app = application("parted", "parts@1.2", "parts@1.2", properties={"image": "nginx:1"})
    found = platform.runs(app)
    assert condition(found, "Ready")["status"] == "True"
    maps = "/api/v1/namespaces/default/configmaps"
    paths = [
        f"{maps}/parted-c1",
        f"/api/v1/namespaces/{NAMESPACE}/configmaps/parted-c1",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/parted-c1",
    ]
    assert all(request(platform.server, "GET", path) for path in paths)
    wanted = platform.request("GET", f"{maps}/parted-c0")["data"]
    assert wanted == {"image": "nginx:1", "version": "1.2.3"}
    platform.request("DELETE", f"{maps}/parted-c0")
    eventually(lambda: request(platform.server, "GET", f"{maps}/parted-c0"))
    less = definition("parts", templated("1.2.3", more), templated("1.2.4"))
    platform.publish(less)
    platform.until(app, lambda each: condition(each, "Updated").get("reason") == "WouldDelete")
    assert all(request(platform.server, "GET", path) for path in paths)
    revision = f"/apis/{GROUP}/v1beta1/namespaces/{SYSTEM}/definitionrevisions/parts-v1.2.4"
    allowed = {"annotations": {"polyver.dev/allow-deletion": "true"}}
    edited(platform.request, revision, lambda found: found["metadata"].update(allowed))
    platform.uses(app, "1.2.4", "1.2.4")
    assert platform.request("GET", f"{maps}/parted-c0")["data"]["version"] == "1.2.4"
    assert not any(request(platform.server, "GET", path) for path in paths[1:])
    app["spec"]["components"].pop()
    assert len(platform.runs(app)["status"]["appliedResources"]) == 1
    assert request(platform.server, "GET", paths[0]) is None
    [owner] = platform.request("GET", f"{maps}/parted-c0")["metadata"]["ownerReferences"]
    assert owner["uid"] == platform.get(app)["metadata"]["uid"]
    platform.request("DELETE", path_of(app))
    eventually(lambda: request(platform.server, "GET", path_of(app)) is None)
    if not isinstance(platform.server, LocalCluster):  # where new kinds are heard of much later
        eventually(lambda: request(platform.server, "GET", f"{maps}/parted-c0") is None)


def test_somebody_who_takes_a_field_over_loses_it_again_and_is_named(platform: Platform) -> None:
    platform.publish(definition("kept", templated("1.0.0")))
    app = application("keeps", "kept", properties={"image": "nginx:1"})
    platform.runs(app)
    path = "/api/v1/namespaces/default/configmaps/keeps-c0"
    mine = {"image": "mine", "more": "stays"}
    at = f"{path}?fieldManager=editor"
    edited(platform.request, at, lambda found: found["data"].update(mine))
    wanted = {"image": "nginx:1", "version": "1.0.0", "more": "stays"}
    eventually(lambda: platform.request("GET", path)["data"] == wanted)
    found = platform.until(app, lambda each: "reverted" in condition(each, "Applied")["message"])
    assert 'conflict with "editor" using v1: .data.image' in condition(found, "Applied")["message"]
