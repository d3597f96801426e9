"""What is said of a kind and its versions, whoever said it: classes in Python or a manifest.

Everything else about a kind starts from these values, so a kind written in Go is as good as ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from polyver.core import KubeVersion, PolyverError
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

Schema = Mapping[str, Any]
Scope = Literal["Namespaced", "Cluster"]


class InvalidKind(PolyverError):
    """A kind that cannot be: what is wrong with it, and the class or field that says so."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table that `kubectl get` prints.

    >>> Column("Schedule", ".spec.schedule")
    Column(name='Schedule', path='.spec.schedule', type='string')
    """

    name: str
    path: str
    """Where its value is: `.spec.schedule`."""
    type: Literal["string", "integer", "number", "boolean", "date"] = "string"
    format: str = field(default="", repr=False)
    description: str = field(default="", repr=False)
    priority: int = field(default=0, repr=False)
    """Columns above zero are printed with `-o wide` alone."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Where `kubectl scale` and autoscalers find the replicas of an object."""

    replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    selector: str = ""


@dataclass(frozen=True, slots=True)
class Names:
    """What a kind is called."""

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
    """What clients of a deprecated version are told; None leaves the words to the API server."""
    schema: Schema | None = None
    """The openAPIV3Schema; without one, every field is kept."""
    columns: tuple[Column, ...] = ()
    status: bool = False
    """Whether the status is written apart from the rest."""
    scale: Scale | None = None
    selectable: tuple[str, ...] = ()
    """The fields that a field selector may name: `.spec.colour`."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A kind, all its versions in kube order, and how objects get from one to another."""

    group: str
    names: Names
    versions: tuple[DefinedVersion, ...]
    scope: Scope = "Namespaced"
    strategy: Literal["None"] | None = None
    """`None` as text: versions differ in apiVersion only. Nothing: by webhook, or not said."""
    webhook: Webhook | None = None
    hub: str = ""
    """The version between the others; the one that is stored if nobody says."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    place: str = field(default="", compare=False)
    """Where it was written, for those who complain."""

    def __post_init__(self) -> None:
        ordered = sorted(self.versions, key=lambda v: KubeVersion.parse(v.name), reverse=True)
        object.__setattr__(self, "versions", tuple(ordered))
        object.__setattr__(self, "hub", self.hub or self.storage)

    @property
    def name(self) -> str:
        """The name of its CustomResourceDefinition."""
        return f"{self.names.plural}.{self.group}"

    @property
    def kind(self) -> str:
        return self.names.kind

    @property
    def storage(self) -> str:
        """The version that is stored; empty if nobody says."""
        return next((version.name for version in self.versions if version.storage), "")

    def api_version(self, version: str) -> str:
        return f"{self.group}/{version}"

    def version(self, name: str) -> DefinedVersion | None:
        return next((version for version in self.versions if version.name == name), None)
