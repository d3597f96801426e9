"""Values that clients of an API server exchange: resources, events, lists, discovery."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from polyver.core.plain import Object, ReadOnlyObject
from polyver.kube.objects.kinds import ResourceKind

__all__ = [
    "CRDS",
    "Discovery",
    "EventType",
    "Executed",
    "GroupVersionResource",
    "Listing",
    "PatchType",
    "PodClient",
    "Propagation",
    "WatchEvent",
    "precondition",
    "preferred",
]

EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
PatchType = Literal["merge", "json", "strategic"]
Propagation = Literal["Background", "Foreground", "Orphan"]


@dataclass(frozen=True, slots=True)
class GroupVersionResource:
    """A resource in the API version that the caller uses.

    >>> GroupVersionResource("ex.io", "v1", "widgets").path("a", "b")
    '/apis/ex.io/v1/namespaces/b/widgets/a'
    >>> namespaces = GroupVersionResource("", "v1", "namespaces", namespaced=False)
    >>> namespaces.path("a", subresource="finalize")
    '/api/v1/namespaces/a/finalize'
    """

    group: str
    version: str
    plural: str
    namespaced: bool = True

    @classmethod
    def of(cls, kind: ResourceKind) -> GroupVersionResource:
        return cls(kind.group, kind.version, kind.plural, kind.namespaced)

    def path(self, name: str = "", namespace: str = "", *, subresource: str = "") -> str:
        """Return the URL path of an object, of a subresource, or of the collection."""
        root = f"/apis/{self.group}" if self.group else "/api"
        inside = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        named = f"/{name}" if name else ""
        part = f"/{subresource}" if subresource else ""
        return f"{root}/{self.version}{inside}/{self.plural}{named}{part}"


CRDS = GroupVersionResource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
)
"""The resource CustomResourceDefinition, in the version v1."""


class WatchEvent(NamedTuple):
    """One event of a watch. The object of a BOOKMARK event has only a resourceVersion."""

    type: EventType
    object: Object


class Listing(NamedTuple):
    """One page of a collection, its resourceVersion, and the token for the next page."""

    items: list[Object]
    resource_version: str
    more: str = ""
    remaining: int = 0
    """The number of objects on the next pages; 0 if the server does not report it."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """All kinds that a server serves, in each of their versions; preferred versions are first."""

    kinds: tuple[ResourceKind, ...] = ()
    failures: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The errors of the group versions whose kinds could not be discovered, by group version.

    Discovery fails, for example, if an aggregated API server is down. It is then unknown which
    kinds these group versions have.
    """

    def find(self, api_version: str, kind: str) -> ResourceKind | None:
        """Return the kind with this apiVersion and name; None if the server does not serve it."""
        return next(
            (each for each in self.kinds if (each.api_version, each.kind) == (api_version, kind)),
            None,
        )


def precondition(obj: ReadOnlyObject) -> Object:
    """Return the uid and resourceVersion of an object, as metadata for a patch.

    With this metadata, the server refuses the patch if the object has changed.
    """
    return {name: obj["metadata"][name] for name in ("uid", "resourceVersion")}


def preferred(kinds: Iterable[ResourceKind], *, verbs: Sequence[str] = ()) -> list[ResourceKind]:
    """Return each kind once: of the versions that support these verbs, the preferred version.

    >>> names = ("Widget", "widgets", "widget", True)
    >>> v1, v2 = (ResourceKind("ex.io", version, *names) for version in ("v1", "v2"))
    >>> [kind.version for kind in preferred([v2, v1])]
    ['v2']
    """
    found: dict[tuple[str, str], ResourceKind] = {}
    for kind in kinds:
        if set(verbs) <= set(kind.verbs):
            found.setdefault((kind.group, kind.plural), kind)
    return list(found.values())


class Executed(NamedTuple):
    """The exit code and the output, in bytes, of a command in a pod."""

    code: int
    stdout: bytes
    stderr: bytes
    output: bytes
    """Standard output and standard error together, in order of arrival."""


@runtime_checkable
class PodClient(Protocol):
    """A client that can run commands in pods and read their logs."""

    async def execute(
        self, pod: str, namespace: str, *, container: str, command: Sequence[str], limit: int
    ) -> Executed:
        """Run a command in a container until it ends. Its output may have at most `limit` bytes."""

    async def logs(self, pod: str, namespace: str, *, container: str, limit: int) -> bytes:
        """Return the output of a container, at most `limit` bytes."""
