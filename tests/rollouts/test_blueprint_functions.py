"""A version of a blueprint function that becomes stable reaches blueprints in steps."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.app.test_cli import Ran
from tests.editing import edited
from tests.walks.support import eventually
from tests.web.visiting import Visitor

from polyver.functions import Registry
from polyver.functions.catalogue import read_catalogue
from polyver.functions.registering import Functions, known_functions
from polyver.kube.objects import load_manifests
from polyver.kube.objects.status import ApiError
from polyver.testing import EmbeddedServer

Object = dict[str, Any]
KANISTER = "/apis/cr.kanister.io/v1alpha1/namespaces/default"
ROLLOUTS = "/apis/polyver.dev/v1alpha1/namespaces/polyver-system/rollouts"
POLICIES = "/apis/polyver.dev/v1alpha1/namespaces/polyver-system/rolloutpolicies"
RECORD = "/api/v1/namespaces/polyver-system/configmaps/polyver-function-rollouts"
TARGET = {"group": "polyver.dev", "kind": "BlueprintFunction", "name": "Greet"}
SELECTED = {name: TARGET[name] for name in ("group", "kind")}
NAME = "greet-v0.2.0"
NUMBER = 8
APPROVED = {"pause": {"until": "Approved"}}
OLD = """\
releases: [1.0.0]
functions:
  Greet:
    versions:
      v0.1.0: {stage: stable}
      v0.2.0: {stage: candidate}
      v0.3.0: {stage: candidate}
"""
NEW = """\
releases: [1.0.0, 1.1.0]
functions:
  Greet:
    versions:
      v0.1.0: {stage: deprecated, since: 1.1.0, removedIn: 1.3.0, use: v0.2.0}
      v0.2.0: {stage: stable}
      v0.3.0: {stage: candidate}
"""
NEXT = """\
releases: [1.0.0, 1.1.0, 1.2.0]
functions:
  Greet:
    versions:
      v0.1.0: {stage: deprecated, since: 1.1.0, removedIn: 1.3.0, use: v0.2.0}
      v0.2.0: {stage: deprecated, since: 1.2.0, removedIn: 1.4.0, use: v0.3.0}
      v0.3.0: {stage: stable}
"""


def functions(catalogue: str) -> Functions:
    """Greet in three versions: v0.2.0 fails for the name `bad`, v0.3.0 needs another argument."""
    found = Registry()

    @found.register("Greet", version="v0.1.0")
    def greet(ctx: object, name: str = "") -> Object:
        return {"text": f"Hello, {name}"}

    @found.register("Greet", version="v0.2.0")
    def greet_v020(ctx: object, name: str = "") -> Object:
        if name == "bad":
            raise ValueError("this version cannot greet")
        return {"text": f"Good day, {name}"}

    @found.register("Greet", version="v0.3.0")
    def greet_v030(ctx: object, name: str = "", *, language: str) -> Object:
        return {"text": f"{language}: {name}"}

    [document] = load_manifests(catalogue, "catalogue.yaml")
    return known_functions(found, [read_catalogue(document)])


class Platform:
    """Control planes with one catalogue after the other, on the same data."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack

    def start(self, catalogue: str) -> None:
        """Start the control plane, or restart it with another catalogue."""
        self._stack.close()
        self.server = EmbeddedServer(
            data=self._folder,
            capabilities=("apis", "functions"),
            functions=functions(catalogue),
            page=True,
        )
        self.request = self._stack.enter_context(self.server).request

    def blueprint(
        self, name: str, *, version: str = "", labels: Mapping[str, str] | None = None
    ) -> None:
        phase = {"func": "Greet", "name": "only", "args": {"name": "{{ .Options.name }}"}}
        phase |= {"funcVersion": version} if version else {}
        made = {
            "apiVersion": "cr.kanister.io/v1alpha1",
            "kind": "Blueprint",
            "metadata": {"name": name, "labels": {**(labels or {})}},
            "actions": {"run": {"phases": [phase]}},
        }
        self.request("POST", f"{KANISTER}/blueprints", made)

    def blueprints(self) -> list[str]:
        found = self.request("GET", f"{KANISTER}/blueprints")["items"]
        return [each["metadata"]["name"] for each in found]

    def run(self, blueprint: str, name: str = "x", **action: Any) -> Object:
        """Run a blueprint, and return the ended phase with the state of the ActionSet."""
        wanted = {"name": "run", "blueprint": blueprint, "options": {"name": name}, **action}
        made = self.request(
            "POST",
            f"{KANISTER}/actionsets",
            {
                "apiVersion": "cr.kanister.io/v1alpha1",
                "kind": "ActionSet",
                "metadata": {"generateName": f"{blueprint}-"},
                "spec": {"actions": [wanted]},
            },
        )

        def ended() -> Object | None:
            path = f"{KANISTER}/actionsets/{made['metadata']['name']}"
            status: Object = self.request("GET", path).get("status") or {}
            return status if status.get("state") in ("complete", "failed") else None

        status: Object = eventually(ended)
        phases = status["actions"][0]["phases"] if status["actions"] else [{}]
        return {**status, **phases[0], "state": status["state"]}

    def versions(self) -> dict[str, str]:
        """The version with which each blueprint runs."""
        return {each: self.run(each)["resolvedVersion"] for each in self.blueprints()}

    def policy(self, *steps: Object, **rules: Any) -> None:
        made = {
            "apiVersion": "polyver.dev/v1alpha1",
            "kind": "RolloutPolicy",
            "metadata": {"name": "careful"},
            "spec": {"targets": [TARGET], "steps": [*steps], **rules},
        }
        self.request("POST", POLICIES, made)

        def ready() -> bool:
            found = self.request("GET", f"{POLICIES}/careful")
            conditions = (found.get("status") or {}).get("conditions") or []
            return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

        eventually(ready)

    def reaches(self, state: str, step: str, name: str = NAME) -> Object:
        """Wait until a rollout is in a state and a step; return its status."""
        seen: Object = {}

        def there() -> Object | None:
            try:
                found = self.request("GET", f"{ROLLOUTS}/{name}").get("status") or {}
            except ApiError:
                return None
            seen.clear()
            seen.update(found)
            return found if (found.get("state"), found.get("step")) == (state, step) else None

        try:
            found = eventually(there)
        except BaseException as error:
            raise AssertionError(f"{seen}") from error
        eventually(lambda: self._has_gate(name, state, int(step.partition("/")[0])))
        return found

    def _has_gate(self, name: str, state: str, step: int) -> bool:
        """Report whether the gate is written, which happens after the status."""
        record = json.loads(self.request("GET", RECORD)["data"]["functions.json"])
        [version] = [each for each in record["Greet"] if name.endswith(each["version"])]
        gate = version.get("gate") or {}
        if state in ("RolledBack", "Aborted"):
            return gate.get("returns") is True
        is_open = version["state"] == "open"
        return is_open if state == "Completed" else bool(gate.get("step") == step)

    def rollout(self, name: str = NAME) -> Object:
        """The status of a rollout."""
        found: Object = self.request("GET", f"{ROLLOUTS}/{name}")["status"]
        return found

    def ask(self, name: str = NAME, **asked: Any) -> None:
        def change(obj: Object) -> None:
            obj["spec"] |= asked

        edited(self.request, f"{ROLLOUTS}/{name}", change)


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    with ExitStack() as stack:
        platform = Platform(tmp_path / "data", stack)
        platform.start(OLD)
        for number in range(NUMBER):
            platform.blueprint(f"greet-{number}")
        yield platform


def test_a_stable_version_reaches_blueprints_in_steps(platform: Platform) -> None:
    platform.policy({"count": 3, **APPROVED}, {"share": "100%"})
    platform.start(NEW)
    status = platform.reaches("Progressing", "1/2")
    assert status["preflight"]["changed"] == NUMBER
    versions = platform.versions()
    assert sorted(versions.values()) == ["v0.1.0"] * 5 + ["v0.2.0"] * 3
    platform.reaches("Paused", "1/2")
    eventually(lambda: platform.rollout()["dependents"]["healthy"] == 3)
    counts = platform.rollout()["dependents"]
    assert (counts["total"], counts["cohort"]) == (NUMBER, 3)
    platform.ask(approvedStep=1)
    # The runs of the first step say nothing about the blueprints of the second one.
    platform.reaches("Progressing", "2/2")
    waits = "3 of 8 healthy, 0 failing; 0 of 1 observed"
    eventually(lambda: platform.rollout()["checks"][0]["message"] == waits)
    assert {*platform.versions().values()} == {"v0.2.0"}
    platform.reaches("Completed", "2/2")


def test_a_version_that_fails_is_taken_back_by_itself(platform: Platform) -> None:
    platform.policy({"share": "100%"}, checks=[{"ready": {"minimum": 5}}])
    platform.start(NEW)
    platform.reaches("Progressing", "1/1")
    assert platform.run("greet-0")["resolvedVersion"] == "v0.2.0"
    failed = platform.run("greet-1", "bad")
    assert (failed["state"], failed["rollout"]) == ("failed", NAME)
    status = platform.reaches("RolledBack", "1/1")
    assert "the check ready failed" in status["reason"]
    assert {*platform.versions().values()} == {"v0.1.0"}
    assert platform.run("greet-0")["reason"] == f"kept: v0.2.0 is taken back by rollout {NAME}"


def test_an_aborted_rollout_returns_all_blueprints(platform: Platform) -> None:
    platform.policy({"count": 3, **APPROVED}, {"share": "100%"})
    platform.start(NEW)
    platform.reaches("Progressing", "1/2")
    assert Counter(platform.versions().values())["v0.2.0"] == 3
    platform.ask(aborted=True)
    platform.reaches("Aborted", "1/2")
    assert {*platform.versions().values()} == {"v0.1.0"}


def test_a_blueprint_outside_of_the_cohort_is_told_why(platform: Platform) -> None:
    platform.policy({"labels": {"tier": "dev"}, **APPROVED}, {"share": "100%"})
    platform.start(NEW)
    platform.blueprint("greet-dev", labels={"tier": "dev"})
    platform.reaches("Progressing", "1/2")
    held = platform.run("greet-0")
    assert held["reason"] == f"kept: v0.2.0 is held by rollout {NAME}, step 1"
    assert "rollout" not in held
    assert platform.run("greet-dev")["resolvedVersion"] == "v0.2.0"
    platform.reaches("Paused", "1/2")


def test_an_exact_version_is_not_gated_and_a_preferred_version_is(platform: Platform) -> None:
    platform.policy({"count": 1, **APPROVED}, {"share": "100%"})
    platform.start(NEW)
    platform.blueprint("exact", version="v0.2.0")
    exact = platform.run("exact")
    assert (exact["resolvedVersion"], exact["resolvedReason"]) == ("v0.2.0", "exact version")
    assert "rollout" not in exact
    platform.reaches("Progressing", "1/2")
    wished = [platform.run(f"greet-{n}", preferredVersion="v0.2.0") for n in range(NUMBER)]
    versions = [each["resolvedVersion"] for each in wished]
    assert Counter(versions) == {"v0.1.0": NUMBER - 1, "v0.2.0": 1}
    warnings = wished[versions.index("v0.1.0")]["warnings"]
    assert warnings[0].endswith("the preferred version: v0.1.0 is used")
    assert platform.reaches("Paused", "1/2")["dependents"]["total"] == NUMBER


def test_without_a_policy_a_stable_version_is_used_at_once(platform: Platform) -> None:
    platform.start(NEW)
    assert {*platform.versions().values()} == {"v0.2.0"}
    # A policy that comes later finds the version in use.
    platform.policy({"share": "100%"})
    assert platform.run("greet-0")["reason"] == "stable version"


def test_a_version_is_closed_before_a_controller_has_seen_it(platform: Platform) -> None:
    platform.policy({"count": 1, **APPROVED}, {"share": "100%"})
    freeze = {"metadata": {"name": "polyver-rollout-freeze"}}
    platform.request("POST", "/api/v1/namespaces/polyver-system/configmaps", freeze)
    platform.start(NEW)
    assert {*platform.versions().values()} == {"v0.1.0"}
    platform.reaches("Paused", "0/2")


def test_a_rollout_goes_on_after_a_restart(platform: Platform) -> None:
    platform.policy({"count": 3, **APPROVED}, {"count": 5, **APPROVED}, {"share": "100%"})
    platform.start(NEW)
    platform.reaches("Progressing", "1/3")
    first = {name for name, each in platform.versions().items() if each == "v0.2.0"}
    platform.reaches("Paused", "1/3")
    platform.start(NEW)
    assert platform.reaches("Paused", "1/3")["dependents"]["healthy"] == 3
    platform.ask(approvedStep=1)
    platform.reaches("Progressing", "2/3")
    platform.start(NEW)
    second = {name for name, each in platform.versions().items() if each == "v0.2.0"}
    assert first < second
    assert len(second) == 5
    platform.reaches("Paused", "2/3")


def test_a_version_that_lacks_an_argument_is_held_by_the_preflight(platform: Platform) -> None:
    platform.start(NEW)
    platform.policy({"share": "100%"})
    platform.start(NEXT)
    status = platform.reaches("Held", "0/1", name="greet-v0.3.0")
    assert status["preflight"]["fails"] == NUMBER
    message = status["preflight"]["failures"][0]["message"]
    assert "action run, phase only: Greet v0.3.0" in message
    assert "language" in message
    assert {*platform.versions().values()} == {"v0.2.0"}


def test_a_blueprint_keeps_its_version_if_the_new_one_lacks_an_argument(platform: Platform) -> None:
    platform.start(NEW)
    limits = {"failures": 1000}
    steps = {"share": "90%", **APPROVED}, {"share": "100%"}
    platform.policy(*steps, preflight=limits, checks=[{"ready": {"failing": 1000}}])
    platform.start(NEXT)
    # Nobody has to run the blueprints: it is known that the version fails for all.
    status = platform.reaches("Paused", "1/2", name="greet-v0.3.0")
    assert status["dependents"]["failing"] == status["dependents"]["cohort"]
    runs = [platform.run(each) for each in platform.blueprints()]
    assert {each["resolvedVersion"] for each in runs} == {"v0.2.0"}
    assert "kept: the move to v0.3.0 failed" in {each["reason"] for each in runs}


def test_calls_are_checked_from_the_status_of_action_sets(platform: Platform) -> None:
    checks = [
        {"ready": {"failing": 1000}},
        {"errors": {"max": "50%", "minimum": 3}},
        {"latency": {"p99": "10000x", "minimum": 1}},
    ]
    platform.policy({"count": 4, **APPROVED}, {"share": "100%"}, checks=checks)
    platform.start(NEW)
    platform.reaches("Progressing", "1/2")
    found = {name: platform.run(name) for name in platform.blueprints()}
    calls = [each for each in found.values() if each["resolvedVersion"] == "v0.2.0"]
    assert all(each["startTime"] <= each["endTime"] for each in calls)
    status = platform.reaches("Paused", "1/2")
    assert [each["name"] for each in status["checks"]] == ["ready", "errors", "latency"]
    assert status["checks"][1]["message"] == "0 of 4 calls failed (0%)"
    moved = next(name for name, each in found.items() if each["resolvedVersion"] == "v0.2.0")
    for _ in range(5):
        platform.run(moved, "bad")
    assert "the check errors failed" in platform.reaches("RolledBack", "1/2")["reason"]


def test_discovery_the_page_and_why_show_the_gate(
    platform: Platform, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    platform.policy({"count": 1, **APPROVED}, {"share": "100%"})
    platform.start(NEW)
    platform.reaches("Progressing", "1/2")
    held = f"held by rollout {NAME}, step 1"
    found = platform.request("GET", "/functions")["functions"]
    [greet] = [each for each in found if each["name"] == "Greet"]
    assert (greet["default"], greet["versions"][1]["gate"]["text"]) == ("v0.1.0", held)

    monkeypatch.setenv("KUBECONFIG", str(platform.server.kubeconfig))
    listed = Ran(capsys, "functions", "list").out.splitlines()
    assert [line for line in listed if "Greet" in line and held in line]
    platform.run("greet-0")
    versions = platform.versions()
    names = {}
    for each in platform.request("GET", f"{KANISTER}/actionsets")["items"]:
        names[each["spec"]["actions"][0]["blueprint"]] = each["metadata"]["name"]
    for blueprint, version in versions.items():
        why = json.loads(Ran(capsys, "why", f"actionset/{names[blueprint]}", "-o", "json").out)
        now = why["phases"][0]["now"]
        assert now["version"] == version
        kept = version == "v0.1.0"
        assert now["why"].startswith(f"kept: v0.2.0 is {held}" if kept else "stable version")

    visitor = Visitor(platform.server.page)

    def shown() -> bool:
        data = visitor.lineage("functions", "Greet")
        gates = {each["name"]: each.get("gate") for each in data["releases"]}
        users = {each["name"]: each["users"] for each in data["releases"]}
        both = (users["v0.1.0"], users["v0.2.0"])
        return gates["v0.2.0"] == held and both == (NUMBER - 1, 1)

    eventually(shown)
    assert visitor.lineage("functions", "Greet")["default"]["release"] == "v0.1.0"


def test_a_blueprint_is_checked_against_the_version_that_it_uses(platform: Platform) -> None:
    platform.start(NEW)
    platform.policy({"share": "100%"})
    platform.start(NEXT)
    platform.reaches("Held", "0/1", name="greet-v0.3.0")
    platform.blueprint("another")  # v0.2.0 takes its arguments, and v0.3.0 would not
    assert platform.run("another")["resolvedVersion"] == "v0.2.0"
    with pytest.raises(ApiError, match="language"):
        platform.blueprint("newer", version="v0.3.0")


@pytest.mark.parametrize(
    ("namespace", "spec", "at"),
    [
        ("default", {}, "spec.targets[0]"),
        ("polyver-system", {"checks": [{"ready": {"within": "5m"}}]}, "spec.checks[0].ready"),
        (
            "polyver-system",
            {"targets": [{**SELECTED, "selector": {"matchLabels": {"a": "b"}}}]},
            "spec.targets[0].selector.matchLabels",
        ),
    ],
)
def test_a_policy_that_cannot_work_is_refused(
    platform: Platform, namespace: str, spec: Object, at: str
) -> None:
    policy = {
        "apiVersion": "polyver.dev/v1alpha1",
        "kind": "RolloutPolicy",
        "metadata": {"name": "wrong"},
        "spec": {"targets": [TARGET], "steps": [{"share": "100%"}], **spec},
    }
    path = f"/apis/polyver.dev/v1alpha1/namespaces/{namespace}/rolloutpolicies"
    with pytest.raises(ApiError) as refused:
        platform.request("POST", path, policy)
    assert refused.value.code == 422
    assert at in str(refused.value)
