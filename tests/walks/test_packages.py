"""Functions with kubectl alone: the seed's manifests, on `polyver up` with real processes.

On a real API server the kinds are taken, and the controllers come to the same end.
"""

from __future__ import annotations

import asyncio
import datetime
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.compositions.commands.test_packages import composition_revision
from tests.compositions.controllers.installing import MemoryRuntime, condition
from tests.compositions.runtimes.support import called, function_folder
from tests.compositions.samples import SEED, function, seed
from tests.deadlines import HANG
from tests.definitions.samples import Platform
from tests.editing import edited
from tests.walks.kubectl import newest, on_path, typed
from tests.walks.replicas import NAMESPACE, Balancer, replicas
from tests.walks.support import PATIENCE, Server, eventually, request
from tests.walks.test_declared import taken

from polyver import apis
from polyver.apis.conversion_kind import CONVERSIONS
from polyver.client.cluster import ClusterClient, find_access
from polyver.compositions.calls import CertificateFolder, Endpoint
from polyver.compositions.capability import package_controllers
from polyver.compositions.controllers.packages import FUNCTION_REVISIONS, FUNCTIONS, Compositions
from polyver.compositions.kinds import COMPOSITION_KINDS, KINDS
from polyver.controllers import ControllerManager
from polyver.kube.objects import dump_yaml
from polyver.kube.objects.status import ApiError
from polyver.testing import LocalCluster

Object = dict[str, Any]
KUBECTL = newest() or on_path()
NAME = "function-patch-and-transform"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
kubectl_needed = pytest.mark.skipif(
    KUBECTL is None, reason="there is no kubectl on this machine, so NO walk was taken: `make kube`"
)


@pytest.mark.parametrize("kind", [*KINDS, *COMPOSITION_KINDS], ids=lambda kind: kind.kind)
def test_the_kinds_are_taken(server: Server, kind: apis.Kind) -> None:
    found = taken(server, kind)["spec"]
    assert {each["name"] for each in found["versions"]} == set(kind.versions)


class Place:
    """`polyver up` in a process of its own, its folder, and kubectl."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.data = folder / "data"
        command = [sys.executable, "-m", "polyver", "up", "--port", "0", "--data", str(self.data)]
        self.process = subprocess.Popen(
            [*command, "--capabilities", "apis,compositions", *options],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        assert self.process.stdout.readline(), self.process.communicate(timeout=PATIENCE)

    def kubectl(self, *arguments: str, given: object = None, code: int = 0) -> str:
        return typed(self.data / "kubeconfig", *arguments, given=given, code=code)

    def get(self, *arguments: str) -> Any:
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def rows(self) -> list[tuple[str, str, str]]:
        """Number, state and health of all revisions, as `kubectl get` prints them."""
        printed = self.kubectl(
            "get", "functionrevisions", "--no-headers", "--sort-by=.spec.revision"
        )
        found = [line.split() for line in printed.splitlines() if line]
        return [(each[2], each[4], each[1]) for each in found if len(each) > 4]

    def function_row(self) -> list[str]:
        """The only Function, as `kubectl get` prints it."""
        [row] = self.kubectl("get", "functions", "--no-headers").splitlines()
        return row.split()

    def until(self, *rows: tuple[str, str, str]) -> list[Object]:
        """The revisions, as soon as they are like this; kubectl prints the same then."""
        found = asyncio.run(self._until([*rows]))
        eventually(lambda: self.rows() == [*rows])  # at once, but where polyver has just started
        return found

    async def _until(self, rows: list[tuple[str, str, str]]) -> list[Object]:
        # Not with kubectl, which takes longer to start than all else here.
        access = find_access(kubeconfig=self.data / "kubeconfig")
        async with ClusterClient(access) as client, asyncio.timeout(PATIENCE):
            while True:
                items = (await client.list(FUNCTION_REVISIONS)).items
                found = sorted(items, key=lambda each: int(each["spec"]["revision"]))
                if [*map(_row, found)] == rows:
                    return found
                await asyncio.sleep(0.05)

    def answer(self, revision: Object) -> str:
        """What a revision answers at its endpoint, to one who has a certificate."""
        name = revision["metadata"]["name"]
        certificates = CertificateFolder(self.data / "packages" / "certificates")
        trust = certificates.trust(name, now=datetime.datetime.now(datetime.UTC))
        found = asyncio.run(called(Endpoint(name, revision["status"]["endpoint"], trust)))
        return found.decode()

    def answers(self) -> list[str] | None:
        """What all active revisions answer, by number; None while one does not."""
        items: list[Object] = self.get("functionrevisions")["items"]
        active = [each for each in items if each["spec"]["desiredState"] == "Active"]
        try:
            return [self.answer(each) for each in sorted(active, key=_row)]
        except (grpc.RpcError, KeyError):
            return None  # what is told of it is from before

    def end(self) -> str:
        self.process.terminate()
        return self.process.communicate(timeout=PATIENCE)[1]


def _row(obj: Object) -> tuple[str, str, str]:
    spec = obj["spec"]
    return str(spec["revision"]), spec["desiredState"], condition(obj, "Healthy").get("status", "")


@contextmanager
def up(folder: Path, *options: str) -> Iterator[Place]:
    place = Place(folder, *options)
    try:
        yield place
    finally:
        place.end()


def packages(folder: Path, *versions: str) -> str:
    """Functions that answer with their version, and the file that says where they are."""
    for version in versions:
        function_folder(folder / version, ANSWER=version)
    told = {f"{SEED}:{version}": version for version in versions}
    (folder / "packages.yaml").write_text(dump_yaml(told))
    return "packages.yaml"


UP = ("Active", "True")


def status_of(obj: Object) -> Object:
    return obj.get("status") or {}


@kubectl_needed
def test_the_seeds_rollout_with_real_functions(tmp_path: Path) -> None:
    file = packages(tmp_path, "v0.8.1", "v0.8.2", "v0.8.3")
    with up(tmp_path, "--packages", file) as place:
        place.kubectl("apply", "-f", "-", given=seed(version="v0.8.1"))
        place.until(("1", *UP))
        place.kubectl("apply", "-f", "-", given=seed(release_channel="alpha"))
        both = place.until(("1", *UP), ("2", *UP))
        assert [place.answer(each) for each in both] == ["v0.8.1", "v0.8.2"]
        assert [each["metadata"]["labels"].get("release-channel") for each in both] == [
            None,
            "alpha",
        ]
        told = place.kubectl("get", "--raw", "/metrics").splitlines()
        for each in both:
            assert f'polyver_function_up{{revision="{each["metadata"]["name"]}"}} 1.0' in told
        place.kubectl("apply", "-f", "-", given=seed(version="v0.8.3"))
        off = ("Inactive", "Unknown")
        found = place.until(("1", *off), ("2", *UP), ("3", *UP))
        assert place.answer(found[2]) == "v0.8.3"
        place.kubectl("apply", "-f", "-", given=seed(version="v0.8.1"))
        place.until(("2", *off), ("3", *UP), ("4", *UP))
        printed = place.kubectl("get", "functions")
        assert printed.splitlines()[0].split() == ["NAME", "INSTALLED", "HEALTHY", "PACKAGE", "AGE"]
        # A Function reports the health of its revisions after they do.
        eventually(lambda: place.function_row()[:3] == [NAME, "True", "True"])
    with up(tmp_path, "--packages", file, "--allow-packages") as place:
        assert eventually(place.answers) == ["v0.8.3", "v0.8.1"]
        place.until(("2", *off), ("3", *UP), ("4", *UP))
        place.kubectl("delete", "function", NAME)
        place.until()
        spec = {"package": f"file:{tmp_path / 'v0.8.1'}"}
        place.kubectl("apply", "-f", "-", given={**function("local"), "spec": spec})
        place.until(("1", *UP))


@kubectl_needed
def test_what_compositions_select_stays_and_what_breaks_a_rule_is_refused(tmp_path: Path) -> None:
    file = packages(tmp_path, "v0.8.1", "v0.8.2")
    with up(tmp_path, "--packages", file) as place:
        spec = {**seed(version="v0.8.1")["spec"], "activeRevisionLimit": 1}
        place.kubectl("apply", "-f", "-", given={**seed(), "spec": spec})
        [first] = place.until(("1", *UP))
        name = first["metadata"]["name"]
        using = composition_revision("shop-1", 1, functionRevisionRef={"name": name})
        using["spec"]["pipeline"][0]["functionRef"]["name"] = NAME
        place.kubectl("apply", "-f", "-", given=using)
        patch = json.dumps({"spec": {"package": f"{SEED}:v0.8.2"}})
        place.kubectl("patch", "function", NAME, "--type", "merge", "-p", patch)
        place.until(("1", *UP), ("2", *UP))
        place.kubectl("wait", "--for=condition=Postponed", f"function/{NAME}")
        told = condition(place.get("function", NAME), "Postponed")["message"]
        assert told == f"{name} is not deactivated: selected by CompositionRevision shop-1"
        for refused in (("functionrevision", name), ("function", NAME)):
            said = place.kubectl("delete", *refused, code=1)
            assert "is forbidden: it is selected by CompositionRevision shop-1" in said
        place.kubectl("delete", "compositionrevision", "shop-1")
        place.until(("1", "Inactive", "Unknown"), ("2", *UP))
        for wrong, complaint in (
            (function(activeRevisionLimit=2), "spec.activeRevisionLimit: Invalid value"),
            (function(kind="Provider", activeRevisionLimit=2), "only functions may have several"),
            (function(package="No Package"), "spec.package: Invalid value"),
        ):
            assert complaint in place.kubectl("apply", "-f", "-", given=wrong, code=1)
        said = place.kubectl("apply", "-f", "-", given=function("other", kind="Provider"))
        assert "Warning: a Provider is validated and stored, but not installed" in said


@kubectl_needed
def test_nothing_runs_that_nobody_allowed_and_a_feature_can_be_off(tmp_path: Path) -> None:
    function_folder(tmp_path / "code")
    with up(tmp_path, "--feature", "FunctionRevisions=false") as place:
        said = place.kubectl("apply", "-f", "-", given=seed(), code=1)
        assert "2 active revisions need the feature FunctionRevisions, which is disabled" in said
        choosing = composition_revision("shop-1", 1, functionRevisionRef={"name": "other-1"})
        said = place.kubectl("apply", "-f", "-", given=choosing, code=1)
        assert "spec.pipeline[0].functionRevisionRef: Invalid value" in said
        spec = {"package": f"file:{tmp_path / 'code'}"}
        place.kubectl("apply", "-f", "-", given={**function("local"), "spec": spec})

        def told() -> Object | None:
            found = condition(place.get("function", "local"), "Installed")
            return found if found.get("reason") == "NotAllowed" else None

        assert "--allow-packages" in eventually(told)["message"]
        assert place.rows() == []


@pytest.mark.kube
def test_the_controllers_do_the_same_on_a_real_api_server() -> None:
    async def settled(client: ClusterClient, *rows: tuple[int, str, bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while await states(client) != [*rows]:
                await asyncio.sleep(0.05)

    async def states(client: ClusterClient) -> list[tuple[int, str, bool]]:
        found = [
            (each["spec"]["revision"], each["spec"]["desiredState"], "endpoint" in status_of(each))
            for each in (await client.list(FUNCTION_REVISIONS)).items
        ]
        return sorted(found)

    async def walk(client: ClusterClient) -> None:
        on, off = ("Active", True), ("Inactive", False)
        for version, rows in (
            ("v0.8.1", [(1, *on)]),
            ("v0.8.2", [(1, *on), (2, *on)]),
            ("v0.8.3", [(1, *off), (2, *on), (3, *on)]),
            ("v0.8.1", [(2, *off), (3, *on), (4, *on)]),
        ):
            await client.apply(FUNCTIONS, seed(version=version), manager="walk")
            await settled(client, *rows)

    async def run(server: LocalCluster) -> None:
        access = find_access(kubeconfig=server.kubeconfig)
        async with ClusterClient(access) as client:
            controllers = package_controllers(client, MemoryRuntime(), Compositions(), several=True)
            async with ControllerManager(client, controllers):
                await walk(client)

    with LocalCluster(controllers=["serviceaccount-controller"]) as server:
        for kind in KINDS:
            request(server, "POST", CRDS, apis.crd_of(kind.definition()))
        paths = [f"/apis/pkg.crossplane.io/v1/{kind.names.plural}" for kind in KINDS]
        eventually(lambda: all(request(server, "GET", path) for path in paths))
        asyncio.run(run(server))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Platform]:
    """An API server that knows nothing of polyver, and a replica of `polyver run`."""
    balancer = Balancer()
    with LocalCluster() as server:
        _prepare(server)
        with replicas(server, balancer, 1, "--capabilities", "apis,compositions"):
            eventually(lambda: _asks(server))
            running = Platform(server)
            yield running
            running.close()
    balancer.close()


def _prepare(server: Server) -> None:
    request(server, "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for kind in (CONVERSIONS, *KINDS, *COMPOSITION_KINDS):
        request(server, "POST", CRDS, apis.crd_of(kind.definition()))


def _asks(server: Server) -> bool:
    hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/polyver"
    found = request(server, "GET", hooks)
    names = [each["name"] for each in (found or {}).get("webhooks") or ()]
    return "checks.functions.pkg.crossplane.io" in names


@pytest.mark.kube
def test_on_a_cluster_each_revision_has_a_deployment_and_a_service(cluster: Platform) -> None:
    path = "/apis/pkg.crossplane.io/v1"
    request(cluster.server, "POST", f"{path}/functions", seed(version="v0.8.1"))

    def revisions() -> list[Object]:
        found: list[Object] = request(cluster.server, "GET", f"{path}/functionrevisions")["items"]
        return [each for each in found if condition(each, "RuntimeHealthy")]

    [first] = eventually(revisions)
    name = first["metadata"]["name"]
    # There is no kubelet here, so that nothing ever answers.
    assert condition(first, "RuntimeHealthy")["status"] == "False"
    deployment = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{name}"
    made = eventually(lambda: found(cluster, deployment))
    [container] = made["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"{SEED}:v0.8.1"
    assert made["metadata"]["ownerReferences"][0]["uid"] == first["metadata"]["uid"]
    assert found(cluster, f"/api/v1/namespaces/{NAMESPACE}/services/{name}")
    for wrong, complaint in (
        (function(activeRevisionLimit=2), "more than revisionHistoryLimit keeps, 1"),
        (function(package="No Package"), "is not a package reference"),
    ):
        with pytest.raises(ApiError, match=complaint):
            cluster.request("POST", f"{path}/functions", wrong)
    one = f"{path}/functionrevisions/{name}"
    with pytest.raises(ApiError, match="a revision never changes"):
        edited(cluster.request, one, lambda obj: obj["spec"].update(image="other"))
    cluster.request("DELETE", f"{path}/functions/{NAME}")
    # The garbage collector there hears of new kinds every half minute.
    eventually(lambda: found(cluster, deployment) is None, patience=HANG)


def found(cluster: Platform, path: str) -> Object | None:
    there: Object | None = request(cluster.server, "GET", path)
    return there
