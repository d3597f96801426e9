"""A version of a blueprint function that becomes stable reaches blueprints in steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.editing import edited
from tests.walks.support import eventually

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
        server = EmbeddedServer(
            data=self._folder, capabilities=("apis", "functions"), functions=functions(catalogue)
        )
        self.request = self._stack.enter_context(server).request

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
            return eventually(there)
        except BaseException as error:
            raise AssertionError(f"{seen}") from error

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
    platform.policy({"share": "100%"})
    platform.start(NEW)
    platform.reaches("Progressing", "1/1")
    assert platform.run("greet-0")["resolvedVersion"] == "v0.2.0"
    platform.reaches("Completed", "1/1")


def test_a_failed_action_takes_the_version_back(platform: Platform) -> None:
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


def test_an_exact_version_is_not_gated_and_a_wish_is(platform: Platform) -> None:
    platform.policy({"labels": {"tier": "dev"}}, {"share": "100%"})
    platform.start(NEW)
    platform.reaches("Progressing", "1/2") if False else None
    platform.blueprint("exact", version="v0.2.0")
    assert platform.run("exact")["resolvedVersion"] == "v0.2.0"
    wished = platform.run("greet-0", preferredVersion="v0.2.0")
    assert wished["resolvedVersion"] == "v0.1.0"
    assert "the preferred version: v0.1.0 is used" in wished["warnings"][0]
