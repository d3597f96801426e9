"""`polyver plan` for Compositions and Functions, beside a control plane that composes."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.app.test_cli import Ran
from tests.compositions import composing
from tests.compositions.commands.test_render import served
from tests.compositions.controllers.installing import MemoryRuntime
from tests.walks.support import eventually

from polyver.compositions.messages import (
    Ready,
    Request,
    Requirements,
    Resource,
    ResourceSelector,
    Response,
    Result,
    Severity,
    State,
)
from polyver.compositions.names import ALLOW_DELETION, ENDPOINT, revision_name
from polyver.compositions.runtimes import DesiredRevision, ServingStatus
from polyver.kube.objects import dump_yaml, encode_json
from polyver.kube.objects.status import ApiError
from polyver.testing import EmbeddedServer

Object = dict[str, Any]
Run = Callable[..., Ran]
COMPOSED = "/apis/apiextensions.crossplane.io/v1"
PACKAGES = "/apis/pkg.crossplane.io/v1"
BUCKETS = f"/apis/{composing.VERSION}/acmebuckets"
MAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
PASSWORD = "tiger-1234"


def maker(request: Request) -> Response:
    """Compose the objects of the step's input; fail for the composite resources that it names."""
    wanted = request.input or {}
    name = request.observed.composite.resource["metadata"]["name"]
    required = {
        each: ResourceSelector("v1", "ConfigMap", each, namespace="default")
        for each in wanted.get("requires", ())
    }
    if name in wanted.get("failFor", ()):
        return Response(results=(Result(Severity.FATAL, f'cannot make "{name}"'),))
    facts = {
        "$NAME": name,
        "$PASSWORD": _text(request.credentials.get("login", {}).get("password", b"none")),
        "$SEEN": str(len(request.observed.resources)),
        "$TEXT": "".join(
            each.resource["data"]["text"]
            for found in request.required_resources.values()
            for each in found
        ),
    }
    text = encode_json(wanted.get("objects", {})).decode()
    for word, value in facts.items():
        text = text.replace(word, value)
    made = {key: Resource(obj, ready=Ready.TRUE) for key, obj in json.loads(text).items()}
    return Response(
        desired=State(resources=made),
        context=request.context,
        requirements=Requirements(resources=required),
    )


def _text(data: bytes) -> str:
    return data.decode()


def config(kind: str = "ConfigMap", name: str = "$NAME", **data: str) -> Object:
    about = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": kind, "metadata": about, "data": data}


@dataclass
class Platform:
    """A control plane, and the address of the function that it calls."""

    server: EmbeddedServer
    address: str

    def request(self, *arguments: Any) -> Any:
        return self.server.request(*arguments)

    def prepare(self, installed: Object) -> None:
        """Have a kind of composite resources and a function that answers."""
        definition = composing.definition()
        del definition["metadata"]["uid"]
        self.request("POST", f"{COMPOSED}/compositeresourcedefinitions", definition)
        self.request("POST", f"{PACKAGES}/functions", installed)
        eventually(lambda: _is_served(self.server))

    def composed(self, composition: Object, *names: str, **spec: Any) -> list[str]:
        """Have a Composition and composite resources that use it; their names in a plan."""
        self.request("POST", f"{COMPOSED}/compositions", composition)
        uses: dict[str, Any] = {"compositionRef": {"name": composition["metadata"]["name"]}}
        for name in names:
            obj = composing.bucket(**(uses | spec))
            self.request("POST", BUCKETS, {**obj, "metadata": {"name": name}})
        for name in names:
            eventually(partial(self._is_settled, name))
        return [f"AcmeBucket/{name}" for name in names]

    def _is_settled(self, name: str) -> bool:
        status = self.request("GET", f"{BUCKETS}/{name}").get("status") or {}
        return "Synced" in {each["type"] for each in status.get("conditions") or ()}

    def revisions(self, composition: str) -> list[str]:
        label = f"crossplane.io/composition-name={composition}"
        found = self.request("GET", f"{COMPOSED}/compositionrevisions?labelSelector={label}")
        return [each["metadata"]["name"] for each in found["items"]]


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with (
        served(maker) as address,
        EmbeddedServer(capabilities=("apis", "compositions")) as running,
    ):
        made = Platform(running, address)
        made.prepare(function(address))
        yield made


def _is_served(server: EmbeddedServer) -> bool:
    try:
        server.request("GET", BUCKETS)
    except ApiError:
        return False
    found = server.request("GET", f"{PACKAGES}/functionrevisions")["items"]
    return bool(found and (found[0].get("status") or {}).get("endpoint"))


def function(address: str, version: str = "v1", name: str = composing.FUNCTION) -> Object:
    return {
        "apiVersion": "pkg.crossplane.io/v1",
        "kind": "Function",
        "metadata": {"name": name, "annotations": {ENDPOINT: f"http://{address}"}},
        "spec": {"package": f"ex.io/{name}:{version}", "revisionHistoryLimit": 0},
    }


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return f"c{zlib.crc32(request.node.name.encode())}"


@pytest.fixture
def run(
    platform: Platform,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("KUBECONFIG", str(platform.server.kubeconfig))
    return lambda *arguments: Ran(capsys, *arguments)


def composition(name: str, more: Object | None = None, *, note: str = "", **wanted: Any) -> Object:
    """A Composition whose step has an input for `maker`; `objects` by their names."""
    step = composing.step(input={"apiVersion": "ex.io/v1", "kind": "Input", **wanted})
    made = composing.composition(name, {**step, **(more or {})})
    made["metadata"] = {"name": name} | ({"annotations": {ALLOW_DELETION: note}} if note else {})
    return made


def write(name: str, *objects: Object) -> str:
    Path(name).write_text("---\n".join(map(dump_yaml, objects)))
    return name


def test_a_plan_composes_with_the_new_revision_and_applies_nothing(
    platform: Platform, name: str, run: Run
) -> None:
    names = platform.composed(
        composition(name, objects={"a": config(image="v1")}), f"{name}-1", f"{name}-2"
    )
    before = platform.revisions(name)
    new = write("new.yaml", composition(name, objects={"a": config(image="v2", seen="$SEEN")}))
    done = run("plan", "-f", new)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    summary = "2 composite resources: 0 unchanged, 2 changed, 0 would lose objects, 0 would fail"
    assert lines[0] == summary
    assert lines[1].startswith(f"Composition {name} publishes {name}-")
    assert lines[1].endswith(", revision 2")
    assert lines[3].split()[:3] == ["Composition", name, before[0]]
    assert "2 ConfigMaps: data.image v1 → v2, data.seen added: 1" in lines
    assert f"  {', '.join(names)}" in lines
    assert "+  image: v2" in lines
    assert platform.revisions(name) == before
    assert platform.request("GET", f"{MAPS}/{name}-1")["data"] == {"image": "v1"}
    told = json.loads(run("plan", "-f", new, "-o", "json").out)
    assert told["summary"] == {
        "compositeResources": 2, "unchanged": 0, "changed": 2, "wouldLoseObjects": 0, "wouldFail": 0
    }  # fmt: skip
    [published] = told["compositions"]
    assert (published["composition"], published["revision"]) == (name, 2)
    assert [each["from"] for each in told["compositeMoves"]] == before * 2
    assert [each["outcome"] for each in told["compositeResources"]] == ["changed"] * 2
    assert told["changes"][0]["compositeResources"] == names
    platform.request("PUT", f"{COMPOSED}/compositions/{name}", _over(platform, name, new))
    eventually(lambda: published["publishes"] in platform.revisions(name))


def _over(platform: Platform, name: str, file: str) -> Object:
    from polyver.kube.objects import load_manifests

    [document] = load_manifests(Path(file).read_text(), file)
    assert isinstance(document.value, dict)
    live = platform.request("GET", f"{COMPOSED}/compositions/{name}")
    return {**live, "spec": document.value["spec"]}


def test_failures_and_lost_objects_fail_a_plan(platform: Platform, name: str, run: Run) -> None:
    names = [f"{name}-{number}" for number in range(3)]
    both = {"a": config(), "b": config(name="$NAME-b")}
    platform.composed(composition(name, objects=both), *names)
    one = {"a": config()}
    bad = write("bad.yaml", composition(name, objects=one, failFor=[names[0]]))
    done = run("plan", "-f", bad)
    assert done.code == 1
    assert done.err == (
        "error: 1 composite resource would fail; 2 composite resources would lose objects\n"
    )
    lines = done.out.splitlines()
    assert lines[0].endswith("0 unchanged, 0 changed, 2 would lose objects, 1 would fail")
    [failed] = [each for each in lines if each.startswith("1 composite resource would fail: ")]
    assert f'cannot make "{names[0]}"' in failed
    assert "2 ConfigMaps lost" in lines
    losing = write("new.yaml", composition(name, objects=one))
    assert run("plan", "-f", losing).code == 1
    assert run("plan", "-f", losing, "--allow-deletion").code == 0
    allowed = write("new.yaml", composition(name, note="true", objects=one))
    done = run("plan", "-f", allowed)
    assert (done.code, "3 would lose objects" in done.out) == (0, True)


def test_a_composite_resource_that_fails_already_does_not_fail_a_plan(
    platform: Platform, name: str, run: Run
) -> None:
    broken: dict[str, Any] = {"failFor": [name], "objects": {"a": config()}}
    platform.composed(composition(name, **broken), name)
    done = run("plan", "-f", write("new.yaml", composition(name, **broken, x=1)))
    assert (done.code, done.err) == (0, "")
    assert "1 composite resource fails already, independent of the plan: " in done.out


def test_only_the_sample_is_composed_in_the_order_of_a_rollout(
    platform: Platform, name: str, run: Run
) -> None:
    names = [f"{name}-{number}" for number in range(4)]
    platform.composed(composition(name, objects={"a": config()}), *names)
    new = write("new.yaml", composition(name, objects={"a": config(x="1")}))
    done = run("plan", "-f", new, "--sample", "2")
    lines = done.out.splitlines()
    assert lines[0].startswith("2 composite resources: 0 unchanged, 2 changed")
    assert lines[1] == "composed 2 of 4 composite resources that would move; see --sample"
    told = json.loads(run("plan", "-f", new, "--sample", "all", "-o", "json").out)
    order = [each["compositeResource"] for each in told["compositeResources"]]
    assert told["sample"] == {"moving": 4, "composed": 4}
    for each in order[:2]:
        assert each in done.out.split("ConfigMaps: ")[1]
    for text in ("0", "some", "-1", "1.5"):
        assert run("plan", "-f", new, f"--sample={text}").code == 2


def test_data_of_secrets_and_its_copies_are_not_shown(
    platform: Platform, name: str, run: Run
) -> None:
    secret = config("Secret", name) | {"data": {"password": _coded(PASSWORD)}}
    platform.request("POST", SECRETS, secret)
    platform.request("POST", MAPS, config(name=f"{name}-x", text="wanted"))
    login = {"name": "login", "source": "Secret"}
    login["secretRef"] = {"name": name, "namespace": "default"}  # type: ignore[assignment]
    more = {"credentials": [login]}
    old = {"a": config()}
    platform.composed(composition(name, more, objects=old), f"{name}-1")
    new = {
        "a": config(copy="$PASSWORD", text="$TEXT"),
        "b": config("Secret", "$NAME-b", password=_coded("lion-5678")),
    }
    file = write("new.yaml", composition(name, more, objects=new, requires=[f"{name}-x"]))
    for options in ((), ("--all",), ("-o", "json")):
        done = run("plan", "-f", file, *options)
        assert (done.code, done.err) == (0, "")
        for hidden in (PASSWORD, _coded(PASSWORD), _coded("lion-5678")):
            assert hidden not in done.out
    done = run("plan", "-f", file)
    assert "1 ConfigMap: data.copy added, data.text added: wanted" in done.out.splitlines()
    assert "1 Secret added" in done.out.splitlines()
    given = write("secrets.yaml", secret | {"data": {"password": _coded("wanted")}})
    done = run("plan", "-f", file, "--function-credentials", given)
    assert "data.text added" in done.out


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_a_function_of_another_package_is_called_beside_the_one_in_use(
    platform: Platform, name: str, run: Run
) -> None:
    step = {"functionRef": {"name": name}}
    platform.request("POST", f"{PACKAGES}/functions", function(platform.address, name=name))
    platform.composed(composition(name, step, objects={"a": config()}), f"{name}-1")

    def other(request: Request) -> Response:
        del request
        return Response(desired=State(resources={"a": Resource(config(name=f"{name}-1", by="v2"))}))

    with served(other) as address:
        done = run("plan", "-f", write("new.yaml", function(address, "v2", name)))
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[1].startswith(f"Function {name} publishes {name}-")
    assert lines[1].endswith(", revision 2")
    assert lines[3].split()[:2] == ["Function", name]
    assert "1 ConfigMap: data.by added: v2" in lines
    told = json.loads(
        run(
            "plan", "-f", write("same.yaml", function(platform.address, name=name)), "-o", "json"
        ).out
    )
    assert (told["functions"][0]["refusals"], told["compositeMoves"]) == ([], [])


def test_a_function_that_this_machine_cannot_call_is_told_with_what_to_do(
    platform: Platform, name: str, run: Run
) -> None:
    step = {"functionRef": {"name": name}}
    platform.request("POST", f"{PACKAGES}/functions", function(platform.address, name=name))
    platform.composed(composition(name, step, objects={"a": config()}), f"{name}-1")
    wanted = function("", "v2", name)
    wanted["metadata"]["annotations"][ENDPOINT] = ""  # the address on the cluster would stay
    file = write("new.yaml", wanted)
    done = run("plan", "-f", file)
    assert (done.code, done.out) == (3, "")
    assert "(new.yaml:8, spec.package)" in done.err
    assert "--packages" in done.err
    assert "--function-address" in done.err
    address = f"{name}=http://{platform.address}"
    done = run("plan", "-f", file, "--function-address", address)
    assert done.code == 2
    assert f"the plan needs 2 revisions of {name}" in done.err
    nobody = write("new.yaml", function("127.0.0.1:1", "v3", name))
    done = run("plan", "-f", nobody)
    assert (done.code, "does not answer at http://127.0.0.1:1" in done.err) == (3, True)
    for option, told in (("x", "write NAME=ADDRESS"), ("x=y", "the plan does not call x")):
        done = run("plan", "-f", nobody, "--function-address", option)
        assert (done.code, told in done.err) == (2, True)


class _Deployments(MemoryRuntime):
    """Knows packages by their references, as the runtime of a cluster does."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address = address

    async def digest(self, package: str, *, address: str = "") -> str:
        return package

    async def serve(self, wanted: DesiredRevision) -> ServingStatus:
        return ServingStatus(self._address, "Serving")


def test_functions_that_a_cluster_knows_by_reference_run_where_a_user_says(
    name: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = {"functionRef": {"name": name}}
    with (
        served(maker) as address,
        EmbeddedServer(
            capabilities=("apis", "compositions"), runtime=_Deployments(address)
        ) as running,
    ):
        monkeypatch.setenv("KUBECONFIG", str(running.kubeconfig))
        platform = Platform(running, address)
        installed = function(address, name=name)
        del installed["metadata"]["annotations"]
        platform.prepare(installed)
        platform.composed(composition(name, step, objects={"a": config()}), f"{name}-1")
        new = {**installed, "spec": {**installed["spec"], "package": f"ex.io/{name}:v2"}}
        file = write("new.yaml", new)
        done = run("plan", "-f", file)
        assert (done.code, done.out) == (3, "")
        assert f'the location of the package "ex.io/{name}:v' in done.err
        names = [revision_name(name, f"ex.io/{name}:v{number}") for number in (1, 2)]
        local = [f"--function-address={each}=http://{address}" for each in names]
        done = run("plan", "-f", file, *local)
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith("1 composite resource: 1 unchanged, 0 changed")
        assert f"Function {name} publishes {names[1]}, revision 2" in done.out.splitlines()


def test_what_a_plan_cannot_show_is_refused_unless_it_is_applied_already(
    platform: Platform, name: str, run: Run
) -> None:
    made = composition(name, objects={"a": config()})
    platform.composed(made, f"{name}-1", size=1)
    definition = composing.definition()
    bucket = {**composing.bucket(size=1), "metadata": {"name": f"{name}-1"}}
    applied = write("applied.yaml", made, definition, bucket, config(name="x"))
    done = run("plan", "-f", applied)
    assert (done.code, done.out.splitlines()[1:]) == (
        0,
        [f"Composition {name} publishes nothing new", "no composite resource moves"],
    )
    assert done.err.startswith("warning: ConfigMap is not part of the plan (applied.yaml:")
    for changed, told in (
        (composing.definition(composing.version(other={"type": "string"})), "apply it"),
        ({**bucket, "spec": {"size": 2}}, "`polyver render`"),
        ({**bucket, "metadata": {"name": "nobody"}}, "`polyver render`"),
    ):
        done = run("plan", "-f", write("new.yaml", changed, made))
        assert (done.code, done.out) == (1, "")
        assert f"a new or changed {changed['kind']} cannot be planned (new.yaml:1)" in done.err
        assert told in done.err
    done = run("plan", "-f", write("new.yaml", made, made))
    assert (done.code, f"Composition {name} is declared twice" in done.err) == (3, True)


def test_what_the_server_would_refuse_is_told(platform: Platform, name: str, run: Run) -> None:
    long = write("new.yaml", composition("c" * 64, objects={}))
    done = run("plan", "-f", long)
    assert (done.code, "its name has 64 characters" in done.err) == (3, True)
    done = run("plan", "-f", write("new.yaml", composition("Not_Allowed", objects={})))
    assert (done.code, done.err) == (1, "error: Composition Not_Allowed would be refused\n")
    assert "Composition Not_Allowed is refused: " in done.out
    missing = composition(name, {"functionRef": {"name": "nobody"}}, objects={})
    platform.composed(composition(name, objects={"a": config()}), f"{name}-1")
    done = run("plan", "-f", write("new.yaml", missing))
    assert (done.code, done.err) == (1, "error: 1 composite resource would fail\n")
    assert "function nobody has no revisions" in done.out


def test_a_user_who_may_only_read_gets_a_plan_unless_functions_need_secrets(
    platform: Platform, name: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform.request("POST", SECRETS, config("Secret", name, password=_coded(PASSWORD)))
    login = {"name": "login", "source": "Secret"}
    login["secretRef"] = {"name": name, "namespace": "default"}  # type: ignore[assignment]
    more = {"credentials": [login]}
    platform.composed(composition(name, objects={"a": config()}), f"{name}-1")
    text = platform.server.kubeconfig.read_text()
    Path("viewer").write_text(text.replace(platform.server.token, platform.server.viewer_token))
    monkeypatch.setenv("KUBECONFIG", "viewer")
    as_viewer = ("--context", "polyver-token")
    new = write("new.yaml", composition(name, objects={"a": config(x="1")}))
    done = run("plan", "-f", new, *as_viewer)
    assert done.code == 0
    assert "1 ConfigMap: data.x added: 1" in done.out
    assert (
        f"Composition {name}: you may not write it, so the API server has not checked" in done.err
    )
    file = write("new.yaml", composition(name, more, objects={"a": config(x="$PASSWORD")}))
    done = run("plan", "-f", file, *as_viewer)
    assert (done.code, done.out) == (3, "")
    assert "functions need an object that you may not read: " in done.err
    given = write("secret.yaml", config("Secret", name, password=_coded("given")))
    done = run("plan", "-f", file, "--function-credentials", given, *as_viewer)
    assert (done.code, "1 ConfigMap: data.x added" in done.out) == (0, True)
    assert "given" not in done.out
