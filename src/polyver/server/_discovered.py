"""Aggregated discovery, read back into the kinds that it was written from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from polyver.client.port import Discovery, Object
from polyver.objects.kinds import Kind, Subresource

__all__ = ["read_discovery"]


class _Named(Struct):
    name: str = ""


class _Gvk(Struct):
    group: str = ""
    version: str = ""
    kind: str = ""


class _Part(Struct, rename="camel"):
    subresource: str
    verbs: tuple[str, ...] = ()
    response_kind: _Gvk | None = None


class _Resource(Struct, rename="camel"):
    resource: str
    scope: str
    verbs: tuple[str, ...] = ()
    response_kind: _Gvk | None = None
    singular_resource: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[_Part, ...] = ()


class _Version(Struct):
    version: str
    resources: tuple[_Resource, ...] = ()
    freshness: str = "Current"


class _Group(Struct):
    metadata: _Named = msgspec.field(default_factory=_Named)
    versions: tuple[_Version, ...] = ()


class _Groups(Struct):
    items: tuple[_Group, ...] = ()


def read_discovery(answers: Iterable[Object]) -> Discovery:
    """All kinds in the order of the answers, which is that of preference."""
    groups = [group for each in answers for group in msgspec.convert(each, _Groups).items]
    kinds = [kind for group in groups for kind in _kinds(group)]
    return Discovery(tuple(kinds), dict(_stale(groups)))


def _kinds(group: _Group) -> Iterator[Kind]:
    for version in group.versions:
        for resource in version.resources:
            yield _kind(group.metadata.name, version.version, resource)


def _kind(group: str, version: str, resource: _Resource) -> Kind:
    return Kind(
        group=group,
        version=version,
        kind=resource.response_kind.kind if resource.response_kind else "",
        plural=resource.resource,
        singular=resource.singular_resource,
        namespaced=resource.scope == "Namespaced",
        short_names=resource.short_names,
        categories=resource.categories,
        verbs=resource.verbs,
        subresources=tuple(map(_part, resource.subresources)),
    )


def _part(part: _Part) -> Subresource:
    kind = part.response_kind or _Gvk()
    return Subresource(
        name=part.subresource,
        verbs=part.verbs,
        group=kind.group,
        version=kind.version,
        kind=kind.kind,
    )


def _stale(groups: Iterable[_Group]) -> Iterator[tuple[str, str]]:
    for group in groups:
        for version in group.versions:
            if version.freshness == "Stale":
                name = group.metadata.name
                gv = f"{name}/{version.version}" if name else version.version
                yield gv, f"stale GroupVersion discovery: {gv}"
