"""The capability `apis` on the web page: kinds, and the API versions that their objects use.

A lineage is a kind, and a dependent is an object of the kind. The managedFields of an object name
the API version in which each field manager wrote. The page shows these versions as the versions
that the object uses. If a kind has a single version, its objects are not read, because they all use
this version.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from polyver.apis.manifests import lineage_of
from polyver.apis.policy import APIS
from polyver.client import CRDS, Change, GroupVersionResource, Key
from polyver.core import (
    Dependent,
    Exact,
    InvalidVersion,
    KubeVersion,
    Lineage,
    PolyverError,
    Release,
)
from polyver.core.plain import Object
from polyver.web.sources import (
    LineageKey,
    LineageRequest,
    PageInformers,
    PageLineage,
    PageModel,
    PageSource,
    ReleaseDetails,
    UnresolvedRequest,
    WatchedCollection,
)

__all__ = ["ApisSource"]

_CAPABILITY = "apis"


@dataclass(frozen=True, slots=True)
class _Kind:
    group: str
    kind: str
    resource: GroupVersionResource | None
    """The resource from which the objects of the kind are read, in one version of the kind.

    None if the objects are not read: the kind has a single version, or no version is served.
    """
    releases: tuple[Release, ...]
    storage: str
    stored: tuple[str, ...]

    @property
    def where(self) -> LineageKey:
        return LineageKey(_CAPABILITY, f"{self.group}/{self.kind}")


@dataclass(frozen=True, slots=True)
class _Written:
    uid: str
    labels: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]
    """The field manager and the API version of each managedFields entry."""


class ApisSource(PageSource):
    """Shows the kinds and their objects on the page."""

    capability = _CAPABILITY
    description = "kinds and their API versions"

    def open(self, book: PageModel, following: PageInformers) -> None:
        self._book = book
        self._following = following
        following.follow(self, WatchedCollection(CRDS, _kind, self._observe_kind))

    async def _observe_kind(self, change: Change[_Kind]) -> None:
        before, after = change.before, change.after
        if before is not None and (after is None or after.resource != before.resource):
            await self._leave(before)
        if before is not None and (after is None or after.where != before.where):
            self._book.hide(before.where)
        if after is None:
            return
        self._book.show(_shown(after))
        if after.resource is not None:
            observe = partial(self._observe_object, after)
            self._following.follow(
                self, WatchedCollection(after.resource, _written, observe, metadata=True)
            )

    async def _leave(self, kind: _Kind) -> None:
        if kind.resource is None:
            return
        for key in await self._following.unfollow(self, kind.resource):
            self._book.ask(_CAPABILITY, _name(kind, key))

    async def _observe_object(self, kind: _Kind, change: Change[_Written]) -> None:
        name, found = _name(kind, change.key), change.after
        about = Dependent(name, uid=found.uid, labels=dict(found.labels)) if found else Dependent()
        places = [_asked(about, kind.where, *each) for each in found.versions] if found else []
        self._book.ask(_CAPABILITY, name, places)


def _name(kind: _Kind, key: Key) -> str:
    # The group is part of the name, because kinds of two groups may have the same name.
    return f"{kind.kind}.{kind.group} {'/'.join(filter(None, key))}"


def _asked(
    about: Dependent, where: LineageKey, at: str, version: str
) -> LineageRequest | UnresolvedRequest:
    dependent = Dependent(about.name, at, about.uid, about.labels)
    try:
        return LineageRequest(dependent, where, version, _selector(version), APIS)
    except InvalidVersion as error:
        return UnresolvedRequest(dependent, version, error.fact, error.hint)


@lru_cache(maxsize=1024)
def _selector(version: str) -> Exact:
    return Exact(KubeVersion.parse(version))


def _kind(obj: Object) -> _Kind:
    spec = obj["spec"]
    names, versions = spec["names"], spec["versions"]
    try:
        lineage = lineage_of(obj)
    except PolyverError:
        lineage = Lineage(names["kind"])  # no server would accept such a CRD
    served = [
        release.name for release in reversed(lineage.releases) if release.stage in APIS.usable
    ]
    resource: GroupVersionResource | None = None
    if served and len(versions) > 1:
        namespaced = spec.get("scope") == "Namespaced"
        resource = GroupVersionResource(spec["group"], served[0], names["plural"], namespaced)
    return _Kind(
        spec["group"],
        names["kind"],
        resource,
        lineage.releases,
        next((each["name"] for each in versions if each.get("storage")), ""),
        tuple((obj.get("status") or {}).get("storedVersions") or ()),
    )


def _shown(kind: _Kind) -> PageLineage:
    lineage = Lineage(kind.kind, kind.releases)
    details = {each.name: _details(kind, each) for each in lineage}
    return PageLineage(
        kind.where,
        lineage,
        APIS,
        "kind",
        scope=kind.group,
        details=details,
        is_counted=kind.resource is not None,
    )


def _details(kind: _Kind, release: Release) -> ReleaseDetails:
    if release.name == kind.storage:
        return ReleaseDetails(marks=("storage",))
    return ReleaseDetails(marks=("stored before",) if release.name in kind.stored else ())


def _written(obj: Object) -> _Written:
    metadata: dict[str, Any] = obj["metadata"]
    found: dict[str, str] = {}
    for entry in metadata.get("managedFields") or ():
        version = str(entry.get("apiVersion") or "").rpartition("/")[2]
        words = [entry.get("manager") or "unknown", entry.get("subresource")]
        at = f"metadata.managedFields[{' '.join(filter(None, words))}]"
        if found.get(at, version) != version:
            at = f"{at[:-1]} {version}]"
        found[at] = version
    labels = tuple((metadata.get("labels") or {}).items())
    return _Written(metadata.get("uid", ""), labels, tuple(found.items()))
