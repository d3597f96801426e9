"""A control plane with composite resources, and policies for their Composition and function."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.composites import SERVE
from tests.editing import edited
from tests.walks.support import eventually

from polyver.kube.objects import dump_yaml
from polyver.kube.objects.status import ApiError
from polyver.testing import EmbeddedServer

if TYPE_CHECKING:
    from tests.rollouts.releasing import Requests

Object = dict[str, Any]
GROUP = "rollouts.example.org"
FUNCTIONS = "/apis/pkg.crossplane.io/v1/functions"
FUNCTION_REVISIONS = "/apis/pkg.crossplane.io/v1/functionrevisions"
CROSSPLANE = "/apis/apiextensions.crossplane.io/v1"
COMPOSITIONS = f"{CROSSPLANE}/compositions"
COMPOSITION_REVISIONS = f"{CROSSPLANE}/compositionrevisions"
STACKS = f"/apis/{GROUP}/v1/stacks"
MAPS = "/api/v1/namespaces/default/configmaps"
SYSTEM = "/apis/polyver.dev/v1alpha1/namespaces/polyver-system"
EVENTS = "/api/v1/namespaces/polyver-system/events"
POLICIES, ROLLOUTS = f"{SYSTEM}/rolloutpolicies", f"{SYSTEM}/rollouts"
MODES = ("good", "better", "best", "fails", "unready", "deletes", "slow", "crashes")
"""The versions of the function, by their behaviour."""
COMPOSITION = {"group": "apiextensions.crossplane.io", "kind": "Composition", "name": "stacks"}
FUNCTION = {"group": "pkg.crossplane.io", "kind": "Function", "name": "maker"}


def packages(folder: Path) -> Path:
    """Write all versions of the function, and the file with their folders."""
    told = {}
    for mode in MODES:
        there = folder / mode
        there.mkdir(parents=True)
        shutil.copy(SERVE, there / "serve.py")
        shutil.copy(Path(__file__).with_name("maker.py"), there / "function.py")
        env = {"MODE": mode, "STAMP": mode}
        command = {"command": ["{python}", "serve.py"], "env": env}
        (there / "polyver-function.yaml").write_text(dump_yaml(command))
        told[package(mode)] = f"./{mode}"
    file = folder / "packages.yaml"
    file.write_text(dump_yaml(told))
    return file


def package(mode: str) -> str:
    return f"xpkg.example.org/maker:{mode}"


def is_true(obj: Object, kind: str) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(each["type"] == kind and each["status"] == "True" for each in conditions)


class Composing:
    """Requests of the authors of a Composition and a function, and of their users."""

    def __init__(self, server: Requests) -> None:
        self.request = server.request
        self._touched = 0

    # Set-up.

    def prepare(self, **function: Any) -> None:
        """Install the function, define the kind, and wait until both are served."""
        self.request("POST", FUNCTIONS, self._function("good", **function))
        fields = {"type": "object", "properties": {"number": {"type": "integer"}}}
        schema = {"type": "object", "properties": {"spec": fields}}
        version = {"name": "v1", "served": True, "referenceable": True}
        definition = {
            "apiVersion": "apiextensions.crossplane.io/v1",
            "kind": "CompositeResourceDefinition",
            "metadata": {"name": f"stacks.{GROUP}"},
            "spec": {
                "group": GROUP,
                "names": {"kind": "Stack", "plural": "stacks"},
                "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
            },
        }
        self.request("POST", f"{CROSSPLANE}/compositeresourcedefinitions", definition)
        self.request("POST", COMPOSITIONS, self._composition("1"))
        eventually(lambda: is_true(self.request("GET", f"{FUNCTIONS}/maker"), "Healthy"))
        eventually(self._is_served)

    def _is_served(self) -> bool:
        try:
            return self.request("GET", STACKS) is not None
        except ApiError:
            return False

    def _function(self, mode: str, *, channel: str = "", **spec: Any) -> Object:
        labels = {"channel": channel} if channel else {}
        return {
            "apiVersion": "pkg.crossplane.io/v1",
            "kind": "Function",
            "metadata": {"name": "maker", "labels": labels},
            "spec": {"package": package(mode), **spec},
        }

    def _composition(self, stamp: str, mode: str = "") -> Object:
        given = {"stamp": stamp, "mode": mode, "apiVersion": "v1", "kind": "Input"}
        step = {"step": "make", "functionRef": {"name": "maker"}, "input": given}
        target = {"apiVersion": f"{GROUP}/v1", "kind": "Stack"}
        return {
            "apiVersion": "apiextensions.crossplane.io/v1",
            "kind": "Composition",
            "metadata": {"name": "stacks"},
            "spec": {"compositeTypeRef": target, "mode": "Pipeline", "pipeline": [step]},
        }

    def composition_for(self, channel: str) -> None:
        """Create a Composition, whose step selects the function revisions of a channel."""
        made = self._composition(channel)
        selector = {"matchLabels": {"channel": channel}}
        made["metadata"]["name"] = channel
        made["spec"]["pipeline"][0]["functionRevisionSelector"] = selector
        self.request("POST", COMPOSITIONS, made)

    def stacks(self, number: int, *, first: int = 1, every: float = 0.02, **labels: str) -> None:
        """Create composite resources, and wait until all are healthy."""
        for each in range(first, first + number):
            self.stack(each, labels=labels)
        eventually(lambda: self.healthy() == number, every=every)

    def stack(self, number: int, *, labels: Mapping[str, str] | None = None, **spec: Any) -> None:
        metadata = {"name": f"s{number}", "labels": {**(labels or {})}}
        made = {"apiVersion": f"{GROUP}/v1", "kind": "Stack", "metadata": metadata}
        self.request("POST", STACKS, {**made, "spec": {"number": number, **spec}})

    def unusual(self) -> None:
        """Create a composite resource for which some versions fail."""
        there = self.healthy()
        self.stack(33)
        eventually(lambda: self.healthy() == there + 1)

    def touch(self) -> None:
        """Change a label of each composite resource."""
        for each in self.request("GET", STACKS)["items"]:
            self._touched += 1
            name, labels = each["metadata"]["name"], {"touched": str(self._touched)}

            def change(obj: Object, labels: Object = labels) -> None:
                obj["metadata"]["labels"] = labels

            edited(self.request, f"{STACKS}/{name}", change)

    def healthy(self) -> int:
        there = self.request("GET", STACKS)["items"]
        return sum(is_true(each, "Synced") and is_true(each, "Ready") for each in there)

    # Releases.

    def publish(self, target: Object, mode: str, *, stamp: str = "2") -> str:
        """Publish a version of the Composition or of the function; return its revision."""
        if target["kind"] == "Function":
            return self.publish_function(mode)
        return self.publish_composition(stamp, mode)

    def publish_composition(self, stamp: str, mode: str = "") -> str:
        """Change the Composition; return the name of the new revision."""
        wanted = self._composition(stamp, mode)["spec"]
        edited(self.request, f"{COMPOSITIONS}/stacks", lambda obj: obj.update(spec=wanted))
        return eventually(lambda: self._composition_revision(stamp, mode))

    def _composition_revision(self, stamp: str, mode: str) -> str | None:
        for each in self.request("GET", COMPOSITION_REVISIONS)["items"]:
            given = each["spec"]["pipeline"][0]["input"]
            if (given["stamp"], given["mode"]) == (stamp, mode):
                name: str = each["metadata"]["name"]
                return name
        return None

    def publish_function(self, mode: str, **labels: str) -> str:
        """Change the package and the labels of the function; return the name of the revision."""

        def change(obj: Object) -> None:
            obj["spec"]["package"] = package(mode)
            obj["metadata"]["labels"] = {**labels}

        edited(self.request, f"{FUNCTIONS}/maker", change)
        return eventually(lambda: self.revision_of(mode))

    def revision_of(self, mode: str) -> str | None:
        for each in self.request("GET", FUNCTION_REVISIONS)["items"]:
            if each["spec"]["image"] == package(mode):
                name: str = each["metadata"]["name"]
                return name
        return None

    def activate(self, mode: str, *, state: str = "Active") -> None:
        """Set the state of a version of the function."""
        path = f"{FUNCTION_REVISIONS}/{self.revision_of(mode)}"
        edited(self.request, path, lambda obj: obj["spec"].update(desiredState=state))

    def states(self) -> dict[str, str]:
        """The state (Active or Inactive) of each version of the function."""
        found = self.request("GET", FUNCTION_REVISIONS)["items"]
        return {
            each["spec"]["image"].rpartition(":")[2]: each["spec"]["desiredState"] for each in found
        }

    # Rollouts.

    def policy(self, target: Object, *steps: Object, **rules: Any) -> None:
        name = f"careful-{target['name']}"
        made = {
            "apiVersion": "polyver.dev/v1alpha1",
            "kind": "RolloutPolicy",
            "metadata": {"name": name},
            "spec": {"targets": [target], "steps": [*steps], **rules},
        }
        self.request("POST", POLICIES, made)
        eventually(lambda: is_true(self.request("GET", f"{POLICIES}/{name}"), "Ready"))

    def reaches(self, name: str, state: str, step: str) -> Object:
        """Wait until a rollout is in a state and a step; return its status."""

        def there() -> Object | None:
            status = self.status(name)
            return status if (status.get("state"), status.get("step")) == (state, step) else None

        try:
            return eventually(there, every=0.1)
        except BaseException as error:
            raise AssertionError(f"{name}: {self.status(name)}") from error

    def rollouts(self) -> dict[str, Object]:
        """All rollouts by name."""
        listed = self.request("GET", ROLLOUTS)["items"]
        return {each["metadata"]["name"]: each for each in listed}

    def starts(self, target: Object, publish: Callable[[], str]) -> str:
        """Publish a release; return the name of the rollout that is started for it."""
        before = self.rollouts()
        revision = publish()

        def started() -> str | None:
            for name, each in self.rollouts().items():
                spec = each["spec"]
                if name not in before and spec["to"] == revision and spec["target"] == target:
                    return name
            return None

        return eventually(started)

    def history(self, name: str) -> list[tuple[str, int]]:
        """The states of a rollout, each with its step."""
        return [(each["state"], each["step"]) for each in self.status(name)["history"]]

    def events(self, name: str) -> set[str]:
        """The reasons of the Events about a rollout."""
        listed = self.request("GET", EVENTS)["items"]
        return {each["reason"] for each in listed if each["involvedObject"]["name"] == name}

    def status(self, name: str) -> Object:
        try:
            found: Object = self.request("GET", f"{ROLLOUTS}/{name}").get("status") or {}
        except ApiError:
            return {}
        return found

    def ask(self, name: str, **asked: Any) -> None:
        """Set paused, approvedStep or aborted in the spec of a rollout."""
        edited(self.request, f"{ROLLOUTS}/{name}", lambda obj: obj["spec"].update(asked))

    # Observations.

    def written(self, by: str) -> dict[str, str]:
        """The version of the function, or of the Composition, that wrote the objects of each."""
        maps = self.request("GET", MAPS)["items"]
        mine = [each for each in maps if each["metadata"]["name"].endswith("-main")]
        return {e["metadata"]["name"].removesuffix("-main"): e["data"][by] for e in mine}

    def count(self, by: str) -> Counter[str]:
        return Counter(self.written(by).values())

    def extras(self) -> int:
        maps = self.request("GET", MAPS)["items"]
        return sum(each["metadata"]["name"].endswith("-extra") for each in maps)


def uses(stack: Object, revision: str) -> bool:
    """Report whether a composite resource uses a revision of its Composition or its function."""
    spec, status = stack.get("spec") or {}, stack.get("status") or {}
    called = {each["revision"] for each in status.get("pipeline") or ()}
    return revision in {(spec.get("compositionRevisionRef") or {}).get("name"), *called}


@contextmanager
def composing(folder: Path, number: int) -> Iterator[Composing]:
    """A control plane with composite resources that all use the first version."""
    file = packages(folder)
    with EmbeddedServer(capabilities=("apis", "compositions"), packages=file) as server:
        platform = Composing(server)
        platform.prepare()
        platform.stacks(number)
        yield platform
