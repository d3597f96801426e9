"""A version is retired on a cluster, by replicas that are killed in every step.

POLYVER_RETIRED sets the number of objects.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from tests.editing import edited
from tests.walks.kubectl import newest, typed
from tests.walks.replicas import NAMESPACE, Balancer, Replica, replicas
from tests.walks.support import Server, eventually, request

from polyver import apis
from polyver.apis.conversion_kind import CONVERSIONS
from polyver.apis.retirement_kind import RETIREMENTS
from polyver.apis.version_usage import VERSION_USAGES
from polyver.testing import EmbeddedServer, LocalCluster

Object = dict[str, Any]
COUNT = int(os.environ.get("POLYVER_RETIRED", "60"))
LONG = 3600.0 if COUNT > 1000 else 300.0
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OWN = "/apis/polyver.dev/v1alpha1"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
PASSES = ["RewriteObjects", "VerifyObjects", "RewriteManagedFields", "PurgePreservedFields"]


@pytest.fixture(
    scope="module", params=["embedded", pytest.param("kubernetes", marks=pytest.mark.kube)]
)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    start = EmbeddedServer(capabilities=()) if request.param == "embedded" else LocalCluster()
    with start as running:
        prepare(running)
        yield running


@pytest.fixture(scope="module")
def balancer() -> Iterator[Balancer]:
    made = Balancer()
    yield made
    made.close()


def prepare(server: Server) -> None:
    request(server, "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for kind in (CONVERSIONS, RETIREMENTS, VERSION_USAGES):
        request(server, "POST", DEFINITIONS, apis.crd_of(kind.definition()))
        plural = kind.names.plural
        eventually(partial(request, server, "GET", f"{OWN}/{plural}"))


def of(**properties: Any) -> Object:
    return {"type": "object", "properties": properties}


def definition(group: str) -> Object:
    def version(name: str, **fields: Any) -> Object:
        schema = of(spec=of(**fields), status=of(seen={"type": "integer"}))
        about = {"name": name, "served": True, "storage": name == "v1"}
        return about | {"schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}

    text = {"type": "string"}

    def parts(**fields: Any) -> Object:
        keys = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
        return {"type": "array", "items": of(name=text, **fields) | {"required": ["name"]}, **keys}

    names = {"kind": "Lamp", "plural": "lamps", "singular": "lamp", "listKind": "LampList"}
    versions = [
        version("v1", watts=text, colour=text, old=text, parts=parts(cmd=text)),
        version("v2", power={"type": "integer"}, colour=text, parts=parts(command=text)),
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"lamps.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": versions},
    }


def conversion(group: str) -> Object:
    rules: list[Object] = [
        {"cast": {"at": "spec.watts", "as": "spec.power", "from": "string", "to": "integer"}},
        {"drop": {"at": "spec.old"}},
        {
            "each": {
                "at": "spec.parts",
                "key": "name",
                "rules": [{"move": {"from": "cmd", "to": "command"}}],
            }
        },
    ]
    return {
        "apiVersion": "polyver.dev/v1alpha1",
        "kind": "Conversion",
        "metadata": {"name": f"lamps.{group}"},
        "spec": {
            "group": group,
            "kind": "Lamp",
            "versions": ["v1", "v2"],
            "edges": [{"from": "v1", "to": "v2", "rules": rules}],
        },
    }


def lamps(group: str, version: str, name: str = "") -> str:
    return f"/apis/{group}/{version}/namespaces/default/lamps" + (f"/{name}" if name else "")


def lamp(group: str, version: str, name: str, **spec: Any) -> Object:
    about = {"apiVersion": f"{group}/{version}", "kind": "Lamp", "metadata": {"name": name}}
    return about | {"spec": spec}


def retirement(group: str, **spec: Any) -> Object:
    about: Object = {"apiVersion": "polyver.dev/v1alpha1", "kind": "Retirement"}
    spec = {"attempt": 1, "ignoreClients": True, **spec}
    about["spec"] = {"definition": f"lamps.{group}", "version": "v1", **spec}
    return {**about, "metadata": {"name": f"lamps.{group}-v1"}}


def serving(server: Server, group: str) -> bool:
    found = request(server, "GET", f"{OWN}/conversions/lamps.{group}")
    conditions = found.get("status", {}).get("conditions") or []
    return [each["status"] for each in conditions] == ["True"]


def define(server: Server, group: str) -> None:
    request(server, "POST", DEFINITIONS, definition(group))
    request(server, "POST", f"{OWN}/conversions", conversion(group))
    eventually(lambda: serving(server, group))

    def converts() -> bool:
        request(server, "POST", lamps(group, "v1"), lamp(group, "v1", "probe", watts="1"))
        found = request(server, "GET", lamps(group, "v2", "probe"))
        request(server, "DELETE", lamps(group, "v2", "probe"))
        return bool(found["spec"] == {"power": 1})

    eventually(converts)


def fill(server: Server, group: str, count: int) -> None:
    """Create objects in v1: the first ones with a value that v2 cannot express."""

    def create(number: int) -> None:
        spec: Object = {"watts": str(number), "colour": f"c{number}", "old": "x"}
        spec["parts"] = [{"name": "one", "cmd": "run"}, {"name": "two"}]
        made = lamp(group, "v1", f"lamp-{number:05}", **spec)
        request(server, "POST", lamps(group, "v1"), made)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(create, range(count)))


def store_in(server: Server, group: str, version: str) -> None:
    def change(crd: Object) -> None:
        for each in crd["spec"]["versions"]:
            each["storage"] = each["name"] == version

    edited(partial(request, server), f"{DEFINITIONS}/lamps.{group}", change)


def everything(server: Server, group: str, version: str = "v2") -> dict[str, Any]:
    """The spec and the status of all objects by name."""
    found: dict[str, Any] = {}
    more = ""
    while True:
        at = f"{lamps(group, version)}?limit=500" + (f"&continue={more}" if more else "")
        page = request(server, "GET", at)
        for each in page["items"]:
            found[each["metadata"]["name"]] = (each["spec"], each.get("status"))
        more = page["metadata"].get("continue", "")
        if not more:
            return found


def state(server: Server, group: str) -> Object:
    found = request(server, "GET", f"{OWN}/retirements/lamps.{group}-v1")
    status: Object = found.get("status") or {}
    return status


def applied(server: Server, obj: Object, *options: str, code: int = 0) -> str:
    command = ("apply", "--server-side", "--field-manager=team", "-f", "-", "-o", "json")
    return typed(server.kubeconfig, *command, *options, given=obj, code=code)


class Killer:
    """Kills the replica in each step once, and starts another one."""

    def __init__(self, server: Server, balancer: Balancer) -> None:
        self._server = server
        self._balancer = balancer
        self.killed: list[str] = []
        self.running = Replica(server, balancer)

    def follow(self, group: str, *, steps: set[str]) -> Object:
        def ended() -> Object | None:
            status = state(self._server, group)
            step = status.get("step")
            if step in steps and step not in self.killed and status["state"] == "Running":
                self.killed.append(step)
                self._again()
            final = status.get("state") in ("Completed", "Aborted", "Blocked")
            return status if final else None

        return eventually(ended, patience=LONG, every=0.001)

    def _again(self) -> None:
        self.running.process.kill()
        self.running.end(signal.SIGKILL)
        # The next replica does not wait until the lease has expired.
        request(self._server, "DELETE", f"{LEASES}/polyver")
        self.running = Replica(self._server, self._balancer)


@pytest.mark.skipif(newest() is None, reason="there is no kubectl: `make kube` builds one")
def test_kills_in_every_step_lose_nothing_and_the_applier_goes_on(
    server: Server, balancer: Balancer
) -> None:
    group = "killed.lamps.dev"
    killer = Killer(server, balancer)
    try:
        define(server, group)
        fill(server, group, COUNT)
        parts = [{"name": "one", "cmd": "go"}, {"name": "two", "cmd": "stop"}]
        mine: Object = {"watts": "7", "colour": "red", "parts": parts}
        applied(server, lamp(group, "v1", "applied", **mine))
        update = partial(edited, partial(request, server))
        update(lamps(group, "v1", "lamp-00000"), lambda obj: obj["spec"].update(colour="blue"))
        store_in(server, group, "v2")
        request(server, "POST", lamps(group, "v2"), lamp(group, "v2", "new", power=1))
        before = everything(server, group)
        request(server, "POST", f"{OWN}/retirements", retirement(group))
        steps = {"RewriteObjects", "RewriteManagedFields"}
        if isinstance(server, LocalCluster):
            steps |= {"StopServing", *PASSES, "TrimStoredVersions", "DropVersion"}
        status = killer.follow(group, steps=steps)
        assert (status["state"], status.get("blockers")) == ("Completed", None)
        assert killer.killed
        if COUNT > 1000:
            assert {*PASSES} <= {*killer.killed}
        print(f"killed in {killer.killed}: {json.dumps(status['passes'])}")
        assert everything(server, group) == before
        crd = request(server, "GET", f"{DEFINITIONS}/lamps.{group}")
        assert [each["name"] for each in crd["spec"]["versions"]] == ["v2"]
        assert crd["status"]["storedVersions"] == ["v2"]
        found = request(server, "GET", f"{OWN}/conversions/lamps.{group}")["spec"]
        assert (found["versions"], found.get("edges", [])) == (["v2"], [])
        # The applier and the other client go on in v2: no conflict, and a field that the
        # manifest no longer has is removed.
        mine = {"power": 8, "parts": [{"name": "one", "command": "go"}]}
        made = json.loads(applied(server, lamp(group, "v2", "applied", **mine)))
        assert made["spec"] == mine
        update(lamps(group, "v2", "lamp-00000"), lambda obj: obj["spec"].update(colour="green"))
        assert request(server, "GET", lamps(group, "v2", "lamp-00000"))["spec"]["colour"] == "green"
    finally:
        killer.running.end()


def test_an_abort_half_way_serves_the_version_again(server: Server, balancer: Balancer) -> None:
    group = "aborted.lamps.dev"
    with replicas(server, balancer, 1):
        define(server, group)
        fill(server, group, 10)
        store_in(server, group, "v2")
        before = everything(server, group, "v1")
        at = f"{OWN}/retirements"
        request(server, "POST", at, retirement(group))
        eventually(lambda: state(server, group).get("stopped"))
        name = f"{at}/lamps.{group}-v1"
        edited(partial(request, server), name, lambda obj: obj["spec"].update(aborted=True))
        final = eventually(lambda: s if (s := state(server, group)).get("state") in ENDED else None)
        if final["state"] == "Completed":
            pytest.skip("the version was dropped before the abort")
        eventually(lambda: request(server, "GET", lamps(group, "v1")))
        now = everything(server, group, "v1")
        assert {n: s["watts"] for n, (s, _) in now.items()} == {
            n: s["watts"] for n, (s, _) in before.items()
        }


ENDED = ("Completed", "Aborted")
