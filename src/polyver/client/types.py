"""Values that clients of an API server exchange: resources, events, lists, discovery."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from polyver.core.plain import Object
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
    "preferred",
]

EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
PatchType = Literal["merge", "json", "strategic"]
Propagation = Literal["Background", "Foreground", "Orphan"]


@dataclass(frozen=True, slots=True)
class GroupVersionResource:
    """A kind in the API version that the caller speaks.

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
        """Where the server has an object, a part of it, or the collection."""
        root = f"/apis/{self.group}" if self.group else "/api"
        inside = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        named = f"/{name}" if name else ""
        part = f"/{subresource}" if subresource else ""
        return f"{root}/{self.version}{inside}/{self.plural}{named}{part}"


CRDS = GroupVersionResource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
)
"""The definitions of custom kinds."""


class WatchEvent(NamedTuple):
    """One change as a watch tells it; a bookmark holds a resourceVersion and nothing else."""

    type: EventType
    object: Object


class Listing(NamedTuple):
    """Some objects of a collection, the state they are of, and how to go on after them."""

    items: list[Object]
    resource_version: str
    more: str = ""


@dataclass(frozen=True, slots=True)
class Discovery:
    """What a server serves now: every kind in every version, the preferred versions first."""

    kinds: tuple[ResourceKind, ...] = ()
    failures: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Of group versions that could not be asked for, such as those of an aggregated server that
    is down: the problem. Their kinds may exist, nobody knows."""

    def find(self, api_version: str, kind: str) -> ResourceKind | None:
        """The kind that an object or an owner reference names, if it is served."""
        return next(
            (each for each in self.kinds if (each.api_version, each.kind) == (api_version, kind)),
            None,
        )


def preferred(kinds: Iterable[ResourceKind], *, verbs: Sequence[str] = ()) -> list[ResourceKind]:
    """Each kind once, in the version that the server prefers among those with these verbs.

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
    """A command that has ended in a pod: its exit code, and what it printed."""

    code: int
    stdout: bytes
    stderr: bytes
    output: bytes
    """Both, in the order in which they came."""


@runtime_checkable
class PodClient(Protocol):
    """What a client can do where pods run, beyond the API of objects."""

    async def execute(
        self, pod: str, namespace: str, *, container: str, command: Sequence[str], limit: int
    ) -> Executed:
        """Run a command in a container to its end; `limit` is how many bytes it may print."""

    async def logs(self, pod: str, namespace: str, *, container: str, limit: int) -> bytes:
        """What a container has printed, not more than some bytes of it."""
