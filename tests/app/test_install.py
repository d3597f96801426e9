"""`polyver install` and `polyver uninstall` as someone types them, beside a server that runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.app.test_cli import Ran
from tests.editing import edited
from tests.walks.support import eventually

from polyver.apis import Webhook
from polyver.apis.controllers.conversions import FINALIZER
from polyver.kube.objects import load_manifests
from polyver.kube.objects.status import ApiError
from polyver.testing import EmbeddedServer
from polyver.webhook.configurations import AdmissionRegistration, configurations

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HOOKS = "/apis/admissionregistration.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CORE = "/api/v1/namespaces"
OURS = f"{CORE}/polyver-system"
DEPLOYMENT = "/apis/apps/v1/namespaces/polyver-system/deployments/polyver"
BUDGET = "/apis/policy/v1/namespaces/polyver-system/poddisruptionbudgets/polyver"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/polyver-system/leases"
CONVERSIONS = "conversions.polyver.dev"
USAGES = "versionusages.polyver.dev"
RETIREMENTS = "retirements.polyver.dev"
LAMPS = "lamps.ex.io"

KINDS = """
from polyver import apis

LAMPS = apis.Kind("Lamp", group="ex.io")


@LAMPS.version("v1"{v1})
class LampV1:
    power: int


@LAMPS.version("v2", storage=True)
class LampV2:
    watts: int


@LAMPS.edge("v1", "v2")
def v1_v2(e):
    e.move("power", "watts")
"""
V3 = """

@LAMPS.version("v3")
class LampV3:
    lumens: int


@LAMPS.edge("v2", "v3")
def v2_v3(e):
    e.move("watts", "lumens")
"""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedServer]:
    """A Kubernetes and nothing else, named in KUBECONFIG."""
    with EmbeddedServer(capabilities=()) as running:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("KUBECONFIG", str(running.kubeconfig))
        yield running


Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return lambda *arguments: Ran(capsys, *arguments)


def installed(run: Run, *more: str) -> list[str]:
    """Install it; what it says, line by line."""
    ran = run("install", "--image", "shop/polyver:1", *more)
    assert (ran.code, ran.err) == (0, "")
    return ran.out.splitlines()


def refused(run: Run, *arguments: str, code: int = 1) -> str:
    """What is said to someone who cannot have that."""
    ran = run(*arguments)
    assert ran.code == code
    assert ran.err.count("\n") == 1
    assert ran.err.startswith("error: ")
    return ran.err.removeprefix("error: ").strip()


def there(server: EmbeddedServer, path: str) -> Any:
    try:
        return server.request("GET", path)
    except ApiError as error:
        if error.code != 404:
            raise
        return None


def make(server: EmbeddedServer, path: str, content: dict[str, Any], who: str = "helm") -> Any:
    return server.request("POST", f"{path}?fieldManager={who}", content)


def state(server: EmbeddedServer) -> dict[str, str]:
    """The resourceVersion of everything that could be part of an installation."""
    eventually(lambda: is_settled(server))
    collections = [
        CRDS,
        CORE,
        *(f"{RBAC}/{each}" for each in ("clusterroles", "clusterrolebindings")),
        *(f"{RBAC}/{each}" for each in ("roles", "rolebindings")),
        *(f"/api/v1/{each}" for each in ("services", "serviceaccounts", "secrets")),
        "/apis/apps/v1/deployments",
        "/apis/policy/v1/poddisruptionbudgets",
    ]
    return {
        f"{path}/{each['metadata']['name']}": each["metadata"]["resourceVersion"]
        for path in collections
        for each in server.request("GET", path)["items"]
    }


def is_settled(server: EmbeddedServer) -> bool:
    """Whether the server has made all that it makes by itself, some time after a write."""
    names = {each["metadata"]["name"] for each in server.request("GET", CORE)["items"]}
    accounts = [
        each["metadata"] for each in server.request("GET", "/api/v1/serviceaccounts")["items"]
    ]
    used = {each["namespace"] for each in accounts if each["name"] == "default"}
    told = [each["status"].get("conditions") for each in server.request("GET", CRDS)["items"]]
    return names <= used and all(told)


# Installing.


def test_what_is_installed_once_more_is_not_changed(server: EmbeddedServer, run: Run) -> None:
    first = installed(run)
    assert "Namespace polyver-system created" in first
    assert "Deployment polyver-system/polyver created" in first
    before = state(server)
    again = installed(run)
    assert state(server) == before
    assert {line.split()[-1] for line in again[:-1]} == {"unchanged"}


def test_a_dry_run_asks_no_cluster_and_prints_the_same_each_time(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nothing"))
    first, second = (run("install", "--image", "a:1", "--dry-run") for _ in range(2))
    assert (first.code, first.err) == (0, "")
    assert first.out == second.out
    kinds = [each.value["kind"] for each in load_manifests(first.out, "out")]  # type: ignore[index]
    assert kinds[0] == "Namespace"
    assert kinds[-1] == "Deployment"


def test_a_dry_run_prints_what_is_applied(server: EmbeddedServer, run: Run) -> None:
    said = run("install", "--image", "shop/polyver:1", "--dry-run").out
    names = [
        f"{each['kind']} {each['metadata'].get('namespace', '')}/{each['metadata']['name']}"
        for each in (document.value for document in load_manifests(said, "out"))
        if isinstance(each, dict)
    ]
    created = [line.removesuffix(" created") for line in installed(run)[:-1]]
    assert [name.replace(" /", " ") for name in names] == created


def test_what_others_manage_is_refused_before_anything_is_written(
    server: EmbeddedServer, run: Run
) -> None:
    make(server, CORE, {"metadata": {"name": "polyver-system"}}, who="kubectl-create")
    port = {"port": 80, "protocol": "TCP"}
    service = {"metadata": {"name": "polyver"}, "spec": {"ports": [port]}}
    make(server, f"{OURS}/services", service)
    before = state(server)
    said = refused(run, "install", "--image", "a:1")
    assert said.startswith("managed by others: Service polyver-system/polyver by helm (https://")
    assert said.endswith("nothing was applied; use --adopt to take them over")
    assert state(server) == before


def test_the_names_of_what_replicas_make_are_free_or_theirs(
    server: EmbeddedServer, run: Run
) -> None:
    make(server, CORE, {"metadata": {"name": "polyver-system"}})
    kept(server, "somebody")
    said = refused(run, "install", "--image", "a:1")
    assert "Secret polyver-system/polyver-webhook by somebody" in said
    assert "ValidatingWebhookConfiguration polyver by somebody" in said
    assert there(server, DEPLOYMENT) is None
    installed(run, "--adopt")


def test_adopting_takes_over_once_and_for_all(server: EmbeddedServer, run: Run) -> None:
    make(server, CORE, {"metadata": {"name": "polyver-system"}})
    make(server, f"{OURS}/serviceaccounts", {"metadata": {"name": "polyver"}})
    assert "ServiceAccount polyver-system/polyver changed" in installed(run, "--adopt")
    assert "ServiceAccount polyver-system/polyver unchanged" in installed(run)


def test_a_namespace_of_somebody_else_is_used_as_it_is(server: EmbeddedServer, run: Run) -> None:
    made = make(server, CORE, {"metadata": {"name": "tools"}})
    assert "Namespace tools is used unchanged" in installed(run, "--namespace", "tools", "--adopt")
    assert server.request("GET", f"{CORE}/tools") == made


def test_a_field_that_others_have_changed_is_refused_and_named(
    server: EmbeddedServer, run: Run
) -> None:
    installed(run)
    change = server.request("GET", DEPLOYMENT)
    change["spec"]["replicas"] = 5
    server.request("PUT", f"{DEPLOYMENT}?fieldManager=kubectl-edit", change)
    said = refused(run, "install", "--image", "shop/polyver:2")
    assert said.startswith(
        "changed by others: Deployment polyver-system/polyver (.spec.replicas) by kubectl-edit ("
    )
    found = server.request("GET", DEPLOYMENT)["spec"]
    assert (found["replicas"], found["template"]["spec"]["containers"][0]["image"]) == (
        5,
        "shop/polyver:1",
    )
    installed(run, "--adopt")
    assert server.request("GET", DEPLOYMENT)["spec"]["replicas"] == 2


def test_what_is_wanted_no_longer_is_removed_if_it_is_ours(
    server: EmbeddedServer, run: Run
) -> None:
    installed(run, "--role", "edit")
    labels = server.request("GET", BUDGET)["metadata"]["labels"]
    other = {"metadata": {"name": "mine", "labels": labels}, "spec": {"minAvailable": 1}}
    make(server, BUDGET.removesuffix("/polyver"), other)
    said = installed(run, "--replicas", "1")
    assert "PodDisruptionBudget polyver-system/polyver removed" in said
    assert "ClusterRoleBinding polyver-edit removed" in said
    assert there(server, BUDGET) is None
    assert there(server, f"{RBAC}/clusterrolebindings/polyver-edit") is None
    assert there(server, f"{BUDGET.removesuffix('polyver')}mine") is not None


def test_there_is_one_installation_on_a_cluster(server: EmbeddedServer, run: Run) -> None:
    installed(run)
    before = state(server)
    said = refused(run, "install", "--image", "a:1", "--namespace", "second", "--adopt")
    assert said.startswith("polyver is installed in namespace polyver-system (")
    assert state(server) == before


def test_what_is_being_deleted_is_waited_for_by_nobody(server: EmbeddedServer, run: Run) -> None:
    installed(run)
    held = server.request("GET", DEPLOYMENT)
    held["metadata"]["finalizers"] = ["ex.io/held"]
    server.request("PUT", DEPLOYMENT, held)
    server.request("DELETE", DEPLOYMENT)
    said = refused(run, "install", "--image", "a:1")
    assert said.startswith("Deployment polyver-system/polyver is being deleted (")
    held = server.request("GET", DEPLOYMENT)
    del held["metadata"]["finalizers"]
    server.request("PUT", DEPLOYMENT, held)
    assert "Deployment polyver-system/polyver created" in installed(run)


# Kinds.


def kinds(text: str = "", *, v1: str = "") -> str:
    Path("kinds.py").write_text(KINDS.replace("{v1}", v1) + text)
    return "kinds.py"


def test_kinds_are_defined_and_converted_by_the_installation(
    server: EmbeddedServer, run: Run
) -> None:
    installed(run, "--kinds", kinds())
    conversion = server.request("GET", f"{CRDS}/{LAMPS}")["spec"]["conversion"]
    service = conversion["webhook"]["clientConfig"]["service"]
    assert (service["namespace"], service["name"], service["path"]) == (
        "polyver-system",
        "polyver",
        "/convert",
    )
    [container] = server.request("GET", DEPLOYMENT)["spec"]["template"]["spec"]["containers"]
    assert container["args"][-2:] == ["--kinds", "kinds.py"]


def versions(server: EmbeddedServer) -> list[str]:
    found = server.request("GET", f"{CRDS}/{LAMPS}")
    return [each["name"] for each in found["spec"]["versions"]]


def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules of before are those of another process."""
    import sys

    for name in [name for name in sys.modules if name.startswith("kinds")]:
        monkeypatch.delitem(sys.modules, name)


def test_a_new_version_waits_for_replicas_that_know_it(
    server: EmbeddedServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(run, "--kinds", kinds())
    fresh(monkeypatch)
    image = ("install", "--image", "shop/polyver:2", "--kinds", kinds(V3))
    said = refused(run, *image, "--wait", "0", code=3)
    assert said.startswith("Deployment polyver-system/polyver is not up to date after 0 s (")
    assert versions(server) == ["v2", "v1"]
    deployment = server.request("GET", DEPLOYMENT)
    counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas", "readyReplicas"), 2)
    deployment["status"] = {"observedGeneration": deployment["metadata"]["generation"], **counts}
    server.request("PUT", f"{DEPLOYMENT}/status", deployment)
    fresh(monkeypatch)
    ran = run(*image, "--wait", "0")
    assert (ran.code, ran.err) == (0, "")
    assert versions(server) == ["v3", "v2", "v1"]


def test_a_version_goes_before_the_replicas_that_know_it(
    server: EmbeddedServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(run, "--kinds", kinds(V3))
    fresh(monkeypatch)
    lines = installed(run, "--kinds", kinds(), "--wait", "0")
    assert versions(server) == ["v2", "v1"]
    changed = [line for line in lines if line.endswith(" changed")]
    assert changed == [f"CustomResourceDefinition {LAMPS} changed"]


def test_a_definition_that_is_wanted_no_longer_stays(server: EmbeddedServer, run: Run) -> None:
    installed(run, "--kinds", kinds())
    said = installed(run)
    line = f"CustomResourceDefinition {LAMPS} of an earlier installation is kept, with its objects"
    assert line in said
    assert there(server, f"{CRDS}/{LAMPS}") is not None


def test_a_conversion_that_was_applied_later_is_left_to_it(
    server: EmbeddedServer, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A definition from a manifest does not say who converts, and an upgrade takes nobody away."""
    kinds()
    crds = run("crds", "kinds.py").out.replace("  conversion:\n    strategy: None\n", "")
    (tmp_path / "crds.yaml").write_text(crds)
    ran = run("install", "--image", "shop/polyver:1", "--kinds", "crds.yaml")
    assert ran.code == 0
    assert "warning: no webhook converts Lamp between v2, v1, so the cluster" in ran.err
    client = {"url": "https://127.0.0.1:1/convert"}
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    by = {"strategy": "Webhook", "webhook": webhook}
    path = f"{CRDS}/{LAMPS}?fieldManager=polyver"
    edited(server.request, path, lambda crd: crd["spec"].update(conversion=by))
    assert run("install", "--image", "shop/polyver:1", "--kinds", "crds.yaml").code == 0
    assert server.request("GET", f"{CRDS}/{LAMPS}")["spec"]["conversion"]["strategy"] == "Webhook"


# What goes wrong.


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--namespace", "Shop"), "'Shop' is not a valid namespace"),
        (("--tls-secret", "certs"), "--tls-secret and --inject-ca-from are required together"),
        (("--tls-secret", "certs", "--inject-ca-from", "x"), "'x' is not NAMESPACE/NAME"),
        (("--role", "a/b"), "'a/b' is not a valid name of a ClusterRole"),
        (("--replicas", "0"), "Invalid value"),
    ],
)
def test_what_makes_no_sense_is_told(run: Run, arguments: tuple[str, ...], said: str) -> None:
    assert said in refused(run, "install", "--dry-run", "--image", "a:1", *arguments, code=2)


def test_without_an_image_nothing_is_installed(run: Run) -> None:
    assert "--image" in refused(run, "install", "--dry-run", code=2)


@pytest.mark.parametrize("command", [("install", "--image", "a:1"), ("uninstall",)])
def test_who_may_only_read_is_told_so(
    server: EmbeddedServer, run: Run, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    installed(run)
    before = state(server)
    text = server.kubeconfig.read_text().replace(server.token, server.viewer_token)
    Path("kubeconfig").write_text(text)
    monkeypatch.setenv("KUBECONFIG", "kubeconfig")
    said = refused(run, *command, "--context", "polyver-token", code=3)
    assert "forbidden" in said
    assert "context polyver-token of kubeconfig" in said
    assert state(server) == before


@pytest.mark.parametrize("command", [("install", "--image", "a:1"), ("uninstall",)])
def test_a_cluster_that_is_away_is_told_with_its_place(
    server: EmbeddedServer, run: Run, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    text = server.kubeconfig.read_text().replace(server.url, "https://127.0.0.1:1")
    Path("kubeconfig").write_text(text)
    monkeypatch.setenv("KUBECONFIG", "kubeconfig")
    said = refused(run, *command, code=3)
    assert said.startswith("the server cannot be reached: Connection refused (https://127.0.0.1:1")


# Uninstalling.


def test_nothing_of_an_installation_is_left_but_what_is_others(
    server: EmbeddedServer, run: Run
) -> None:
    before = state(server)
    installed(run, "--role", "edit")
    ran = run("uninstall")
    assert (ran.code, ran.err) == (0, "")
    names = [path.removeprefix(CRDS).removeprefix(CORE) for path in {*state(server)} - {*before}]
    left = {f"/{CONVERSIONS}", f"/{RETIREMENTS}", f"/{USAGES}", "/polyver-system"}
    assert {name for name in names if "default" not in name} == left
    assert f"CustomResourceDefinition {CONVERSIONS} is kept, with its objects" in ran.out
    assert "Namespace polyver-system is kept" in ran.out


def kept(server: EmbeddedServer, who: str) -> list[str]:
    """What `polyver run` makes, or somebody else with the same names."""
    asked = AdmissionRegistration("defaults", group="ex.io", plural="lamps", versions=("v1",))
    both = [asked, replace(asked, mutates=False)]
    mutating, validating = configurations(both, Webhook("polyver-system", "polyver"))
    lease = {"metadata": {"name": "polyver"}, "spec": {"holderIdentity": "a"}}
    contents = {
        f"{OURS}/secrets": {"metadata": {"name": "polyver-webhook"}, "data": {"a": "YQ=="}},
        LEASES: lease,
        f"{HOOKS}/mutatingwebhookconfigurations": mutating,
        f"{HOOKS}/validatingwebhookconfigurations": validating,
    }
    for path, content in contents.items():
        make(server, path, content, who=who)
    return [f"{path}/{each['metadata']['name']}" for path, each in contents.items()]


def test_what_replicas_made_goes_with_them(server: EmbeddedServer, run: Run) -> None:
    installed(run)
    paths = kept(server, "polyver")
    installed(run)
    assert run("uninstall").code == 0
    assert [there(server, path) for path in paths] == [None] * 4


def test_what_only_has_the_same_name_stays(server: EmbeddedServer, run: Run) -> None:
    installed(run)
    paths = kept(server, "somebody")
    ran = run("uninstall")
    assert ran.code == 0
    assert "Lease polyver-system/polyver is kept: it has another owner" in ran.out
    assert None not in [there(server, path) for path in paths]


def test_a_dry_run_removes_nothing_and_tells_what_would_go(
    server: EmbeddedServer, run: Run
) -> None:
    installed(run)
    before = state(server)
    said = run("uninstall", "--dry-run").out
    assert "Deployment polyver-system/polyver would be removed" in said
    assert state(server) == before


def test_writes_are_free_before_those_who_answer_go(server: EmbeddedServer, run: Run) -> None:
    installed(run)
    kept(server, "polyver")
    lines = run("uninstall").out.splitlines()
    order = [line.split()[0] for line in lines if line.endswith("removed")]
    assert order[:4] == [
        "ClusterRoleBinding",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
        "Deployment",
    ]


def test_definitions_that_need_the_installation_keep_it(server: EmbeddedServer, run: Run) -> None:
    installed(run, "--kinds", kinds())
    before = state(server)
    said = refused(run, "uninstall")
    assert said.startswith(
        f"kinds that are converted by this installation need attention first: {LAMPS} (v2, v1) ("
    )
    assert "nothing was removed; make each kind serve" in said
    assert "--force" in said
    assert state(server) == before
    assert run("uninstall", "--force").code == 0
    assert there(server, DEPLOYMENT) is None
    assert there(server, f"{CRDS}/{LAMPS}") is not None


def test_objects_go_only_if_that_is_said_twice(server: EmbeddedServer, run: Run) -> None:
    installed(run, "--kinds", kinds())
    lamp = {"apiVersion": "ex.io/v2", "kind": "Lamp", "metadata": {"name": "desk"}, "watts": 5}
    server.request("POST", "/apis/ex.io/v2/namespaces/default/lamps", lamp)
    said = refused(run, "uninstall", "--with-objects")
    assert said.startswith(
        f"objects would be deleted with their definitions: 0 of {CONVERSIONS}, 1 of {LAMPS}, "
        f"0 of {RETIREMENTS}, 0 of {USAGES} ("
    )
    assert there(server, "/apis/ex.io/v2/namespaces/default/lamps/desk") is not None
    ran = run("uninstall", "--with-objects", "--yes")
    assert (ran.code, ran.err) == (0, "")
    assert [there(server, f"{CRDS}/{name}") for name in (CONVERSIONS, LAMPS)] == [None, None]
    assert "--yes needs --with-objects" in refused(run, "uninstall", "--yes", code=2)


def test_uninstalling_says_what_it_waits_for(server: EmbeddedServer, run: Run) -> None:
    installed(run, "--kinds", kinds())
    metadata = {"name": "desk", "finalizers": ["ex.io/mine"]}
    lamp = {"apiVersion": "ex.io/v2", "kind": "Lamp", "metadata": metadata, "watts": 5}
    at = "/apis/ex.io/v2/namespaces/default/lamps"
    server.request("POST", at, lamp)
    command = [sys.executable, "-m", "polyver", "uninstall", "--with-objects", "--yes"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        waiting = next(line for line in process.stdout if f"{LAMPS}: waiting" in line)
        assert waiting.strip() == (
            f"CustomResourceDefinition {LAMPS}: waiting for 1 objects; "
            "finalizers of default/desk (ex.io/mine)"
        )
        edited(server.request, f"{at}/desk", lambda obj: obj["metadata"].update(finalizers=None))
        rest = process.stdout.read()
    assert process.returncode == 0
    assert f"CustomResourceDefinition {LAMPS} removed" in rest


def test_conversions_are_freed_as_nobody_is_left_to_do_it(server: EmbeddedServer, run: Run) -> None:
    """`polyver run` keeps a Conversion by a finalizer as long as its kind needs it."""
    installed(run, "--kinds", kinds())
    spec = {"group": "ex.io", "kind": "Boat", "versions": ["v1"]}
    about = {"apiVersion": "polyver.dev/v1alpha1", "kind": "Conversion"}
    metadata = {"name": "boats.ex.io", "finalizers": [FINALIZER, "ex.io/mine"]}
    at = "/apis/polyver.dev/v1alpha1/conversions"
    server.request("POST", at, {**about, "metadata": metadata, "spec": spec})
    assert run("uninstall", "--force").code == 0
    left = server.request("GET", f"{at}/boats.ex.io")
    assert left["metadata"]["finalizers"] == ["ex.io/mine"]
    left["metadata"]["finalizers"] = [FINALIZER]
    server.request("PUT", f"{at}/boats.ex.io", left)
    installed(run, "--kinds", kinds())
    assert run("uninstall", "--with-objects", "--yes").code == 0
    assert there(server, f"{CRDS}/{CONVERSIONS}") is None


def test_uninstalling_elsewhere_or_twice_is_told(server: EmbeddedServer, run: Run) -> None:
    assert "polyver is not installed in namespace a (" in refused(
        run, "uninstall", "--namespace", "a"
    )
    installed(run)
    said = refused(run, "uninstall", "--namespace", "a")
    assert said.endswith("write --namespace polyver-system")
    assert there(server, DEPLOYMENT) is not None
