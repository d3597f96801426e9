"""Read discovery documents into kinds: one aggregated document, or one for each group version.

Current servers return all groups at once; older ones, and some proxies, only each group version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from polyver.client.types import Discovery
from polyver.core.plain import Object
from polyver.kube.objects.codec import prepare
from polyver.kube.objects.kinds import ResourceKind, Subresource

__all__ = ["group_versions", "is_aggregated", "read_aggregated", "read_resources"]


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


prepare(_Groups)


def is_aggregated(answer: Object) -> bool:
    """Report whether this document contains everything."""
    return answer.get("kind") == "APIGroupDiscoveryList"


def read_aggregated(answer: Object) -> Discovery:
    """Return all kinds in the order of the document, which is the order of preference."""
    groups = msgspec.convert(answer, _Groups).items
    kinds = [kind for group in groups for kind in _kinds(group)]
    return Discovery(tuple(kinds), dict(_stale(groups)))


def _kinds(group: _Group) -> Iterator[ResourceKind]:
    for version in group.versions:
        for resource in version.resources:
            yield _kind(group.metadata.name, version.version, resource)


def _kind(group: str, version: str, resource: _Resource) -> ResourceKind:
    return ResourceKind(
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


# One document for each group version


class _OfGroup(Struct, rename="camel"):
    group_version: str


class _PlainGroup(Struct, rename="camel"):
    versions: tuple[_OfGroup, ...] = ()
    preferred_version: _OfGroup | None = None


class _PlainGroups(Struct):
    versions: tuple[str, ...] = ()
    """The versions of the core group; only the document of `/api` has this field."""
    groups: tuple[_PlainGroup, ...] = ()


class _PlainResource(Struct, rename="camel"):
    name: str
    kind: str
    namespaced: bool = False
    singular_name: str = ""
    group: str = ""
    version: str = ""
    verbs: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


class _PlainResources(Struct):
    resources: tuple[_PlainResource, ...] = ()


prepare(_PlainGroups, _PlainResources)


def group_versions(answer: Object) -> list[str]:
    """Return the group versions that `/api` or `/apis` lists, the preferred ones first."""
    found = msgspec.convert(answer, _PlainGroups)
    return [*found.versions, *(each for group in found.groups for each in _versions(group))]


def _versions(group: _PlainGroup) -> list[str]:
    first = [group.preferred_version] if group.preferred_version else []
    # The preferred version is also in the list of all versions.
    return [*dict.fromkeys(each.group_version for each in [*first, *group.versions])]


def read_resources(group_version: str, answer: Object) -> list[ResourceKind]:
    """Return the kinds of one group version."""
    group, _, version = group_version.rpartition("/")
    resources = msgspec.convert(answer, _PlainResources).resources
    parts: dict[str, list[Subresource]] = {}
    for each in resources:
        plural, _, part = each.name.partition("/")
        if part:
            other = (each.group, each.version, each.kind)
            parts.setdefault(plural, []).append(Subresource(part, each.verbs, *other))
    return [
        ResourceKind(
            group=group,
            version=version,
            kind=each.kind,
            plural=each.name,
            singular=each.singular_name,
            namespaced=each.namespaced,
            short_names=each.short_names,
            categories=each.categories,
            verbs=each.verbs,
            subresources=tuple(parts.get(each.name, ())),
        )
        for each in resources
        if "/" not in each.name
    ]
