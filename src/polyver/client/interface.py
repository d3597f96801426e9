"""What controllers know of an API server: objects as plain data, always in a stated API version.

Two implementations: `direct` calls the embedded server's own pipeline, `cluster` speaks to a real
one. Whoever needs an API server is written against this port and runs with both.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError

__all__ = [
    "CRDS",
    "Client",
    "Discovery",
    "EventType",
    "Executed",
    "GroupVersionResource",
    "Listing",
    "PatchType",
    "PodClient",
    "Propagation",
    "WatchEvent",
    "find",
    "preferred",
]

"""An object as JSON has it."""

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


class Client(Protocol):
    """An API server, seen by one user of it. What it refuses is raised as an ApiError.

    With `metadata` the answers are PartialObjectMetadata: less to send, decode and keep.
    """

    async def get(
        self,
        resource: GroupVersionResource,
        name: str,
        namespace: str = "",
        *,
        subresource: str = "",
        metadata: bool = False,
    ) -> Object:
        """An object, or a part of it that has a path of its own."""

    async def list(
        self,
        resource: GroupVersionResource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        resource_version: str = "",
        limit: int = 0,
        more: str = "",
        metadata: bool = False,
    ) -> Listing:
        """The objects of a namespace or of all; `more` of an earlier page goes on after it."""

    def watch(
        self,
        resource: GroupVersionResource,
        namespace: str = "",
        *,
        resource_version: str,
        labels: str = "",
        fields: str = "",
        metadata: bool = False,
        timeout: int = 0,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Every change after a resourceVersion, until the server ends it, as it may at any time.

        A resourceVersion that is too old is an ApiError with the code 410. Close it with
        `contextlib.aclosing`.
        """

    async def create(
        self,
        resource: GroupVersionResource,
        content: Object,
        namespace: str = "",
        *,
        manager: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Make an object, in its own namespace or in the one that is given."""

    async def update(
        self,
        resource: GroupVersionResource,
        content: Object,
        *,
        subresource: str = "",
        manager: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Replace an object, or its part; with a resourceVersion only if it is still that one."""

    async def patch(
        self,
        resource: GroupVersionResource,
        name: str,
        namespace: str = "",
        *,
        change: object,
        type: PatchType = "merge",  # noqa: A002
        subresource: str = "",
        manager: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Change an object, or its part."""

    async def apply(
        self,
        resource: GroupVersionResource,
        content: Object,
        *,
        manager: str,
        force: bool = False,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Server-side apply: own what the content states, and nothing else."""

    async def delete(
        self,
        resource: GroupVersionResource,
        name: str,
        namespace: str = "",
        *,
        propagation: Propagation | None = None,
        uid: str = "",
        resource_version: str = "",
        grace: int | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Delete an object; with a uid or a resourceVersion only the very one.

        Answers with the object while finalizers hold it, else mostly with a Status.
        """

    async def delete_collection(
        self,
        resource: GroupVersionResource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        propagation: Propagation | None = None,
    ) -> None:
        """Delete all that a list would show."""

    async def release(self) -> Object:
        """What the server says that it is: `major`, `minor`, `gitVersion`, and more."""

    async def discover(self) -> Discovery:
        """What is served now."""

    def watch_kinds(self) -> AsyncGenerator[Discovery, None]:
        """What is served now, and again whenever that has changed."""


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


async def find(
    client: Client, resource: GroupVersionResource, name: str, namespace: str = ""
) -> Object | None:
    """An object, or None if there is none of that name."""
    try:
        return await client.get(resource, name, namespace)
    except ApiError as error:
        if error.code == 404:
            return None
        raise
