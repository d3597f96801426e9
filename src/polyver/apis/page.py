"""The capability `apis` on the web page: kinds, and the API versions that their objects use.

A lineage is a kind, and a dependent is an object of the kind. The managedFields of an object name
the API version in which each field manager wrote. The page shows these versions as the versions
that the object uses. If a kind has a single version, its objects are not read, because they all use
this version.

The VersionUsage of a kind has the requests to each version, which the page shows with the version.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from polyver.apis.manifests import lineage_of
from polyver.apis.policy import APIS
from polyver.apis.version_usage import VERSION_USAGE_RESOURCE
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
    PageTable,
    ReleaseDetails,
    UnresolvedRequest,
    WatchedCollection,
)

__all__ = ["ApisSource"]

_CAPABILITY = "apis"


@dataclass(frozen=True, slots=True)
class _Usage:
    """The counted requests to a kind: the text and the clients of each version."""

    name: str
    """The name of the kind's CustomResourceDefinition."""
    since: str
    texts: tuple[tuple[str, str], ...]
    tables: tuple[tuple[str, PageTable], ...]


_NOT_COUNTED = _Usage("", "", (), ())


@dataclass(frozen=True, slots=True)
class _Kind:
    name: str
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
        self._kinds: dict[str, _Kind] = {}
        self._usages: dict[str, _Usage] = {}
        following.follow(self, WatchedCollection(CRDS, _kind, self._observe_kind))
        usages = WatchedCollection(VERSION_USAGE_RESOURCE, _usage, self._observe_usage)
        following.follow(self, usages)

    async def _observe_usage(self, change: Change[_Usage]) -> None:
        name = change.key.name
        if change.after is None:
            self._usages.pop(name, None)
        else:
            self._usages[name] = change.after
        if name in self._kinds:
            self._show(self._kinds[name])

    def _show(self, kind: _Kind) -> None:
        self._kinds[kind.name] = kind
        self._book.show(_shown(kind, self._usages.get(kind.name, _NOT_COUNTED)))

    async def _observe_kind(self, change: Change[_Kind]) -> None:
        before, after = change.before, change.after
        if before is not None and (after is None or after.resource != before.resource):
            await self._leave(before)
        if before is not None and (after is None or after.where != before.where):
            self._book.hide(before.where)
        if after is None:
            self._kinds.pop(change.key.name, None)
            return
        self._show(after)
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
        obj["metadata"]["name"],
        spec["group"],
        names["kind"],
        resource,
        lineage.releases,
        next((each["name"] for each in versions if each.get("storage")), ""),
        tuple((obj.get("status") or {}).get("storedVersions") or ()),
    )


def _shown(kind: _Kind, usage: _Usage) -> PageLineage:
    lineage = Lineage(kind.kind, kind.releases)
    details = {each.name: _details(kind, usage, each) for each in lineage}
    return PageLineage(
        kind.where,
        lineage,
        APIS,
        "kind",
        scope=kind.group,
        facts={"requests counted since": usage.since} if usage.since else {},
        details=details,
        is_counted=kind.resource is not None,
    )


def _details(kind: _Kind, usage: _Usage, release: Release) -> ReleaseDetails:
    marks: tuple[str, ...] = ("stored before",) if release.name in kind.stored else ()
    if release.name == kind.storage:
        marks = ("storage",)
    text = dict(usage.texts).get(release.name, "no requests" if usage.since else "")
    return ReleaseDetails(text, marks, dict(usage.tables).get(release.name))


def _usage(obj: Object) -> _Usage:
    status = obj.get("status") or {}
    versions = status.get("versions") or ()
    return _Usage(
        obj["metadata"]["name"],
        str(status.get("since") or ""),
        tuple((each["version"], _requests(each)) for each in versions),
        tuple((each["version"], _clients(each)) for each in versions if each.get("clients")),
    )


def _requests(version: Object) -> str:
    """Return the requests to a version in words, such as `3 requests, the last at …`.

    If webhooks have counted, the words also state how often API servers converted to this version.
    """
    found = _number(version["requests"], "request")
    if version["requests"]:
        found += f", the last at {version.get('lastRequest')}"
    if others := version.get("otherClients"):
        found += f" ({others:,} by other clients)"
    if conversions := version.get("conversions"):
        found += f"; {_number(conversions, 'conversion')} to this version"
        found += f", the last at {version.get('lastConversion')}"
    return found


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}" if count else f"no {noun}s"


def _clients(version: Object) -> PageTable:
    rows = tuple(
        (each["user"], each.get("userAgent") or "", f"{each['requests']:,}", each["lastRequest"])
        for each in version["clients"]
    )
    return PageTable("Clients", ("User", "User agent", "Requests", "Last request"), rows)


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
