"""What every walk needs: a place of its own on a server, and the kinds that it puts there."""

from __future__ import annotations

import http
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from tests.deadlines import HANG

from polyver.kube.objects.status import ApiError
from polyver.testing._requests import ask

PATIENCE = HANG
T = TypeVar("T")


class Server(Protocol):
    """What polyver's server and a real one have in common."""

    url: str
    ca_file: Path
    token: str
    kubeconfig: Path


@dataclass(frozen=True)
class Walk:
    """A namespace and an API group that no other walk uses."""

    server: Server
    namespace: str
    group: str

    @property
    def kubeconfig(self) -> Path:
        return self.server.kubeconfig

    @property
    def widgets_crd(self) -> str:
        return f"widgets.{self.group}"

    def widget(self, name: str, *, size: int = 1, **spec: Any) -> dict[str, Any]:
        return {
            "apiVersion": f"{self.group}/v1",
            "kind": "Widget",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"size": size, **spec},
        }

    def config_map(self, name: str, data: dict[str, str] | None = None, **meta: Any) -> Any:
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": self.namespace, **meta},
            "data": data or {},
        }

    def request(self, method: str, path: str, body: object = None) -> Any:
        return request(self.server, method, path, body)


def request(server: Server, method: str, path: str, body: object = None) -> Any:
    """Ask as the administrator, for what is done around a walk; None when it is not there."""
    try:
        return ask(server, method, path, body)
    except ApiError as error:
        if error.code != http.HTTPStatus.NOT_FOUND:
            raise
        return None


def eventually(
    ask: Callable[[], T | None], *, patience: float = PATIENCE, every: float = 0.02
) -> T:
    """What is asked for, once it is there: for what a server does in the background."""
    end = time.monotonic() + patience
    while True:
        found = ask()
        if found:
            return found
        assert time.monotonic() < end, "it did not happen"
        time.sleep(every)


def definition(group: str) -> dict[str, Any]:
    """The definition of Widgets: two versions, status, scale, columns, and rules."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "plural": "widgets",
                "singular": "widget",
                "kind": "Widget",
                "listKind": "WidgetList",
                "shortNames": ["wd"],
                "categories": ["things"],
            },
            "versions": [
                {"name": "v1", "served": True, "storage": True, **_version()},
                {
                    "name": "v1beta1",
                    "served": True,
                    "storage": False,
                    "deprecated": True,
                    **_version(),
                },
            ],
        },
    }


def _version() -> dict[str, Any]:
    return {
        "schema": {"openAPIV3Schema": _SCHEMA},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.size",
                "statusReplicasPath": ".status.size",
                "labelSelectorPath": ".status.selector",
            },
        },
        "selectableFields": [{"jsonPath": ".spec.color"}],
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
    }


_PART = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string"}, "weight": {"type": "integer"}},
}
_SCHEMA = {
    "type": "object",
    "description": "Something to walk with.",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "description": "What is wanted.",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 0, "description": "How many there are."},
                "color": {"type": "string", "enum": ["red", "green"], "default": "red"},
                "parts": {
                    "type": "array",
                    "items": _PART,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                },
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "selector": {"type": "string"},
                "phase": {"type": "string"},
                "seen": {"type": "integer"},
                "conditions": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "type": {"type": "string"},
                            "status": {"type": "string"},
                        },
                    },
                },
            },
        },
    },
}
