"""Control planes with blueprints that follow a function, and a policy for its versions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.editing import edited
from tests.walks.support import eventually

from polyver.kube.objects.status import ApiError

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
      v0.4.0: {stage: candidate}
"""
NEW = """\
releases: [1.0.0, 1.1.0]
functions:
  Greet:
    versions:
      v0.1.0: {stage: deprecated, since: 1.1.0, removedIn: 1.3.0, use: v0.2.0}
      v0.2.0: {stage: stable}
      v0.3.0: {stage: candidate}
      v0.4.0: {stage: candidate}
"""
NEXT = """\
releases: [1.0.0, 1.1.0, 1.2.0]
functions:
  Greet:
    versions:
      v0.1.0: {stage: deprecated, since: 1.1.0, removedIn: 1.3.0, use: v0.2.0}
      v0.2.0: {stage: deprecated, since: 1.2.0, removedIn: 1.4.0, use: v0.3.0}
      v0.3.0: {stage: stable}
      v0.4.0: {stage: candidate}
"""
"""The version v0.3.0 needs an argument that no blueprint has."""
NEWEST = """\
releases: [1.0.0, 1.1.0, 1.2.0]
functions:
  Greet:
    versions:
      v0.1.0: {stage: deprecated, since: 1.1.0, removedIn: 1.3.0, use: v0.2.0}
      v0.2.0: {stage: deprecated, since: 1.2.0, removedIn: 1.4.0, use: v0.4.0}
      v0.3.0: {stage: candidate}
      v0.4.0: {stage: stable}
"""


class Platform:
    """Requests of those who write blueprints and run them, on control planes that are restarted."""

    request: Callable[..., Any]

    def start(self, catalogue: str) -> None:
        """Start the control plane, or restart it with another catalogue."""
        raise NotImplementedError

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
        return self.ended(self.begin(blueprint, name, **action))

    def begin(self, blueprint: str, name: str = "x", **action: Any) -> str:
        """Create an ActionSet, and return its name."""
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
        return str(made["metadata"]["name"])

    def action_set(self, name: str) -> Object:
        """The status of an ActionSet."""
        status: Object = self.request("GET", f"{KANISTER}/actionsets/{name}").get("status") or {}
        return status

    def ended(self, name: str) -> Object:
        """Wait until an ActionSet has ended."""
        over = ("complete", "failed")
        eventually(lambda: self.action_set(name).get("state") in over)
        status = self.action_set(name)
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
        [version] = [each for each in record["Greet"] if each["version"] in name]
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
