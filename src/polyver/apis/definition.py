"""A kind and its versions as data (`Definition`), from classes in Python or from a manifest.

All other code uses a kind in this form. So this code works in the same way for a kind that is
declared in Python, and for a kind that is written in Go and read from its CustomResourceDefinition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from polyver.core import KubeVersion, PolyverError
from polyver.core.plain import Schema
from polyver.kube.objects.webhooks import Webhook

__all__ = [
    "Column",
    "DefinedVersion",
    "Definition",
    "InvalidKind",
    "Names",
    "Scale",
    "Schema",
    "Scope",
]

Scope = Literal["Namespaced", "Cluster"]


class InvalidKind(PolyverError):
    """A kind is invalid. The error names the class or the field that is wrong."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table that `kubectl get` prints.

    >>> Column("Schedule", ".spec.schedule")
    Column(name='Schedule', path='.spec.schedule', type='string')
    """

    name: str
    path: str
    """The JSONPath of the column's value: `.spec.schedule`."""
    type: Literal["string", "integer", "number", "boolean", "date"] = "string"
    format: str = field(default="", repr=False)
    description: str = field(default="", repr=False)
    priority: int = field(default=0, repr=False)
    """kubectl prints a column with a priority above zero only with `-o wide`."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The subresource scale: the paths of the replica counts and of the selector in the object.

    `kubectl scale` and autoscalers use this subresource.
    """

    replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    selector: str = ""


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a kind, as in `spec.names` of its CustomResourceDefinition."""

    kind: str
    plural: str
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DefinedVersion:
    """One version of a kind."""

    name: str
    served: bool = True
    storage: bool = False
    deprecated: bool = False
    warning: str | None = None
    """The warning for clients of a deprecated version; None for the default text of API servers."""
    schema: Schema | None = None
    """The openAPIV3Schema; None if there is none. An API server then keeps every field."""
    columns: tuple[Column, ...] = ()
    status: bool = False
    """True if the version has the subresource status."""
    scale: Scale | None = None
    selectable: tuple[str, ...] = ()
    """The fields that a field selector may name: `.spec.colour`."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A kind: its versions, sorted by Kubernetes version priority, and its conversion strategy."""

    group: str
    names: Names
    versions: tuple[DefinedVersion, ...]
    scope: Scope = "Namespaced"
    strategy: Literal["None"] | None = None
    """The conversion strategy that the declaration or the manifest states.

    The string "None" states that versions differ only in apiVersion. The Python value None means
    that a webhook converts, or that no strategy is stated.
    """
    webhook: Webhook | None = None
    hub: str = ""
    """The hub: the version in the centre of the tree of conversions.

    By default, it is the storage version.
    """
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    place: str = field(default="", compare=False)
    """The file and line of the kind's declaration, for errors."""

    def __post_init__(self) -> None:
        ordered = sorted(self.versions, key=lambda v: KubeVersion.parse(v.name), reverse=True)
        object.__setattr__(self, "versions", tuple(ordered))
        object.__setattr__(self, "hub", self.hub or self.storage)

    @property
    def name(self) -> str:
        """The name of the CustomResourceDefinition of the kind."""
        return f"{self.names.plural}.{self.group}"

    @property
    def kind(self) -> str:
        return self.names.kind

    @property
    def storage(self) -> str:
        """The storage version; empty if no version is marked as the storage version."""
        return next((version.name for version in self.versions if version.storage), "")

    def api_version(self, version: str) -> str:
        return f"{self.group}/{version}"

    def version(self, name: str) -> DefinedVersion | None:
        return next((version for version in self.versions if version.name == name), None)
