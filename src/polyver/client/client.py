"""The client of an API server that controllers use.

Objects are plain data in an API version that the caller states. `Client` builds the requests of the
Kubernetes API and reads the responses. A subclass sends the requests: the one in `in_process` calls
the embedded server without HTTP, and the one in `cluster` calls kube-apiserver over HTTPS. All
controllers can run with either of them.
"""

from __future__ import annotations

import asyncio
import builtins
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from contextlib import aclosing
from urllib.parse import urlencode

import msgspec

from polyver.client._responses import (
    JSON,
    BadAnswer,
    ClientRequest,
    ClientResponse,
    group_versions,
    is_aggregated,
    lines,
    read_aggregated,
    read_event,
    read_listing,
    read_object,
    read_resources,
    refusal,
)
from polyver.client.types import (
    Discovery,
    GroupVersionResource,
    Listing,
    PatchType,
    Propagation,
    WatchEvent,
)
from polyver.core.plain import Object
from polyver.kube.objects.codec import encode_json
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError
from polyver.languages.values.strings import quoted

__all__ = ["BadAnswer", "Client", "ClientRequest", "ClientResponse", "find", "path_of"]

_PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
_PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
_ALL = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
_GROUPS = ",".join([_ALL.format("v2"), _ALL.format("v2beta1"), JSON])
_PATCHES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
_LONGEST_LINE = 64 * 1024 * 1024
_AT_ONCE = 8


class Client(ABC):
    """A client of an API server for one user. It raises an ApiError if a request is refused.

    With the argument `metadata`, the server returns only the metadata of objects
    (PartialObjectMetadata), which makes responses smaller.
    """

    longest_line = _LONGEST_LINE
    """The maximum size of an event of a watch, in bytes."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, Discovery]] = {}

    @abstractmethod
    async def _send(self, ask: ClientRequest) -> ClientResponse:
        """Send a request; return the response, even if it is an error response."""

    @abstractmethod
    def _pieces(self, ask: ClientRequest) -> AsyncGenerator[bytes, None]:
        """Send a request; yield the body of the response in chunks, as they arrive.

        For an error response, raise an ApiError.
        """

    @abstractmethod
    def watch_kinds(self) -> AsyncGenerator[Discovery, None]:
        """Yield the kinds that the server serves now, and again after each change of them."""

    def _refused(self, ask: ClientRequest, answer: ClientResponse) -> ApiError:
        """Build the exception for an error response."""
        return refusal(answer, what=str(ask))

    async def get(
        self,
        resource: GroupVersionResource,
        name: str,
        namespace: str = "",
        *,
        subresource: str = "",
        metadata: bool = False,
    ) -> Object:
        """Read an object, or a subresource of an object."""
        path = path_of(resource, name, namespace, subresource)
        return await self._ask(ClientRequest("GET", path, accept=_PARTIAL if metadata else JSON))

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
        """List the objects of one namespace, or of all namespaces.

        `more` is the continue token of the previous page; it requests the next page.
        """
        query = _query(
            labelSelector=labels,
            fieldSelector=fields,
            resourceVersion=resource_version,
            limit=str(limit or ""),
            **{"continue": more},
        )
        accept = _PARTIAL_LIST if metadata else JSON
        ask = ClientRequest("GET", _collection(resource, namespace), query, accept)
        return read_listing(await self._ask(ask), ask)

    async def watch(
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
        """Yield every change after a resourceVersion until the server ends the watch.

        A server may end a watch at any time. If the resourceVersion is too old, the client raises
        an ApiError with the code 410. Close the generator with `contextlib.aclosing`.
        """
        query = _query(
            labelSelector=labels,
            fieldSelector=fields,
            watch="true",
            allowWatchBookmarks="true",
            resourceVersion=resource_version,
            timeoutSeconds=str(timeout or self._watch_seconds() or ""),
        )
        accept = _PARTIAL if metadata else JSON
        ask = ClientRequest("GET", _collection(resource, namespace), query, accept)
        async with aclosing(lines(self._pieces(ask), ask, most=self.longest_line)) as found:
            async for line in found:
                yield read_event(line, ask)

    def _watch_seconds(self) -> int:
        """Return the duration in seconds after which watches end; 0 lets the server choose it."""
        return 0

    async def create(
        self,
        resource: GroupVersionResource,
        content: Object,
        namespace: str = "",
        *,
        manager: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Create an object in `namespace`; by default, in the namespace that its metadata names."""
        path = _collection(resource, namespace or _namespace_of(content))
        return await self._write("POST", path, content, _writing(manager, dry_run))

    async def update(
        self,
        resource: GroupVersionResource,
        content: Object,
        *,
        subresource: str = "",
        manager: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Replace an object or a subresource by `content`.

        If `content` has a resourceVersion and the object has changed since then, the server refuses
        the update.
        """
        path = _path_of(resource, content, subresource)
        return await self._write("PUT", path, content, _writing(manager, dry_run))

    async def patch(
        self,
        resource: GroupVersionResource,
        name: str,
        namespace: str = "",
        *,
        change: object,
        type: PatchType = "merge",  # noqa: A002 - the usual name
        subresource: str = "",
        manager: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Change an object or a subresource by the patch `change`."""
        path = path_of(resource, name, namespace, subresource)
        query = _writing(manager, dry_run)
        return await self._write("PATCH", path, change, query, media=_PATCHES[type])

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
        """Apply an object by server-side apply; `manager` then owns the applied fields.

        With `force`, it also takes over fields that other field managers own.
        """
        path = _path_of(resource, content, subresource)
        query = _writing(manager, dry_run) | {"force": "true" if force else ""}
        return await self._write("PATCH", path, content, query, media=_PATCHES["apply"])

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
        """Delete an object; with `uid` or `resource_version`, only if this value has not changed.

        If finalizers delay the deletion, return the object. Otherwise, servers usually return a
        Status.
        """
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
        wanted = {"uid": uid, "resourceVersion": resource_version}
        if any(wanted.values()):
            options["preconditions"] = {key: value for key, value in wanted.items() if value}
        if propagation is not None:
            options["propagationPolicy"] = propagation
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        if dry_run:
            options["dryRun"] = ["All"]
        return await self._write("DELETE", path_of(resource, name, namespace), options, {})

    async def delete_collection(
        self,
        resource: GroupVersionResource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        propagation: Propagation | None = None,
    ) -> None:
        """Delete all objects that a list request with the same arguments would return."""
        query = _query(
            labelSelector=labels, fieldSelector=fields, propagationPolicy=propagation or ""
        )
        await self._ask(ClientRequest("DELETE", _collection(resource, namespace), query))

    async def release(self) -> Object:
        """Read the version of the server: `major`, `minor`, `gitVersion` and further fields."""
        return await self._ask(ClientRequest("GET", "/version"))

    async def discover(self) -> Discovery:
        """Return the kinds that are served now."""
        core, named = await self._discover("/api"), await self._discover("/apis")
        return Discovery(core.kinds + named.kinds, {**core.failures, **named.failures})

    async def _discover(self, path: str) -> Discovery:
        """Read the kinds of `/api` or `/apis`.

        The request has the ETag of the last response. If the kinds have not changed, the server
        responds without content, and the known kinds are returned.
        """
        tag, known = self._known.get(path, ("", Discovery()))
        ask = ClientRequest("GET", path, accept=_GROUPS, tag=tag)
        answer = await self._send(ask)
        if answer.status == 304:
            return known
        root = self._object(ask, answer)
        try:
            if is_aggregated(root):
                found = read_aggregated(root)
                self._known[path] = answer.headers.get("etag", ""), found
                return found
            versions = group_versions(root)
        except msgspec.ValidationError as error:
            raise BadAnswer(f"discovery cannot be read: {error}", at=str(ask)) from None
        return await self._one_by_one(path, versions)

    async def _one_by_one(self, root: str, versions: builtins.list[str]) -> Discovery:
        gate = asyncio.Semaphore(_AT_ONCE)
        failures: dict[str, str] = {}

        async def kinds(version: str) -> builtins.list[ResourceKind]:
            async with gate:
                ask = ClientRequest("GET", f"{root}/{version}")
                try:
                    return read_resources(version, await self._ask(ask))
                except (ApiError, BadAnswer) as error:
                    failures[version] = str(error)
                except msgspec.ValidationError as error:
                    failures[version] = f"{ask}: {error}"
                return []

        found = await asyncio.gather(*map(kinds, versions))
        in_order = {each: failures[each] for each in versions if each in failures}
        return Discovery(tuple(kind for each in found for kind in each), in_order)

    async def document(self, path: str) -> Object:
        """Read a JSON document that a server serves in addition to objects, such as /openapi/v3."""
        return await self._ask(ClientRequest("GET", path))

    async def _write(
        self, method: str, path: str, content: object, query: dict[str, str], media: str = JSON
    ) -> Object:
        ask = ClientRequest(method, path, _query(**query), media=media, body=encode_json(content))
        return await self._ask(ask)

    async def _ask(self, ask: ClientRequest) -> Object:
        return self._object(ask, await self._send(ask))

    def _object(self, ask: ClientRequest, answer: ClientResponse) -> Object:
        if not 200 <= answer.status < 300:
            raise self._refused(ask, answer)
        return read_object(answer.body, ask)


def _query(**query: str) -> str:
    return urlencode([(key, value) for key, value in query.items() if value])


def _writing(manager: str, dry_run: bool) -> dict[str, str]:
    return {"fieldManager": manager, "dryRun": "All" if dry_run else ""}


def _problem(text: str) -> str:
    """Return the reason why a string cannot be a name in a URL path; "" if it can."""
    if not text:
        return "may not be empty"
    if text in (".", ".."):
        return f"may not be '{text}'"
    return "may not contain '/'" if "/" in text else ""


def _collection(resource: GroupVersionResource, namespace: str) -> str:
    problem = _problem(namespace) if namespace else ""
    if problem:
        raise ApiError(400, "BadRequest", f"invalid namespace {quoted(namespace)}: {problem}")
    return resource.path("", namespace)


def path_of(
    resource: GroupVersionResource, name: str, namespace: str, subresource: str = ""
) -> str:
    """Return the URL path of an object; raise an ApiError 404 for a string that cannot be a name.

    Names may come from users. A server would respond in the same way: no object has such a name.
    """
    for text in (name, *([namespace] if namespace else ())):
        if problem := _problem(text):
            kind = ".".join(filter(None, (resource.plural, resource.group)))
            shown = quoted(f"{namespace}/{name}" if namespace else name)
            fact = f"{kind} {shown} not found: {quoted(text)} is not a name, it {problem}"
            raise ApiError(404, "NotFound", fact)
    return resource.path(name, namespace, subresource=subresource)


def _namespace_of(content: Object) -> str:
    return str(content.get("metadata", {}).get("namespace") or "")


def _path_of(resource: GroupVersionResource, content: Object, subresource: str) -> str:
    """Return the URL path for a write of an object; its name and namespace are in `content`."""
    name = content.get("metadata", {}).get("name") or ""
    if problem := _problem(name):
        raise ApiError(400, "BadRequest", f"invalid metadata.name {quoted(name)}: {problem}")
    return path_of(resource, name, _namespace_of(content), subresource)


async def find(
    client: Client, resource: GroupVersionResource, name: str, namespace: str = ""
) -> Object | None:
    """Read an object; return None if there is no object of that name."""
    try:
        return await client.get(resource, name, namespace)
    except ApiError as error:
        if error.code == 404:
            return None
        raise
