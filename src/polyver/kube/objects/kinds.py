"""Kinds in the form in which API discovery lists them: names, scope, verbs and subresources."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["CUSTOM_VERBS", "ResourceKind", "Subresource"]

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


@dataclass(frozen=True, slots=True)
class Subresource:
    """A part of an object with its own URL path, such as status, scale or finalize."""

    name: str
    verbs: tuple[str, ...] = ("get", "patch", "update")
    group: str | None = None
    """The API group of the subresource's own kind, such as `autoscaling` for Scale.

    None if the subresource has the kind of the object. `version` and `kind` belong to this group.
    """
    version: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class ResourceKind:
    """One kind in one API version: its names, its scope, its verbs and its subresources."""

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
    """A hash of the version in which objects are stored.

    When it changes, clients know that this version has changed.
    """
    api_version: str = field(init=False)
    resource: str = field(init=False)
    """The name of the resource in error messages, such as `configmaps` or `widgets.ex.io`."""

    def __post_init__(self) -> None:
        group = f"{self.group}/" if self.group else ""
        object.__setattr__(self, "api_version", f"{group}{self.version}")
        suffix = f".{self.group}" if self.group else ""
        object.__setattr__(self, "resource", f"{self.plural}{suffix}")
        object.__setattr__(self, "list_kind", self.list_kind or f"{self.kind}List")

    @property
    def qualified(self) -> str:
        """The name of the kind in error messages, such as `ConfigMap` or `Widget.ex.io`."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    def subresource(self, name: str) -> Subresource | None:
        return next((each for each in self.subresources if each.name == name), None)
