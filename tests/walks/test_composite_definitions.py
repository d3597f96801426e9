"""Definitions of composite resources and Compositions with kubectl alone.

On `polyver up`; and on a real API server beside a replica of `polyver run`, which does the same.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.compositions import composing
from tests.compositions.controllers.test_composite_definitions import conversion
from tests.walks.replicas import NAMESPACE, Balancer, replicas
from tests.walks.support import PATIENCE, Server, eventually, request
from tests.walks.test_packages import CRDS, KUBECTL, kubectl_needed, up

from polyver import apis
from polyver.apis.conversion_kind import CONVERSIONS
from polyver.compositions.kinds import COMPOSITION_KINDS, KINDS
from polyver.testing import LocalCluster

Object = dict[str, Any]
NAME = f"acmebuckets.{composing.GROUP}"
NUMBER: Object = {"type": "integer"}
OLD = composing.version(size=NUMBER)
ADDED = [
    composing.version("v1", referenceable=False, gigabytes=NUMBER),
    composing.version(size=NUMBER),
]
BOTH = [
    composing.version("v1", gigabytes=NUMBER),
    composing.version(referenceable=False, size=NUMBER),
]


class Kubectl:
    """kubectl with some server; what it says, warnings included."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig

    def __call__(self, *arguments: str, given: object = None, code: int | None = 0) -> str:
        ended = subprocess.run(
            [str(KUBECTL), "--kubeconfig", str(self._kubeconfig), *arguments],
            input=None if given is None else json.dumps(given),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert code is None or ended.returncode == code, (arguments, ended)
        return ended.stdout + ended.stderr

    def rows(self, *arguments: str) -> list[list[str]]:
        """What is printed of objects, without the heading."""
        printed = self("get", *arguments, "--no-headers")
        return [line.split() for line in printed.splitlines() if line]


@pytest.fixture(params=["embedded", pytest.param("kubernetes", marks=pytest.mark.kube)])
def kubectl(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kubectl]:
    if request.param == "embedded":
        with up(tmp_path, "--no-page") as place:
            yield Kubectl(place.data / "kubeconfig")
    else:
        yield from _on_a_cluster()


def _on_a_cluster() -> Iterator[Kubectl]:
    balancer = Balancer()
    with LocalCluster() as server:
        request(server, "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        for kind in (CONVERSIONS, *KINDS, *COMPOSITION_KINDS):
            request(server, "POST", CRDS, apis.crd_of(kind.definition()))
        with replicas(server, balancer, 1, "--capabilities", "apis,compositions"):
            eventually(lambda: _asks(server))
            yield Kubectl(server.kubeconfig)
    balancer.close()


def _asks(server: Server) -> bool:
    hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/polyver"
    names = [each["name"] for each in (request(server, "GET", hooks) or {}).get("webhooks") or ()]
    return "checks.compositions.apiextensions.crossplane.io" in names


def bucket(version: str, **spec: Any) -> Object:
    made = composing.bucket(**spec)
    return _new({**made, "apiVersion": f"{composing.GROUP}/{version}"})


def definition(*versions: Object, **spec: Any) -> Object:
    return _new(composing.definition(*versions, **spec))


def _new(obj: Object) -> Object:
    del obj["metadata"]["uid"]
    return obj


@kubectl_needed
def test_a_kind_is_defined_composed_converted_and_deleted(kubectl: Kubectl) -> None:
    claims = {"kind": "Bucket", "plural": "buckets"}
    said = kubectl("apply", "-f", "-", given=definition(OLD, claimNames=claims))
    assert "Warning: spec.claimNames has no effect: claims are not supported" in said
    seed = _new(composing.manifest(composing.SEED_COMPOSITION))
    kubectl("apply", "-f", "-", given=seed)
    kubectl("wait", "--for=condition=Established", f"xrd/{NAME}")
    assert kubectl.rows("xrd")[0][:3] == [NAME, "True", "False"]
    [[revision, *_]] = eventually(lambda: kubectl.rows("comprev"))
    kubectl("label", "composition", "example", "release-channel=beta", "--overwrite")
    numbers = ("comprev", "-o", "custom-columns=N:.spec.revision", "--sort-by=.spec.revision")
    eventually(lambda: kubectl.rows(*numbers) == [["1"], ["2"]])
    seed["metadata"]["labels"] = composing.ALPHA
    kubectl("apply", "-f", "-", given=seed)
    eventually(lambda: kubectl.rows(*numbers) == [["2"], ["3"]])
    using = {"compositionRevisionRef": {"name": revision}}
    kubectl("apply", "-f", "-", given=bucket("v1alpha1", size=3, **using))
    eventually(lambda: "in-use" in kubectl("get", "composition", "example", "-o", "yaml"))
    for each in (("composition", "example"), ("comprev", revision)):
        said = kubectl("delete", *each, code=1)
        assert "it is used by AcmeBucket my-bucket" in said
    assert "this would also delete AcmeBucket my-bucket" in kubectl("delete", "xrd", NAME, code=1)
    said = kubectl("apply", "-f", "-", given=definition(*BOTH), code=1)
    assert "objects are stored as v1alpha1, and would lose spec.size in v1" in said
    kubectl("apply", "-f", "-", given=definition(*ADDED))
    eventually(lambda: "created" in kubectl("apply", "-f", "-", given=conversion(), code=None))
    eventually(lambda: _converts(kubectl))
    kubectl("apply", "-f", "-", given=definition(*BOTH))
    stored = ("crd", NAME, "-o", "jsonpath={.status.storedVersions}")
    eventually(lambda: '"v1"' in kubectl("get", *stored))
    assert _converts(kubectl)
    assert "may be stored as v1alpha1" in kubectl(
        "apply", "-f", "-", given=definition(BOTH[0]), code=1
    )
    kubectl("delete", "acmebucket", "my-bucket")
    kubectl("apply", "-f", "-", given=definition(BOTH[0]))
    eventually(lambda: kubectl("get", *stored) == '["v1"]')
    kubectl("delete", "xrd", NAME)
    assert "not found" in kubectl("get", "crd", NAME, code=1)


def _converts(kubectl: Kubectl) -> bool:
    """Whether the bucket is there in its new version, as the Conversion says."""
    path = f"/apis/{composing.GROUP}/v1/acmebuckets"
    said = kubectl("get", "--raw", path, code=None)
    if not said.startswith("{"):
        return False  # it is not served yet
    [found] = json.loads(said)["items"]
    return bool(found["spec"].get("gigabytes") == 3)
