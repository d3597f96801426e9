"""`polyver run` on an API server that knows nothing of polyver: our own without, and a real one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.deadlines import HANG
from tests.editing import edited
from tests.walks.replicas import NAMESPACE, ROOT, Balancer, Replica, replicas
from tests.walks.support import Server, eventually, request

from polyver import apis
from polyver.apis.conversion import ANNOTATION
from polyver.apis.conversion_kind import CONVERSIONS
from polyver.kube.objects.status import ApiError
from polyver.testing import EmbeddedServer, LocalCluster

Object = dict[str, Any]
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
OWN = "/apis/polyver.dev/v1alpha1/conversions"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/polyver"


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
    """The one address of all replicas, whichever there are."""
    made = Balancer()
    yield made
    made.close()


def prepare(server: Server) -> None:
    request(server, "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    request(server, "POST", DEFINITIONS, apis.crd_of(CONVERSIONS.definition()))
    eventually(lambda: request(server, "GET", OWN))


def definition(group: str) -> Object:
    def version(name: str, **fields: str) -> Object:
        inside = {each: {"type": kind} for each, kind in fields.items()}
        spec = {"type": "object", "properties": inside}
        schema = {"type": "object", "properties": {"spec": spec}}
        about = {"name": name, "served": True, "storage": name == "v2"}
        return about | {"schema": {"openAPIV3Schema": schema}}

    names = {"kind": "Lamp", "plural": "lamps", "singular": "lamp", "listKind": "LampList"}
    old = version("v1", watts="string", colour="string")
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"lamps.{group}"},
        "spec": {
            "group": group,
            "names": names,
            "scope": "Namespaced",
            "versions": [old, version("v2", power="integer")],
        },
    }


def conversion(group: str, to: str = "spec.power") -> Object:
    rule = {"at": "spec.watts", "as": to, "from": "string", "to": "integer"}
    return {
        "apiVersion": "polyver.dev/v1alpha1",
        "kind": "Conversion",
        "metadata": {"name": f"lamps.{group}"},
        "spec": {
            "group": group,
            "kind": "Lamp",
            "versions": ["v1", "v2"],
            "edges": [{"from": "v1", "to": "v2", "rules": [{"cast": rule}]}],
        },
    }


def lamps(group: str, version: str, name: str = "") -> str:
    return f"/apis/{group}/{version}/namespaces/default/lamps" + (f"/{name}" if name else "")


def lamp(group: str, version: str, name: str, **spec: Any) -> Object:
    about = {"apiVersion": f"{group}/{version}", "kind": "Lamp", "metadata": {"name": name}}
    return about | {"spec": spec}


def define(server: Server, group: str) -> None:
    request(server, "POST", DEFINITIONS, definition(group))
    request(server, "POST", OWN, conversion(group))
    eventually(lambda: serving(server, group)["status"] == "True")
    eventually(lambda: converts(server, group))


def converts(server: Server, group: str) -> bool:
    """Whether the API server asks by now; it hears of a definition after that was written."""
    request(server, "POST", lamps(group, "v1"), lamp(group, "v1", "probe", watts="1"))
    found = request(server, "GET", lamps(group, "v2", "probe"))
    request(server, "DELETE", lamps(group, "v2", "probe"))
    return bool(found["spec"] == {"power": 1})


def serving(server: Server, group: str) -> Object:
    found = request(server, "GET", f"{OWN}/lamps.{group}")
    conditions = found.get("status", {}).get("conditions") or [{"status": ""}]
    return dict(conditions[0])


def holder(server: Server) -> str:
    return str((request(server, "GET", LEASE) or {"spec": {}})["spec"].get("holderIdentity", ""))


def registered(server: Server, sort: str) -> list[str]:
    found = request(server, "GET", f"{ADMISSION}/{sort}webhookconfigurations/polyver") or {}
    return [each["name"] for each in found.get("webhooks") or []]


def test_a_conversion_is_served_admitted_and_withdrawn(server: Server, balancer: Balancer) -> None:
    group = "one.lamps.dev"
    with replicas(server, balancer, 2):
        define(server, group)
        eventually(lambda: f"carry.lamps.{group}" in registered(server, "mutating"))
        request(server, "POST", lamps(group, "v1"), lamp(group, "v1", "a", watts="60", colour="x"))
        found = request(server, "GET", lamps(group, "v2", "a"))
        assert found["spec"] == {"power": 60}
        found["spec"]["power"] = 75
        del found["metadata"]["annotations"][ANNOTATION]
        request(server, "PUT", lamps(group, "v2", "a"), found)
        last = request(server, "GET", lamps(group, "v1", "a"))
        assert last["spec"] == {"watts": "75", "colour": "x"}
        with pytest.raises(ApiError, match=f"lamps.{group} serves or stores v1, v2; without"):
            request(server, "DELETE", f"{OWN}/lamps.{group}")
        serve_one(server, group)
        request(server, "DELETE", f"{OWN}/lamps.{group}")
        eventually(lambda: strategy(server, group) == "None")
        eventually(lambda: registered(server, "mutating") == [])


def serve_one(server: Server, group: str) -> None:
    """Have a kind serve and store one version alone."""

    def done() -> bool:
        crd = request(server, "GET", f"{DEFINITIONS}/lamps.{group}")
        for each in crd["spec"]["versions"]:
            each["served"] = each["storage"]
        return refusal(server, "PUT", f"{DEFINITIONS}/lamps.{group}", crd) is None

    eventually(done)


def test_a_deletion_that_came_past_admission_leaves_the_kind_working(
    server: Server, balancer: Balancer
) -> None:
    group, name = "six.lamps.dev", "lamps.six.lamps.dev"
    with replicas(server, balancer, 2) as running:
        define(server, group)
        request(server, "POST", lamps(group, "v1"), lamp(group, "v1", "a", watts="60", colour="x"))
        past_admission(server, "PUT", f"{OWN}/{name}", versions=["v2"], edges=[])
        eventually(lambda: serving(server, group)["status"] == "False")
        assert works(server, group)
        past_admission(server, "DELETE", f"{OWN}/{name}")
        eventually(lambda: terminating(server, name) == "StillNeeded")
        assert request(server, "GET", f"{OWN}/{name}")["metadata"]["deletionTimestamp"]
        assert works(server, group)
        # Nor does taking the finalizer away lose anything.
        eventually(lambda: is_freed(server, f"{OWN}/{name}"))
        eventually(lambda: request(server, "GET", f"{OWN}/{name}") is None)
        eventually(
            lambda: any("was deleted; this process uses it" in t for r in running for t in r.said)
        )
        assert works(server, group)
        assert strategy(server, group) == "Webhook"
        request(server, "POST", OWN, conversion(group))
        eventually(lambda: serving(server, group)["status"] == "True")
        assert works(server, group)
        request(server, "DELETE", f"{DEFINITIONS}/{name}")
        request(server, "DELETE", f"{OWN}/{name}")
        for path in (f"{DEFINITIONS}/{name}", f"{OWN}/{name}"):
            eventually(partial(lambda at: request(server, "GET", at) is None, path))


def past_admission(server: Server, method: str, path: str, **spec: Any) -> None:
    """Change a Conversion while no webhook is registered; a controller brings it back at once."""

    def done() -> bool:
        found = request(server, "GET", path)
        found["spec"] |= spec
        request(server, "DELETE", f"{ADMISSION}/validatingwebhookconfigurations/polyver")
        return refusal(server, method, path, found if spec else None) is None

    eventually(done)


def refusal(server: Server, method: str, path: str, body: Object | None = None) -> str | None:
    try:
        request(server, method, path, body)
    except ApiError as error:
        return error.message
    return None


def is_freed(server: Server, path: str) -> bool:
    """Try to remove the finalizers of an object; return True if the server accepts that."""
    found = request(server, "GET", path)
    found["metadata"]["finalizers"] = []
    return refusal(server, "PUT", path, found) is None


def terminating(server: Server, name: str) -> str:
    found = request(server, "GET", f"{OWN}/{name}").get("status", {}).get("conditions") or ()
    return {each["type"]: str(each["reason"]) for each in found}.get("Terminating", "")


def works(server: Server, group: str) -> bool:
    """Update a lamp in v2, and return True if v1 still has the spec that was written."""
    found = request(server, "GET", lamps(group, "v2", "a"))
    found["metadata"]["labels"] = {"at": found["metadata"]["resourceVersion"]}
    request(server, "PUT", lamps(group, "v2", "a"), found)
    spec = request(server, "GET", lamps(group, "v1", "a"))["spec"]
    return bool(spec == {"watts": "60", "colour": "x"})


def strategy(server: Server, group: str) -> str:
    crd = request(server, "GET", f"{DEFINITIONS}/lamps.{group}")
    return str(crd["spec"]["conversion"]["strategy"])


def test_a_conversion_that_makes_no_sense_is_refused_at_once(
    server: Server, balancer: Balancer
) -> None:
    group = "two.lamps.dev"
    request(server, "POST", DEFINITIONS, definition(group))
    with replicas(server, balancer, 1):
        eventually(lambda: registered(server, "validating"))
        with pytest.raises(ApiError, match="v2 has no such field"):
            request(server, "POST", OWN, conversion(group, to="spec.powr"))


def test_with_the_webhook_bypassed_the_controllers_refuse(
    server: Server, balancer: Balancer
) -> None:
    group = "three.lamps.dev"
    request(server, "POST", DEFINITIONS, definition(group))
    request(server, "DELETE", f"{ADMISSION}/validatingwebhookconfigurations/polyver")
    wrong = conversion(group)
    wrong["spec"]["kind"] = "Tree"
    request(server, "POST", OWN, wrong)
    with replicas(server, balancer, 1):
        eventually(lambda: serving(server, group)["status"] == "False")
        said = serving(server, group)
        assert (said["reason"], strategy(server, group)) == ("Refused", "None")
        assert "defines Lamp, not Tree" in said["message"]
        eventually(lambda: registered(server, "validating"))
        request(server, "DELETE", f"{OWN}/lamps.{group}")


def test_what_others_change_is_put_right(server: Server, balancer: Balancer) -> None:
    group = "four.lamps.dev"
    with replicas(server, balancer, 1):
        define(server, group)
        none = {"conversion": {"strategy": "None"}}
        path = f"{DEFINITIONS}/lamps.{group}"
        edited(partial(request, server), path, lambda crd: crd["spec"].update(none))
        eventually(lambda: strategy(server, group) == "Webhook")
        eventually(lambda: registered(server, "mutating"))
        request(server, "DELETE", f"{ADMISSION}/mutatingwebhookconfigurations/polyver")
        eventually(lambda: f"carry.lamps.{group}" in registered(server, "mutating"))
        serve_one(server, group)
        request(server, "DELETE", f"{OWN}/lamps.{group}")
        eventually(lambda: strategy(server, group) == "None")


KINDS = """
from typing import Any

from polyver import apis

toy = apis.Kind("Toy", group="toys.dev")


@toy.version("v1")
class Toy(apis.Fields):
    class Spec(apis.Fields):
        size: int

    metadata: dict[str, Any]
    spec: Spec


@toy.reconcile
def play(obj: Toy) -> apis.Outcome:
    about = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": obj.metadata["name"]}}
    return apis.Outcome(objects=[about | {"data": {"size": str(obj.spec.size)}}])
"""
TOYS = "/apis/toys.dev/v1/namespaces/default/toys"
MAPS = "/api/v1/namespaces/default/configmaps"


def toy(name: str, size: int) -> Object:
    about = {"apiVersion": "toys.dev/v1", "kind": "Toy", "metadata": {"name": name}}
    return about | {"spec": {"size": size}}


# A lease that nobody gave back takes its time.
@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGKILL, marks=pytest.mark.kube), signal.SIGTERM]
)
def test_another_replica_takes_over_and_does_nothing_twice(
    server: Server, balancer: Balancer, tmp_path: Path, number: signal.Signals
) -> None:
    module = tmp_path / "toykinds.py"
    module.write_text(KINDS)
    if request(server, "GET", TOYS) is None:
        request(server, "POST", DEFINITIONS, toy_definition())
        eventually(lambda: request(server, "GET", TOYS))
    names = [f"{number.name.lower()}-{each}" for each in range(6)]
    with replicas(server, balancer, 2, "--kinds", str(module)) as running:
        eventually(lambda: holder(server) in {each.identity for each in running})
        for name in names[:3]:
            request(server, "POST", TOYS, toy(name, 1))
        before = [eventually(partial(made, server, name)) for name in names[:3]]
        leader, other = ordered(running, holder(server))
        changes = request(server, "GET", LEASE)["spec"]["leaseTransitions"]
        leader.end(number)
        for name in names[3:]:
            request(server, "POST", TOYS, toy(name, 2))
        eventually(lambda: holder(server) == other.identity, patience=HANG)
        assert all(eventually(partial(made, server, name)) for name in names[3:])
        assert [made(server, name) for name in names[:3]] == before
        assert request(server, "GET", LEASE)["spec"]["leaseTransitions"] == changes + 1
    for name in names:
        request(server, "DELETE", f"{TOYS}/{name}")


def toy_definition() -> Object:
    scope: Object = {}
    exec(compile(KINDS, "toykinds", "exec"), scope)
    return apis.crd_of(scope["toy"].definition())


def ordered(running: list[Replica], leader: str) -> tuple[Replica, Replica]:
    [first] = [each for each in running if each.identity == leader]
    [second] = [each for each in running if each.identity != leader]
    return first, second


def made(server: Server, name: str) -> Object | None:
    found: Object | None = request(server, "GET", f"{MAPS}/{name}")
    return found


def test_a_cluster_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    config = tmp_path / "config"
    cluster = {"name": "a", "cluster": {"server": "https://127.0.0.1:9"}}
    context = {"name": "a", "context": {"cluster": "a", "user": "a"}}
    config.write_text(
        json.dumps(
            {
                "clusters": [cluster],
                "contexts": [context],
                "users": [{"name": "a", "user": {}}],
                "current-context": "a",
            }
        )
    )
    ran = subprocess.run(
        [sys.executable, "-m", "polyver", "run", "--kubeconfig", str(config), "--port", "0"],
        capture_output=True,
        check=False,
        text=True,
        cwd=ROOT,
        timeout=HANG,
    )
    assert ran.returncode == 3
    assert "https://127.0.0.1:9" in ran.stderr
    assert "Traceback" not in ran.stderr
