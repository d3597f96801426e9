"""`polyver install` on a real API server: beside kubectl, idempotent, and gone without a trace."""

from __future__ import annotations

import datetime
import json
import subprocess
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from tests.deadlines import HANG
from tests.editing import edited
from tests.rights import APISERVICES
from tests.walks.installed import KINDS, MAKES, Installed, installed
from tests.walks.installed_kinds import GROUP
from tests.walks.support import eventually
from tests.walks.test_installed import BOATS, apply_boats

from polyver.kube.http.tls import Authority
from polyver.kube.objects import load_manifests
from polyver.kube.objects.webhooks import INJECT_CA_FROM

pytestmark = pytest.mark.kube

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
DEPLOYMENT = "/apis/apps/v1/namespaces/polyver-system/deployments/polyver"
INSTALL = ("install", "--image", "a:1", "--kinds", KINDS, "--role", MAKES)
KITES = f"kites.{GROUP}"


@pytest.fixture
def on(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    with installed(tmp_path_factory.mktemp("installed")) as found:
        yield found


def kubectl(on: Installed, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [str(on.cluster.kubectl), "--kubeconfig", str(on.cluster.kubeconfig), *arguments]
    return subprocess.run(
        command, input=given, capture_output=True, text=True, timeout=HANG, check=False
    )


def named(on: Installed, text: str) -> dict[str, str]:
    """The resourceVersions of all objects in manifests, as the server has them."""
    got = kubectl(on, "get", "-f", "-", "-o", "json", given=text)
    assert got.returncode == 0, got.stderr
    found = json.loads(got.stdout)["items"]
    return {
        f"{each['kind']} {each['metadata']['name']}": each["metadata"]["resourceVersion"]
        for each in found
    }


def test_kubectl_takes_what_is_printed_and_then_keeps_it(on: Installed) -> None:
    printed = on.polyver(*INSTALL, "--dry-run").stdout
    # A dry run makes no namespace that the rest could be tried in.
    kubectl(on, "create", "namespace", "polyver-system")
    for options in (("--server-side", "--dry-run=server"), ()):
        ran = kubectl(on, "apply", "--validate=strict", *options, "-f", "-", given=printed)
        assert ran.returncode == 0, ran.stderr
        assert "unknown field" not in ran.stderr
    before = named(on, printed)
    refused = on.polyver(*INSTALL)
    assert refused.returncode == 1
    assert f"CustomResourceDefinition {KITES} by kubectl-client-side-apply" in refused.stderr
    assert "--adopt" in refused.stderr
    assert named(on, printed) == before
    assert on.polyver(*INSTALL, "--adopt").returncode == 0
    again = on.polyver(*INSTALL)
    assert again.returncode == 0, again.stderr
    assert " changed" not in again.stdout


def test_what_is_installed_goes_again_and_leaves_what_is_others(on: Installed) -> None:
    printed = on.polyver(*INSTALL, "--dry-run").stdout
    on.install()
    before = named(on, printed)
    installed = {each["metadata"]["name"] for each in on.request("GET", CRDS)["items"]}
    on.install()
    assert named(on, printed) == before
    with on.running() as replica:
        replica.says("polyver runs on")
        eventually(lambda: on.request("GET", f"{CRDS}/{KITES}")["spec"]["conversion"]["webhook"])
        kite = {"apiVersion": f"{GROUP}/v1", "kind": "Kite", "metadata": {"name": "red"}}
        path = f"/apis/{GROUP}/v1/namespaces/default/kites"
        eventually(lambda: trusted(on))
        eventually(lambda: on.request("POST", path, {**kite, "spec": {"length": 3}}))
        removed(on)
    left = {each["metadata"]["name"] for each in on.request("GET", CRDS)["items"]}
    assert left == installed
    assert left > {"conversions.polyver.dev", KITES, "actionsets.cr.kanister.io"}
    assert on.request("GET", f"{path.replace('v1', 'v2')}/red")["spec"] == {"metres": 3}
    hooks = "/apis/admissionregistration.k8s.io/v1"
    for collection in (
        f"{hooks}/mutatingwebhookconfigurations",
        f"{hooks}/validatingwebhookconfigurations",
        f"{RBAC}/namespaces/polyver-system/roles",
        "/api/v1/namespaces/polyver-system/secrets",
        "/apis/apps/v1/namespaces/polyver-system/deployments",
    ):
        assert on.request("GET", collection)["items"] == [], collection


def trusted(on: Installed) -> Any:
    client = on.request("GET", f"{CRDS}/{KITES}")["spec"]["conversion"]["webhook"]["clientConfig"]
    return client.get("caBundle")


def removed(on: Installed) -> None:
    """Kites are converted by a URL here, so nothing stops the removal while a replica runs."""
    ran = on.polyver("uninstall")
    assert ran.returncode == 0, ran.stderr
    assert f"CustomResourceDefinition {KITES} is kept, with its objects" in ran.stdout


def test_who_has_not_all_the_rights_cannot_give_them(on: Installed) -> None:
    """The server lets nobody give away what they do not have."""
    on.request("POST", "/api/v1/namespaces", {"metadata": {"name": "polyver-system"}})
    read = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "patch", "create"]}
    role = {"metadata": {"name": "some"}, "rules": [read]}
    on.request("POST", f"{RBAC}/clusterroles", role)
    subject = {"kind": "User", "name": "jo", "apiGroup": "rbac.authorization.k8s.io"}
    bound = {"kind": "ClusterRole", "name": "some", "apiGroup": "rbac.authorization.k8s.io"}
    binding = {"metadata": {"name": "some"}, "roleRef": bound, "subjects": [subject]}
    on.request("POST", f"{RBAC}/clusterrolebindings", binding)
    config = json.loads(on.cluster.kubeconfig.read_text())
    config["users"][0]["user"]["as"] = "jo"
    on.cluster.kubeconfig.write_text(json.dumps(config))
    ran = on.polyver(*INSTALL)
    assert ran.returncode == 3
    assert "ClusterRole polyver cannot be applied: " in ran.stderr
    assert "nothing was applied" in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert on.request("GET", f"{CRDS}/{KITES}") is None


def test_the_pods_are_allowed_where_least_is(on: Installed) -> None:
    on.install()
    path = "/api/v1/namespaces/polyver-system"
    enforced = {"pod-security.kubernetes.io/enforce": "restricted"}
    edited(on.request, path, lambda found: found["metadata"]["labels"].update(enforced))
    [deployment] = [
        each.value
        for each in load_manifests(on.polyver(*INSTALL, "--dry-run").stdout, "out")
        if isinstance(each.value, dict) and each.value["kind"] == "Deployment"
    ]
    spec = deployment["spec"]["template"]["spec"]
    made = on.request("POST", f"{path}/pods", {"metadata": {"name": "a"}, "spec": spec})
    assert made["spec"]["serviceAccountName"] == "polyver"


def test_cert_manager_is_told_wherever_it_has_to_fill_in(on: Installed) -> None:
    now = datetime.datetime.now(datetime.UTC)
    pair = Authority.create("somebody", now=now).server("127.0.0.1", now=now)
    cert, key = on.folder / "tls.crt", on.folder / "tls.key"
    cert.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    named = ("--inject-ca-from", "polyver-system/certs")
    on.install("--tls-secret", "certs", *named)
    apply_boats(on)
    with on.running("--tls-cert", str(cert), "--tls-key", str(key), *named) as replica:
        replica.says("polyver runs on")
        hooks = "/apis/admissionregistration.k8s.io/v1"
        for path in (
            f"{CRDS}/{KITES}",
            f"{CRDS}/boats.{BOATS}",
            f"{hooks}/mutatingwebhookconfigurations/polyver",
            f"{hooks}/validatingwebhookconfigurations/polyver",
        ):
            eventually(partial(injected, on, path))
    on.note("certificates")
    assert [*on.forbidden] == [APISERVICES]
    assert on.request("GET", "/api/v1/namespaces/polyver-system/secrets")["items"] == []


def injected(on: Installed, path: str) -> bool:
    annotations = (on.request("GET", path) or {"metadata": {}})["metadata"].get("annotations") or {}
    return bool(annotations.get(INJECT_CA_FROM) == "polyver-system/certs")
