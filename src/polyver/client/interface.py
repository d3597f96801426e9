"""The interface of controllers to an API server: plain data, always in a stated API version.

Two implementations: `in_process` calls the embedded server's own pipeline, `cluster` talks to
kube-apiserver. Code that needs an API server uses this interface and runs with both.
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
        """Return the path of an object, a subresource, or the collection."""
        root = f"/apis/{self.group}" if self.group else "/api"
        inside = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        named = f"/{name}" if name else ""
        part = f"/{subresource}" if subresource else ""
        return f"{root}/{self.version}{inside}/{self.plural}{named}{part}"


CRDS = GroupVersionResource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
)
"""CustomResourceDefinitions."""


class WatchEvent(NamedTuple):
    """One event of a watch; a bookmark has only a resourceVersion."""

    type: EventType
    object: Object


class Listing(NamedTuple):
    """One page of a collection, its resourceVersion, and the token for the next page."""

    items: list[Object]
    resource_version: str
    more: str = ""


@dataclass(frozen=True, slots=True)
class Discovery:
    """All kinds that a server serves, in every version, the preferred versions first."""

    kinds: tuple[ResourceKind, ...] = ()
    failures: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Errors by group version, such as those of an aggregated server that is down. Their kinds
    may exist; it is unknown.
    """

    def find(self, api_version: str, kind: str) -> ResourceKind | None:
        """Return the kind that an object or an owner reference names, if it is served."""
        return next(
            (each for each in self.kinds if (each.api_version, each.kind) == (api_version, kind)),
            None,
        )


def preferred(kinds: Iterable[ResourceKind], *, verbs: Sequence[str] = ()) -> list[ResourceKind]:
    """Return each kind once, in the version that the server prefers among those with these verbs.

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
    """The API of a server for one user. Errors of the server are raised as ApiError.

    With `metadata`, responses are PartialObjectMetadata: less to send, decode and keep.
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
        """Return an object, or a subresource."""

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
        """Return the objects of one namespace or of all; `more` of a page gets the next one."""

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
        """Yield every change after a resourceVersion, until the server ends the watch.

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
        """Create an object, in its own namespace or in the given one."""

    async def update(
        self,
        resource: GroupVersionResource,
        content: Object,
        *,
        subresource: str = "",
        manager: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Replace an object or a subresource; a resourceVersion must still be the current one."""

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
        """Patch an object or a subresource."""

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
        """Apply (server-side): own the fields in the content, and no others."""

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
        """Delete an object; a uid or a resourceVersion must match.

        Returns the object while finalizers keep it, else usually a Status.
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
        """Delete all objects that a list would return."""

    async def release(self) -> Object:
        """Return the version of the server: `major`, `minor`, `gitVersion`, and more."""

    async def discover(self) -> Discovery:
        """Return the kinds that are served now."""

    def watch_kinds(self) -> AsyncGenerator[Discovery, None]:
        """Yield the kinds that are served now, and again after each change."""


class Executed(NamedTuple):
    """The result of a command in a pod: its exit code, and its output."""

    code: int
    stdout: bytes
    stderr: bytes
    output: bytes
    """Both streams, in order of arrival."""


@runtime_checkable
class PodClient(Protocol):
    """Operations of a client on clusters that run pods."""

    async def execute(
        self, pod: str, namespace: str, *, container: str, command: Sequence[str], limit: int
    ) -> Executed:
        """Run a command in a container until it ends; it may print at most `limit` bytes."""

    async def logs(self, pod: str, namespace: str, *, container: str, limit: int) -> bytes:
        """Return the output of a container, at most `limit` bytes."""


async def find(
    client: Client, resource: GroupVersionResource, name: str, namespace: str = ""
) -> Object | None:
    """Return an object, or None if there is none of that name."""
    try:
        return await client.get(resource, name, namespace)
    except ApiError as error:
        if error.code == 404:
            return None
        raise
