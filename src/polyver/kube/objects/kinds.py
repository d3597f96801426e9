"""Kinds as discovery lists them: their names, scope and verbs."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["CUSTOM_VERBS", "ResourceKind", "Subresource"]

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


@dataclass(frozen=True, slots=True)
class Subresource:
    """A part of an object with its own path: status, scale, finalize."""

    name: str
    verbs: tuple[str, ...] = ("get", "patch", "update")
    group: str | None = None
    """The group, version and kind that the path serves, if it is not the object itself."""
    version: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class ResourceKind:
    """One kind in one API version."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = VERBS
    subresources: tuple[Subresource, ...] = ()
    custom: bool = False
    storage_hash: str = ""
    """A hash of the stored version, by which clients notice that it changes."""
    api_version: str = field(init=False)
    resource: str = field(init=False)
    """The name in error messages: `configmaps`, `widgets.ex.io`."""

    def __post_init__(self) -> None:
        group = f"{self.group}/" if self.group else ""
        object.__setattr__(self, "api_version", f"{group}{self.version}")
        suffix = f".{self.group}" if self.group else ""
        object.__setattr__(self, "resource", f"{self.plural}{suffix}")
        object.__setattr__(self, "list_kind", self.list_kind or f"{self.kind}List")

    @property
    def qualified(self) -> str:
        """The kind in error messages: `ConfigMap`, `Widget.ex.io`."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    def subresource(self, name: str) -> Subresource | None:
        return next((each for each in self.subresources if each.name == name), None)
