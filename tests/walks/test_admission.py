"""One chain behind two doors: what it says to a write is the same in process and over HTTPS."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.deadlines import HANG
from tests.walks import admitted
from tests.walks.admitted import BULBS, GROUP, LAMPS, SECRET
from tests.walks.kubectl import KUBECTLS
from tests.walks.support import eventually

from polyver.apis.conversion import ANNOTATION
from polyver.kube.objects.status import ApiError
from polyver.testing import EmbeddedServer, LocalCluster
from polyver.testing._requests import ask

if TYPE_CHECKING:
    from polyver.testing._requests import ApiEndpoint as Asked

Object = dict[str, Any]
ROOT = Path(__file__).parents[2]
KINDS = str(Path(admitted.__file__))
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
PREFIX = re.compile(r'^admission webhook "\S+" denied the request: ')


class Lamps:
    """The lamps of one namespace."""

    def __init__(self, server: Asked, log: list[str]) -> None:
        self.server = server
        self.log = log
        self.namespace = f"lamps-{secrets.token_hex(4)}"
        self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})

    def ask(self, method: str, path: str, body: object = None) -> Any:
        return ask(self.server, method, path, body)

    def path(self, version: str, name: str = "", query: str = "", plural: str = "lamps") -> str:
        named = f"/{name}" if name else ""
        return f"/apis/{GROUP}/{version}/namespaces/{self.namespace}/{plural}{named}{query}"

    def create(self, version: str, name: str, query: str = "", **spec: Any) -> Any:
        return self.ask("POST", self.path(version, query=query), lamp(version, name, **spec))

    def get(self, version: str, name: str) -> Any:
        return self.ask("GET", self.path(version, name))

    def replace(self, version: str, obj: Object) -> Any:
        return self.ask("PUT", self.path(version, obj["metadata"]["name"]), obj)


def lamp(version: str, name: str, **spec: Any) -> Object:
    named = {"apiVersion": f"{GROUP}/{version}", "kind": "Lamp"}
    return named | {"metadata": {"name": name}, "spec": spec}


def refusal(error: ApiError) -> tuple[int, str, str, Any]:
    """What was refused, without the name of the webhook that a cluster puts in front of it."""
    causes = (error.details or {}).get("causes")
    return error.code, error.reason, PREFIX.sub("", error.message), causes


@pytest.fixture(
    scope="module", params=["in-process", pytest.param("over-https", marks=pytest.mark.kube)]
)
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Asked, list[str]]]:
    """A server that asks the chain about lamps, and what the chain's process logs."""
    if request.param == "in-process":
        with EmbeddedServer(kinds=[LAMPS, BULBS]) as server:
            yield server, []
        return
    folder = tmp_path_factory.mktemp("webhook")
    with LocalCluster() as cluster, served(folder) as (url, log):
        register(cluster, url, folder)
        yield cluster, log


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """`polyver serve`, running: where, and what it logs."""
    command = ["serve", "--kinds", KINDS, "--port", "0", "--linger", "0"]
    command += ["--certificates", str(folder / "own")]
    log = folder / "log"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            program(*command), stdout=subprocess.PIPE, stderr=errors, text=True, env=environment()
        ) as process,
    ):
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"at (https://\S+/convert);", line)
        assert found, line
        assert "polyver admits 2 kinds at" in process.stdout.readline()
        try:
            yield found[1], [str(log)]
        finally:
            process.terminate()
            process.wait(HANG)


def register(cluster: LocalCluster, url: str, folder: Path) -> None:
    """Apply what `polyver crds --admission` writes, and wait until it counts."""
    trusted = ["--webhook-url", url, "--webhook-ca", str(folder / "own" / "ca.crt")]
    command = program("crds", KINDS, "--admission", "-o", "json", *trusted)
    printed = subprocess.run(command, capture_output=True, text=True, check=True, env=environment())
    for each in json.loads(printed.stdout)["items"]:
        plural = f"{each['kind'].lower()}s"
        group = f"/apis/{each['apiVersion']}"
        ask(cluster, "POST", f"{group}/{plural}", each)
    eventually(lambda: is_asked(cluster))


def is_asked(cluster: LocalCluster) -> bool:
    """Whether the API server has heard of the kind, and of whom to ask, which takes a moment."""
    path = f"/apis/{GROUP}/v2/namespaces/default/lamps?dryRun=All"
    try:
        ask(cluster, "POST", path, lamp("v2", "bright", watts=101))
    except (ApiError, ValueError) as error:
        return "too bright" in str(error)
    return False


def program(*arguments: str) -> list[str]:
    start = "import sys; from polyver.app import main; sys.exit(main())"
    return [sys.executable, "-c", start, *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}


@pytest.fixture
def lamps(place: tuple[Asked, list[str]]) -> Lamps:
    return Lamps(*place)


def test_what_a_hook_fills_in_is_stored(lamps: Lamps) -> None:
    made = lamps.create("v1", "a", power=40)
    assert made["spec"] == {"power": 40, "colour": "white"}
    assert lamps.get("v2", "a")["spec"] == {"watts": 40, "colour": "white"}


def test_a_hook_of_one_version_leaves_writes_in_another_alone(lamps: Lamps) -> None:
    assert lamps.create("v2", "a", watts=40)["spec"] == {"watts": 40}
    assert lamps.create("v1", "b", power=400)["spec"]["power"] == 400


def test_what_is_tried_is_filled_in_and_not_stored(lamps: Lamps) -> None:
    tried = lamps.create("v1", "a", "?dryRun=All", power=40)
    assert tried["spec"]["colour"] == "white"
    with pytest.raises(ApiError, match="not found"):
        lamps.get("v1", "a")


def test_what_a_hook_finds_is_refused_in_the_same_words(lamps: Lamps) -> None:
    with pytest.raises(ApiError) as refused:
        lamps.create("v2", "a", watts=101)
    text = "Invalid value: is too bright"
    cause = {"reason": "FieldValueInvalid", "message": text, "field": "spec.watts"}
    message = f'Lamp.{GROUP} "a" is invalid: spec.watts: {text}'
    assert refusal(refused.value) == (422, "Invalid", message, [cause])


def test_a_hook_is_told_what_was_there_before(lamps: Lamps) -> None:
    made = lamps.create("v2", "a", watts=40, colour="red")
    made["spec"] = {"watts": 101, "colour": "blue"}
    with pytest.raises(ApiError) as refused:
        lamps.replace("v2", made)
    problems = "[spec.watts: Invalid value: is too bright, spec.colour: Invalid value: was red]"
    assert refusal(refused.value)[2] == f'Lamp.{GROUP} "a" is invalid: {problems}'


def test_what_user_code_raised_is_for_the_log_alone(lamps: Lamps) -> None:
    with pytest.raises(ApiError) as refused:
        lamps.create("v2", "broken", watts=40)
    text = "a hook failed; see the log"
    message = f"Internal error occurred: {text}"
    assert refusal(refused.value) == (500, "InternalError", message, [{"message": text}])
    for log in lamps.log:
        assert SECRET in Path(log).read_text()


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_replacement_without_the_carry_loses_nothing(lamps: Lamps, version: str) -> None:
    whole: dict[str, Object] = {
        "v1": {"power": 40, "colour": "red", "legacy": "yes"},
        "v2": {"watts": 40, "colour": "red", "notes": ["a", "b"]},
    }
    other = {"v1": "v2", "v2": "v1"}[version]
    lamps.create(version, "a", **whole[version])
    seen = lamps.get(other, "a")
    assert ANNOTATION in seen["metadata"]["annotations"]
    seen["metadata"].pop("annotations")
    lamps.replace(other, seen)
    assert lamps.get(version, "a")["spec"] == whole[version]


def test_a_carry_in_a_field_comes_back_as_well(lamps: Lamps) -> None:
    def path(version: str, name: str = "") -> str:
        return lamps.path(version, name, plural="bulbs")

    bulb = lamp("v1", "a", size=1, legacy="yes") | {"kind": "Bulb"}
    lamps.ask("POST", path("v1"), bulb)
    seen = lamps.ask("GET", path("v2", "a"))
    assert seen.pop("lost")
    seen["spec"]["size"] = 2
    lamps.ask("PUT", path("v2", "a"), seen)
    assert lamps.ask("GET", path("v1", "a"))["spec"] == {"size": 2, "legacy": "yes"}


def test_kubectl_replaces_without_the_carry_and_loses_nothing(lamps: Lamps) -> None:
    kubectl = next((each for each in KUBECTLS.values() if each), None)
    if kubectl is None:
        pytest.skip("there is no kubectl on this machine: `make kube` builds one")
    lamps.create("v2", "a", watts=40, colour="red", notes=["a"])
    given = lamp("v1", "a", power=60, colour="red")
    server: Any = lamps.server
    command = [kubectl, "--kubeconfig", server.kubeconfig, "-n", lamps.namespace]
    subprocess.run(
        [*command, "replace", "-f", "-"],
        input=json.dumps(given),
        text=True,
        check=True,
        timeout=HANG,
    )
    assert lamps.get("v2", "a")["spec"] == {"watts": 60, "colour": "red", "notes": ["a"]}


def test_what_could_not_be_carried_is_refused_before_it_is_stored(lamps: Lamps) -> None:
    with pytest.raises(ApiError) as refused:
        lamps.create("v2", "a", watts=40, notes=["x" * 300_000])
    code, reason, message, _ = refusal(refused.value)
    assert (code, reason) == (422, "Invalid")
    start = f'Lamp.{GROUP} "a" is invalid: : Invalid value: it cannot be converted to v1: '
    assert message.startswith(start)
    assert "spec.notes" in message
    with pytest.raises(ApiError, match="not found"):
        lamps.get("v2", "a")


def test_a_status_is_written_and_everything_can_be_deleted(lamps: Lamps) -> None:
    made = lamps.create("v2", "a", watts=40)
    path = lamps.path("v2", "a")
    assert lamps.ask("PUT", f"{path}/status", made | {"status": {"lit": True}})["status"] == {
        "lit": True
    }
    lamps.ask("DELETE", path)
    with pytest.raises(ApiError, match="not found"):
        lamps.get("v2", "a")
