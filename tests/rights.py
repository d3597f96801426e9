"""Requests as API servers decide about them, and the rights that allow them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qs

from polyver.app.installing import Installation
from polyver.app.installing.manifests import rights, rights_inside
from polyver.capability.contributions import Right

__all__ = ["APISERVICES", "Asked", "Grant", "grants", "read_path"]


@dataclass(frozen=True)
class Asked:
    """One request as the server decides whether it is allowed."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        inside = f" in {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.resource}.{self.group} {self.name}{inside}"

    @property
    def attributes(self) -> dict[str, str]:
        plural, _, part = self.resource.partition("/")
        found = {"verb": self.verb, "group": self.group, "resource": plural, "subresource": part}
        return found | {"namespace": self.namespace, "name": self.name}


# Who may not see APIServices asks every minute what is served, and is told of definitions anyway.
APISERVICES = Asked("list", "apiregistration.k8s.io", "apiservices")
OWN_USER = Asked("create", "authentication.k8s.io", "selfsubjectreviews")
"""The question who the user is: the ClusterRole system:basic-user lets every user ask it."""


@dataclass(frozen=True)
class Grant:
    """One verb of one rule of one role."""

    role: str
    right: Right
    verb: str

    def __str__(self) -> str:
        named = f" {self.right.name}" if self.right.name else ""
        return f"{self.verb} {self.right.resource}{named}"

    def covers(self, asked: Asked) -> bool:
        right = self.right
        same = (asked.verb, asked.group, asked.resource) == (self.verb, right.group, right.resource)
        return same and right.name in ("", asked.name)

    def allows(self, asked: Asked) -> bool:
        inside = self.role == "cluster" or asked.namespace == "polyver-system"
        return inside and self.covers(asked)


def grants(wanted: Installation) -> list[Grant]:
    """Every right of an installation by itself."""
    found = {"cluster": rights(wanted), "namespace": rights_inside(wanted)}
    return [
        Grant(role, right, verb)
        for role, each in found.items()
        for right in each
        for verb in right.verbs
    ]


def read_path(method: str, path: str, query: str) -> Iterable[Asked]:
    """What a request asks for; nothing if that is no resource."""
    root, *steps = path.strip("/").split("/")
    group = steps.pop(0) if root == "apis" and steps else ""
    if len(steps) < 2:  # what is served
        return
    steps = steps[1:]
    namespace = steps[1] if steps[0] == "namespaces" and len(steps) > 2 else ""
    plural, name, part, *_ = [*(steps[2:] if namespace else steps), "", ""]
    options = parse_qs(query)
    if not name:
        _, _, name = options.get("fieldSelector", [""])[0].partition("metadata.name=")
    many = "watch" if "watch" in options else "list"
    reading = "get" if name and "fieldSelector" not in options else many
    verbs = {"POST": "create", "PUT": "update", "PATCH": "patch"}
    verbs["DELETE"] = "delete" if name else "deletecollection"
    resource = f"{plural}/{part}" if part else plural
    yield Asked(verbs.get(method, reading), group, resource, namespace, name)
