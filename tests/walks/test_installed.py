"""`polyver run` on a real API server, with the rights that `polyver install` gives it.

A walk through all that it does is recorded by the server. The rights are enough if nothing that
was needed is refused; and each is needed if the server, once it is taken away, refuses something
that the walk asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from tests.deadlines import HANG
from tests.definitions.samples import SYSTEM, definition, using
from tests.editing import edited
from tests.rights import APISERVICES, Asked, Grant, grants
from tests.walks.installed import CAPABILITIES, Installed, Process, installed
from tests.walks.installed_kinds import GROUP, KITES
from tests.walks.support import eventually

from polyver.app.capabilities import Choices
from polyver.app.installing import Installation
from polyver.capability.capability import Surroundings
from polyver.definitions.resolution import KEPT
from polyver.functions.gates import RECORD
from polyver.rollouts.policies import KEPT as MOST_ROLLOUTS

pytestmark = pytest.mark.kube

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HOOKS = "/apis/admissionregistration.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
OURS = "/api/v1/namespaces/polyver-system"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/polyver-system/leases/polyver"
ROLES = {
    "cluster": f"{RBAC}/clusterroles/polyver",
    "namespace": f"{RBAC}/namespaces/polyver-system/roles/polyver",
}
CONVERSIONS = "/apis/polyver.dev/v1alpha1/conversions"
RETIREMENTS = "/apis/polyver.dev/v1alpha1/retirements"
KITE = f"/apis/{GROUP}/v2/namespaces/default/kites"
BOATS = "boats.example.com"
ACTIONS = "/apis/cr.kanister.io/v1alpha1/namespaces/default"
OAM = "/apis/core.oam.dev"
APPLICATIONS = f"{OAM}/v1beta1/namespaces/default/applications"
ROLLING = f"/apis/polyver.dev/v1alpha1/namespaces/{SYSTEM}"
ROLLING_FUNCTIONS = "/apis/polyver.dev/v1alpha1/namespaces/polyver-system"
GATES = f"{OURS}/configmaps/{RECORD}"
"""The ConfigMap with the gates of function versions."""
DEFINITIONS = {
    kind: f"{OAM}/v2beta1/namespaces/{SYSTEM}/{kind.lower()}s"
    for kind in (f"{sort}Definition" for sort in ("Component", "Trait", "Policy", "WorkflowStep"))
}


# The walk.


def start(on: Installed) -> None:
    """Certificates are made, the lease is taken, and API servers are told whom to ask."""
    eventually(lambda: on.request("GET", f"{OURS}/secrets/polyver-webhook"))
    eventually(lambda: on.request("GET", LEASE))
    for each in ("mutating", "validating"):
        path = f"{HOOKS}/{each}webhookconfigurations/polyver"
        eventually(partial(on.request, "GET", path))


def convert(on: Installed) -> None:
    """A Conversion is served, written into its definition, and told so."""
    apply_boats(on)
    eventually(lambda: serving(on) == "True")
    boat = {"apiVersion": f"{BOATS}/v1", "kind": "Boat", "metadata": {"name": "a"}, "oars": 2}
    eventually(lambda: on.request("POST", f"/apis/{BOATS}/v1/namespaces/default/boats", boat))
    # The API server hears of what its definition says after that was written.
    path = f"/apis/{BOATS}/v2/namespaces/default/boats/a"
    eventually(lambda: on.request("GET", path).get("paddles") == 2)


def reconcile(on: Installed) -> None:
    """A kind in Python is converted, filled in, reconciled, and its status told."""
    content = {"metadata": {"name": "red"}, "spec": {"length": 3}}
    kite = {"apiVersion": f"{GROUP}/v1", "kind": "Kite", **content}
    eventually(lambda: on.request("POST", KITE.replace("v2", "v1"), kite))
    eventually(lambda: on.request("GET", f"{KITE}/red").get("status", {}).get("flies"))
    tail = on.request("GET", "/api/v1/namespaces/default/configmaps/tail")
    assert tail["data"] == {"metres": "3"}


def act(on: Installed) -> None:
    """An action runs, tells by an Event that a version is not there, and is let go."""
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}}
    arguments = {"operation": "create", "namespace": "default", "spec": wanted}
    phases = [{"name": "make", "func": "KubeOps", "args": arguments}]
    make(on, f"{ACTIONS}/blueprints", "Blueprint", "bp", actions={"go": {"phases": phases}})
    spec = {"actions": [{"name": "go", "blueprint": "bp", "preferredVersion": "v0.9.0"}]}
    make(on, f"{ACTIONS}/actionsets", "ActionSet", "as", spec=spec)

    def is_over() -> bool:
        found = on.request("GET", f"{ACTIONS}/actionsets/as")
        state = found.get("status", {}).get("state")
        assert state != "failed", found["status"]
        return state == "complete" and not found["metadata"].get("finalizers")

    eventually(is_over)
    assert on.request("GET", "/api/v1/namespaces/default/configmaps/made")


def publish(on: Installed) -> None:
    """Definitions are published and used, one loses a version, and all of it goes."""
    for kind, path in DEFINITIONS.items():
        spec = definition(kind.lower(), "1.0.0", "1.1.0", kind=kind)["spec"]
        make(on, path, kind, kind.lower(), spec=spec)
        eventually(partial(told, on, f"{path}/{kind.lower()}", "versions"))
    # What an application will use counts as used, for as long as it waits for a definition.
    missing = {"name": "missing", "type": "missing@1", "properties": {}}
    waits = {**using(), "components": [missing]}
    make(on, APPLICATIONS, "Application", "waits", spec=waits)
    for kind in ("PolicyDefinition", "WorkflowStepDefinition"):
        eventually(partial(is_used, on, f"{DEFINITIONS[kind]}/{kind.lower()}"))
    remove(on, f"{APPLICATIONS}/waits")
    make(on, APPLICATIONS, "Application", "shop", spec=using())
    for number in range(1, KEPT + 2):
        eventually(partial(has_revision, on, number))
        change(on, f"{APPLICATIONS}/shop", using(number=number))
    lose_status(on)
    # Policies and workflows are not executed, and only what runs counts as a user.
    change(on, f"{APPLICATIONS}/shop", {"components": using()["components"]})
    eventually(lambda: told(on, f"{APPLICATIONS}/shop", "status") == "running")
    component, path = next(iter(DEFINITIONS.items()))
    entries = definition("", "1.1.0")["spec"]
    change(on, f"{path}/{component.lower()}", entries)
    records = f"{OAM}/v1beta1/namespaces/{SYSTEM}/definitionrevisions"
    gone(on, f"{records}/{component.lower()}-v1.0.0")
    remove(on, f"{APPLICATIONS}/shop")
    for kind, path in DEFINITIONS.items():
        remove(on, f"{path}/{kind.lower()}")


def roll_out(on: Installed) -> None:
    """A policy brings a new version to an application in a step, and holds one that fails."""
    path = DEFINITIONS["ComponentDefinition"]
    make(on, path, "ComponentDefinition", "rolled", spec=definition("", "1.0.0")["spec"])
    component = {"name": "rolling", "type": "rolled@1", "properties": {}}
    make(on, APPLICATIONS, "Application", "rolling", spec={"components": [component]})
    eventually(lambda: version_of(on) == "1.0.0")
    target = {"group": "core.oam.dev", "kind": "ComponentDefinition", "name": "rolled"}
    rules = {"targets": [target], "steps": [{"share": "100%"}]}
    make(on, f"{ROLLING}/rolloutpolicies", "RolloutPolicy", "careful", spec=rules)
    eventually(lambda: told(on, f"{ROLLING}/rolloutpolicies/careful", "conditions"))
    change(on, f"{path}/rolled", definition("", "1.0.0", "1.1.0")["spec"])
    eventually(lambda: told(on, f"{ROLLING}/rollouts/rolled-1.1.0", "state") == "Completed")
    assert version_of(on) == "1.1.0"
    failing = definition("", "1.0.0", "1.1.0", "1.2.0")["spec"]
    failing["versions"][-1]["schematic"]["gotemplate"]["template"] = '{{ fail "broken" }}'
    change(on, f"{path}/rolled", failing)
    eventually(lambda: told(on, f"{ROLLING}/rollouts/rolled-1.2.0", "state") == "Held")
    assert version_of(on) == "1.1.0"
    preflight: Any = told(on, f"{ROLLING}/rollouts/rolled-1.2.0", "preflight")
    stored = on.request("GET", f"{ROLLING}/rolloutreports/{preflight['report']}")["preflight"]
    assert [each["names"] for each in stored["failures"]] == [["default/rolling"]]
    forget_the_first(on, target)
    remove(on, f"{APPLICATIONS}/rolling")
    remove(on, f"{path}/rolled")


def forget_the_first(on: Installed, target: dict[str, str]) -> None:
    """Of many finished rollouts, the oldest is deleted."""
    asked = {"target": target, "to": "1.1.0", "policyRef": {"name": "careful"}, "aborted": True}
    for number in range(MOST_ROLLOUTS):
        make(on, f"{ROLLING}/rollouts", "Rollout", f"aborted-{number}", spec=asked)
    gone(on, f"{ROLLING}/rollouts/rolled-1.1.0")


def roll_out_functions(on: Installed) -> None:
    """The first policy for functions creates their record, and the next one changes it."""
    for function in ("KubeExec", "KubeTask"):
        target = {"group": "polyver.dev", "kind": "BlueprintFunction", "name": function}
        rules = {"targets": [target], "steps": [{"share": "100%"}]}
        path, name = f"{ROLLING_FUNCTIONS}/rolloutpolicies", function.lower()
        make(on, path, "RolloutPolicy", name, spec=rules)
        eventually(partial(told, on, f"{path}/{name}", "conditions"))
        eventually(partial(is_recorded, on, function))


def is_recorded(on: Installed, function: str) -> bool:
    return function in str((on.request("GET", GATES) or {}).get("data"))


def version_of(on: Installed) -> str:
    found: Any = told(on, f"{APPLICATIONS}/rolling", "resolutions") or [{}]
    return str(found[0].get("version"))


def lead(on: Installed) -> None:
    """The lease is renewed."""
    before = on.request("GET", LEASE)["spec"]["renewTime"]
    eventually(lambda: on.request("GET", LEASE)["spec"]["renewTime"] != before)


def repair(on: Installed) -> None:
    """What somebody deletes or changes comes back."""
    path = f"{HOOKS}/validatingwebhookconfigurations/polyver"
    uid = on.request("GET", path)["metadata"]["uid"]
    on.request("DELETE", path)
    eventually(
        lambda: (on.request("GET", path) or {"metadata": {"uid": uid}})["metadata"]["uid"] != uid
    )
    edited(on.request, f"{CRDS}/boats.{BOATS}", _lose_bundle)
    eventually(lambda: bundle(on))


def _lose_bundle(crd: Any) -> None:
    del crd["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"]


def retire(on: Installed) -> None:
    """A version of a kind is removed, in which objects were stored."""
    edited(on.request, f"{CRDS}/boats.{BOATS}", _store_in_v2)
    spec = {"definition": f"boats.{BOATS}", "version": "v1", "ignoreClients": True}
    make(on, RETIREMENTS, "Retirement", f"boats.{BOATS}-v1", spec=spec)
    at = f"{RETIREMENTS}/boats.{BOATS}-v1"
    eventually(lambda: told(on, at, "state") == "Completed")
    assert told(on, at, "blockers") is None


def _store_in_v2(crd: Any) -> None:
    for each in crd["spec"]["versions"]:
        each["storage"] = each["name"] == "v2"


STEPS: tuple[Callable[[Installed], None], ...] = (
    start,
    convert,
    reconcile,
    act,
    publish,
    roll_out,
    roll_out_functions,
    lead,
    repair,
    retire,
)


def make(on: Installed, path: str, kind: str, name: str, **content: Any) -> None:
    """Create something, once the server knows its kind and whom to ask."""
    version = "/".join(path.split("/")[2:4])
    obj = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **content}
    eventually(lambda: on.request("POST", path, obj))


def change(
    on: Installed, path: str, content: object, *, field: str = "spec", part: str = ""
) -> None:
    """Replace a spec, or something else."""
    edited(on.request, path + part, lambda found: found.update({field: content}))


def is_used(on: Installed, path: str) -> bool:
    """Whether a definition has a finalizer, because an application uses it."""
    return bool(on.request("GET", path)["metadata"].get("finalizers"))


def lose_status(on: Installed) -> None:
    """An application that comes back from a backup gets its versions from its newest revision."""
    change(on, f"{APPLICATIONS}/shop", {}, field="status", part="/status")
    eventually(partial(told, on, f"{APPLICATIONS}/shop", "resolutions"))


def told(on: Installed, path: str, field: str) -> object:
    return (on.request("GET", path) or {}).get("status", {}).get(field)


def has_revision(on: Installed, number: int) -> bool:
    newest: Any = told(on, f"{APPLICATIONS}/shop", "latestRevision") or {}
    return bool(newest.get("revision") == number)


def remove(on: Installed, path: str) -> None:
    on.request("DELETE", path)
    gone(on, path)


def gone(on: Installed, path: str) -> None:
    eventually(lambda: on.request("GET", path) is None)


def apply_boats(on: Installed) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    whole = {"openAPIV3Schema": schema}
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": whole}
        for name in ("v1", "v2")
    ]
    names = {"kind": "Boat", "plural": "boats"}
    spec = {"group": BOATS, "names": names, "scope": "Namespaced", "versions": versions}
    about = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    on.request("POST", CRDS, {**about, "metadata": {"name": f"boats.{BOATS}"}, "spec": spec})
    rules = [{"move": {"from": "oars", "to": "paddles"}}]
    edges = [{"from": "v1", "to": "v2", "rules": rules}]
    said = {"group": BOATS, "kind": "Boat", "versions": ["v1", "v2"], "edges": edges}
    about = {"apiVersion": "polyver.dev/v1alpha1", "kind": "Conversion"}
    content = {**about, "metadata": {"name": f"boats.{BOATS}"}, "spec": said}
    on.request("POST", CONVERSIONS, content)


def remove_boats(on: Installed) -> None:
    on.request("DELETE", f"{CRDS}/boats.{BOATS}")
    gone(on, f"{CRDS}/boats.{BOATS}")
    on.request("DELETE", f"{CONVERSIONS}/boats.{BOATS}")
    gone(on, f"{CONVERSIONS}/boats.{BOATS}")


def condition(on: Installed) -> dict[str, Any]:
    found = on.request("GET", f"{CONVERSIONS}/boats.{BOATS}") or {}
    return next(iter(found.get("status", {}).get("conditions") or []), {})


def serving(on: Installed) -> str:
    return str(condition(on).get("status"))


def bundle(on: Installed) -> str:
    said = on.request("GET", f"{CRDS}/boats.{BOATS}")["spec"]["conversion"]
    return str(said.get("webhook", {}).get("clientConfig", {}).get("caBundle") or "")


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """A cluster on which the walk was taken, and every request of it is known."""
    with installed(tmp_path_factory.mktemp("installed")) as on:
        on.install()
        with on.running() as replica:
            replica.says("polyver runs on")
            for step in STEPS:
                step(on)
                on.note(step.__name__)
            remove_boats(on)
            on.request("DELETE", f"{KITE}/red")
        on.note("end")
        yield on


# Each right.


CHOICES = Choices(frozenset(CAPABILITIES.split(",")))
CONTRIBUTIONS = CHOICES.contributions(Surroundings(namespace="polyver-system"))
GRANTS = [
    each
    for each in grants(Installation("a:1", kinds=(KITES,), contributions=CONTRIBUTIONS))
    # The role of the walk, which its action needs, gives this right, too.
    if (each.verb, each.right.resource) != ("create", "configmaps")
]


@contextmanager
def without(on: Installed, grant: Grant) -> Iterator[None]:
    """The role with one verb less."""
    role = on.request("GET", ROLES[grant.role])
    wanted = grant.right.rule
    rules = []
    for rule in role["rules"]:
        same = all(rule.get(key) == value for key, value in wanted.items())
        verbs = [verb for verb in rule["verbs"] if not (same and verb == grant.verb)]
        rules += [{**rule, "verbs": verbs}] if verbs else []
    assert rules != role["rules"], "there is no such rule"
    on.request("PUT", ROLES[grant.role], {**role, "rules": rules})
    try:
        yield
    finally:
        changed = on.request("GET", ROLES[grant.role])
        on.request("PUT", ROLES[grant.role], {**changed, "rules": role["rules"]})


def test_the_rights_are_enough(walked: Installed) -> None:
    assert [asked for asked, step in walked.forbidden.items() if step != "lacking"] == [APISERVICES]
    assert {*walked.asked.values()} >= {step.__name__ for step in STEPS[:5]}


@pytest.mark.parametrize("grant", GRANTS, ids=str)
def test_without_one_right_a_step_of_the_walk_is_refused(walked: Installed, grant: Grant) -> None:
    needing = [asked for asked in walked.asked if grant.covers(asked)]
    assert needing, f"no step of the walk needs to {grant}: take it away"
    for asked in needing:
        eventually(partial(walked.may, asked))
    with without(walked, grant):
        eventually(lambda: any(not walked.may(asked) for asked in needing))


@pytest.mark.parametrize(
    "asked",
    [
        Asked("get", "", "secrets", "polyver-system", "other"),
        Asked("list", "", "secrets", "polyver-system"),
        Asked("get", "", "secrets", "kube-system", "polyver-webhook"),
        Asked("create", "", "pods", "polyver-system"),
        Asked("create", "", "serviceaccounts/token", "polyver-system", "polyver"),
        Asked("delete", "apiextensions.k8s.io", "customresourcedefinitions", "", "a.b"),
        Asked("create", "apiextensions.k8s.io", "customresourcedefinitions"),
        Asked("patch", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", "x"),
        Asked("create", "admissionregistration.k8s.io", "validatingwebhookconfigurations"),
        Asked("delete", "admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "x"),
        Asked("delete", "polyver.dev", "conversions", "", "a.b"),
        Asked("delete", GROUP, "kites", "default", "red"),
        Asked("patch", "rbac.authorization.k8s.io", "clusterroles", "", "polyver"),
        Asked("update", "coordination.k8s.io", "leases", "kube-system", "kube-scheduler"),
    ],
    ids=str,
)
def test_other_things_are_not_allowed(walked: Installed, asked: Asked) -> None:
    assert not walked.may(asked)


# What becomes of it where a right is missing.


def granted(verb: str, resource: str) -> Grant:
    [found] = [each for each in GRANTS if (each.verb, each.right.resource) == (verb, resource)]
    return found


@contextmanager
def lacking(on: Installed, verb: str, resource: str, *made: str) -> Iterator[Process]:
    """A replica that has to begin anew with one right less."""
    # Those of the replica before name its address, where nobody answers now.
    stale = [f"{HOOKS}/{each}webhookconfigurations/polyver" for each in ("mutating", "validating")]
    for path in (*made, *stale):
        on.request("DELETE", path)
    with without(on, granted(verb, resource)), on.running() as replica:
        yield replica


def test_without_creating_secrets_it_does_not_start(walked: Installed) -> None:
    with lacking(walked, "create", "secrets", f"{OURS}/secrets/polyver-webhook") as replica:
        assert replica.process.wait(HANG) == 3
        assert "secrets is forbidden" in replica.text
        assert "Traceback" not in replica.text


@contextmanager
def boats(on: Installed) -> Iterator[None]:
    start(on)
    apply_boats(on)
    try:
        yield
    finally:
        remove_boats(on)


def test_without_patching_definitions_a_conversion_says_why_it_is_not_served(
    walked: Installed,
) -> None:
    with lacking(walked, "patch", "customresourcedefinitions") as replica:
        replica.says("polyver runs on")
        with boats(walked):
            eventually(lambda: condition(walked).get("reason") == "DefinitionNotChanged")
            assert "is forbidden" in condition(walked)["message"]


def test_without_telling_the_status_a_conversion_is_served_and_does_not_say_so(
    walked: Installed,
) -> None:
    with lacking(walked, "patch", "conversions/status") as replica:
        replica.says("polyver runs on")
        with boats(walked):
            eventually(lambda: bundle(walked))
            told = Asked("patch", "polyver.dev", "conversions/status", "", f"boats.{BOATS}")
            eventually(lambda: told in refused(walked))
            assert condition(walked) == {}


def test_without_telling_the_status_of_kites_their_controller_tells_nothing(
    walked: Installed,
) -> None:
    with lacking(walked, "update", "kites/status") as replica:
        replica.says("polyver runs on")
        start(walked)
        kite = {"apiVersion": f"{GROUP}/v2", "kind": "Kite", "metadata": {"name": "blue"}}
        eventually(lambda: walked.request("POST", KITE, {**kite, "spec": {"metres": 4}}))
        told = Asked("update", GROUP, "kites/status", "default", "blue")
        eventually(lambda: told in refused(walked))
        assert "status" not in walked.request("GET", f"{KITE}/blue")
        walked.request("DELETE", f"{KITE}/blue")


def refused(on: Installed) -> dict[Asked, str]:
    """What the account was not allowed until now."""
    on.note("lacking")
    return on.forbidden
