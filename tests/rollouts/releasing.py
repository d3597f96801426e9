"""A control plane with applications that follow a definition, and a policy for its releases."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.deadlines import HANG
from tests.editing import edited
from tests.walks.replicas import Balancer, Replica
from tests.walks.support import Server, eventually

from polyver.kube.objects.status import ApiError
from polyver.testing import EmbeddedServer
from polyver.testing._requests import ask

Object = dict[str, Any]
OAM = "/apis/core.oam.dev"
DEFINITIONS = f"{OAM}/v2beta1/namespaces/vela-system/componentdefinitions"
APPLICATIONS = f"{OAM}/v1beta1/namespaces/default/applications"
REVISIONS = f"{OAM}/v1beta1/namespaces/vela-system/definitionrevisions"
POLICIES = "/apis/polyver.dev/v1alpha1/namespaces/vela-system/rolloutpolicies"
ROLLOUTS = "/apis/polyver.dev/v1alpha1/namespaces/vela-system/rollouts"
MAPS = "/api/v1/namespaces/default/configmaps"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/polyver-system/leases/polyver"
CHOSEN = ("--capabilities", "apis,definitions")
GOOD = 'data: {from: "%s"}'
PARAMETERS = {
    "type": "object",
    "properties": {"weak": {"type": "boolean", "default": False}, "text": {"type": "string"}},
}
BAD = '{{ fail "this release is broken" }}'
TARGET = {"group": "core.oam.dev", "kind": "ComponentDefinition", "name": "web"}


def version(number: str, data: str = "") -> Object:
    template = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "{{ .context.name }}"}\n' + (
        data or GOOD % number
    )
    return {
        "version": number,
        "workload": {"definition": {"apiVersion": "v1", "kind": "ConfigMap"}},
        "schematic": {"gotemplate": {"parameters": PARAMETERS, "template": template}},
    }


class Requests(Protocol):
    """A control plane that a test asks as its administrator."""

    def request(self, method: str, path: str, body: object = None) -> Any: ...


class Releasing:
    """Requests of the author of a definition, and of its users."""

    def __init__(self, server: Requests) -> None:
        self.request = server.request

    def publish(self, *versions: Object, of: str = "web") -> None:
        """Publish further versions of a definition."""

        def further(found: Object) -> None:
            found["spec"]["versions"] += versions

        metadata = {"name": of, "namespace": "vela-system"}
        made = {
            "apiVersion": "core.oam.dev/v2beta1",
            "kind": "ComponentDefinition",
            "metadata": metadata,
            "spec": {"versions": [*versions]},
        }
        there = [each["metadata"]["name"] for each in self.request("GET", DEFINITIONS)["items"]]
        if of in there:
            edited(self.request, f"{DEFINITIONS}/{of}", further)
        else:
            self.request("POST", DEFINITIONS, made)

    def applications(self, number: int, **labels: str) -> None:
        for each in range(number):
            self.application(f"app-{each}", labels=labels)

    def application(
        self,
        name: str,
        *,
        asks: str = "web@1",
        properties: Object | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        component = {"name": name, "type": asks, "properties": properties or {}}
        self.request(
            "POST",
            APPLICATIONS,
            {
                "apiVersion": "core.oam.dev/v1beta1",
                "kind": "Application",
                "metadata": {"name": name, "labels": {**(labels or {})}},
                "spec": {"components": [component]},
            },
        )

    def policy(self, *steps: Object, of: str = "web", **rules: Any) -> None:
        name = "careful" if of == "web" else f"careful-{of}"
        spec = {"targets": [{**TARGET, "name": of}], "steps": [*steps], **rules}
        self.request(
            "POST",
            POLICIES,
            {
                "apiVersion": "polyver.dev/v1alpha1",
                "kind": "RolloutPolicy",
                "metadata": {"name": name},
                "spec": spec,
            },
        )

        def ready() -> bool:
            found = self.request("GET", f"{POLICIES}/{name}")
            conditions = (found.get("status") or {}).get("conditions") or []
            return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

        eventually(ready)

    def versions(self) -> dict[str, str]:
        """The version that each application uses."""
        found = self.request("GET", APPLICATIONS)["items"]
        return {
            each["metadata"]["name"]: (each.get("status") or {})["resolutions"][0]["version"]
            for each in found
            if (each.get("status") or {}).get("resolutions")
        }

    def written(self) -> dict[str, str]:
        """The version whose objects are applied, by application."""
        found = self.request("GET", MAPS)["items"]
        maps = [each for each in found if each["metadata"]["name"].startswith("app-")]
        return {each["metadata"]["name"]: each["data"]["from"] for each in maps}

    def rollout(self, name: str = "web-1.0.1") -> Object:
        found: Object = self.request("GET", f"{ROLLOUTS}/{name}")
        return found

    def status(self, name: str = "web-1.0.1") -> Object:
        """The status of a rollout; empty if there is none."""
        try:
            return self.rollout(name).get("status") or {}
        except ApiError:
            return {}

    def state(self, name: str = "web-1.0.1") -> tuple[str, str]:
        status = self.rollout(name).get("status") or {}
        return status.get("state", ""), status.get("step", "")

    def reaches(self, state: str, step: str, name: str = "web-1.0.1") -> Object:
        """Wait until a rollout is in a state and a step; return its status."""

        def there() -> Object | None:
            try:
                found = self.rollout(name)
            except ApiError:
                return None
            status: Object = found.get("status") or {}
            return status if (status.get("state"), status.get("step")) == (state, step) else None

        try:
            return eventually(there)
        except BaseException as error:
            raise AssertionError(f"{self.rollout(name).get('status')}") from error

    def ask(self, name: str = "web-1.0.1", **asked: Any) -> None:
        """Set paused, approvedStep or aborted in the spec of a rollout."""

        def change(obj: Object) -> None:
            obj["spec"] |= asked

        edited(self.request, f"{ROLLOUTS}/{name}", change)

    def history(self, name: str = "web-1.0.1") -> Sequence[tuple[str, int]]:
        status = self.rollout(name)["status"]
        return [(each["state"], each["step"]) for each in status["history"]]


@contextmanager
def releasing(*, allow_http: Sequence[str] = ()) -> Iterator[Releasing]:
    chosen = ("apis", "definitions")
    with EmbeddedServer(capabilities=chosen, allow_http=allow_http) as server:
        yield Releasing(server)


# Replicas of `polyver run`.


def _converts(made: Replicated) -> bool:
    """Report whether the API server calls a replica to convert definitions, if it has any.

    The installation names a Service, which is not there; each replica writes its own URL.
    """
    crds = made.request("GET", CRDS)["items"]
    kinds = {each["metadata"]["name"] for each in crds if each["spec"]["group"] == "core.oam.dev"}
    if "componentdefinitions.core.oam.dev" not in kinds:
        return True
    metadata = {"name": "tried", "namespace": "vela-system"}
    tried = {"apiVersion": "core.oam.dev/v2beta1", "kind": "ComponentDefinition"}
    content = {**tried, "metadata": metadata, "spec": {"versions": [version("1.0.0")]}}
    try:
        made.request("POST", f"{DEFINITIONS}?dryRun=All", content)
    except ApiError:
        return False
    return True


@dataclass
class Replicated:
    """A server with polyver installed on it, and replicas of `polyver run` in processes."""

    server: Server
    balancer: Balancer
    options: Sequence[str]
    """The options of each replica."""
    running: list[Replica] = field(default_factory=list)

    def request(self, method: str, path: str, body: object = None) -> Any:
        return ask(self.server, method, path, body)

    def start(self) -> None:
        self.running.append(Replica(self.server, self.balancer, *self.options))

    def kill_leader(self) -> None:
        """Kill the leader, once there is one among the replicas that run."""

        def leader() -> Replica | None:
            holder = self.request("GET", LEASE)["spec"].get("holderIdentity")
            return next((each for each in self.running if each.identity == holder), None)

        killed = eventually(leader)
        self.running.remove(killed)
        killed.end(signal.SIGKILL)

    def end(self) -> None:
        for each in self.running:
            each.end()
        self.balancer.close()


@contextmanager
def replicated(
    server: Server, count: int, chosen: Sequence[str] = CHOSEN, *options: str
) -> Iterator[Replicated]:
    """Install polyver with definitions, or with other capabilities, and run so many replicas."""
    installing = [sys.executable, "-m", "polyver", "install", "--image", "a:1", *chosen]
    environment = {**os.environ, "KUBECONFIG": str(server.kubeconfig)}
    subprocess.run(installing, env=environment, check=True, capture_output=True, timeout=HANG)
    made = Replicated(server, Balancer(), (*chosen, *options))
    try:
        for _ in range(count):
            made.start()
        eventually(lambda: _converts(made), every=0.1)
        yield made
    finally:
        made.end()
