"""The server's own pipeline as a client: no HTTP, yet admission, conversion and the rest hold."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, Protocol
from urllib.parse import urlencode

import msgspec

from polyver.client import Clock, SystemClock
from polyver.client.port import (
    Discovery,
    Event,
    Listing,
    Object,
    PatchType,
    Propagation,
    Resource,
)
from polyver.objects.codec import encode_json
from polyver.objects.status import ApiError
from polyver.server._discovered import read_discovery
from polyver.server._http import Request, Response, User

__all__ = ["DirectClient", "Pipeline"]

_decode = msgspec.json.Decoder().decode
_JSON = "application/json"
_PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
_PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
_GROUPS = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_PATCHES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class Pipeline(Protocol):
    """What answers requests, however they come."""

    async def handle(self, request: Request) -> Response: ...


class DirectClient:
    """Asks the server in this process as a certain user; see `polyver.client.Client`.

    Whoever builds it passes `kinds_changed` to the server, to be called when kinds come and go;
    without that, changes are found by asking every `interval` seconds.
    """

    def __init__(
        self,
        api: Pipeline,
        user: User,
        *,
        agent: str = "polyver",
        clock: Clock | None = None,
        interval: float = 30.0,
    ) -> None:
        self._api = api
        self._user = user
        self._agent = agent
        self._clock = clock or SystemClock()
        self._interval = interval
        self._watching_kinds: set[asyncio.Event] = set()

    async def get(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        subresource: str = "",
        metadata: bool = False,
    ) -> Object:
        path = resource.path(_named(name), namespace, subresource=subresource)
        return await self._ask("GET", path, accept=_PARTIAL if metadata else _JSON)

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        resource_version: str = "",
        limit: int = 0,
        more: str = "",
        metadata: bool = False,
    ) -> Listing:
        query = _selected(labels, fields) | {
            "resourceVersion": resource_version,
            "limit": str(limit or ""),
            "continue": more,
        }
        accept = _PARTIAL_LIST if metadata else _JSON
        found = await self._ask("GET", resource.path("", namespace), query=query, accept=accept)
        about = found.get("metadata", {})
        version, rest = about.get("resourceVersion", ""), about.get("continue", "")
        return Listing(found.get("items") or [], version, rest)

    async def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        resource_version: str,
        labels: str = "",
        fields: str = "",
        metadata: bool = False,
        timeout: int = 0,
    ) -> AsyncGenerator[Event, None]:
        query = _selected(labels, fields) | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout or ""),
        }
        path = resource.path("", namespace)
        accept = _PARTIAL if metadata else _JSON
        response = await self._send("GET", path, query=query, accept=accept)
        lines = _lines(response)
        try:
            async for line in lines:
                yield _event(line)
        finally:
            await lines.aclose()

    async def create(
        self,
        resource: Resource,
        content: Object,
        namespace: str = "",
        *,
        manager: str = "",
        dry_run: bool = False,
    ) -> Object:
        path = resource.path("", namespace or _namespace_of(content))
        return await self._ask("POST", path, query=_write(manager, dry_run), body=content)

    async def update(
        self,
        resource: Resource,
        content: Object,
        *,
        subresource: str = "",
        manager: str = "",
        dry_run: bool = False,
    ) -> Object:
        path = _path_of(resource, content, subresource)
        return await self._ask("PUT", path, query=_write(manager, dry_run), body=content)

    async def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        change: object,
        type: PatchType = "merge",  # noqa: A002 - what everybody calls it
        subresource: str = "",
        manager: str = "",
        dry_run: bool = False,
    ) -> Object:
        path = resource.path(_named(name), namespace, subresource=subresource)
        query = _write(manager, dry_run)
        return await self._ask("PATCH", path, query=query, body=change, media=_PATCHES[type])

    async def apply(
        self,
        resource: Resource,
        content: Object,
        *,
        manager: str,
        force: bool = False,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Object:
        path = _path_of(resource, content, subresource)
        query = _write(manager, dry_run) | {"force": "true" if force else ""}
        media = _PATCHES["apply"]
        return await self._ask("PATCH", path, query=query, body=content, media=media)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        propagation: Propagation | None = None,
        uid: str = "",
        resource_version: str = "",
        grace: int | None = None,
        dry_run: bool = False,
    ) -> Object:
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
        return await self._ask("DELETE", resource.path(_named(name), namespace), body=options)

    async def delete_collection(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        propagation: Propagation | None = None,
    ) -> None:
        query = _selected(labels, fields) | {"propagationPolicy": propagation or ""}
        await self._ask("DELETE", resource.path("", namespace), query=query)

    async def discover(self) -> Discovery:
        core = await self._ask("GET", "/api", accept=_GROUPS)
        named = await self._ask("GET", "/apis", accept=_GROUPS)
        return read_discovery([core, named])

    async def watch_kinds(self) -> AsyncGenerator[Discovery, None]:
        changed = asyncio.Event()
        self._watching_kinds.add(changed)
        seen: Discovery | None = None
        try:
            while True:
                changed.clear()
                found = await self.discover()
                if found != seen:
                    seen = found
                    yield found
                await self._until(changed)
        finally:
            self._watching_kinds.discard(changed)

    def kinds_changed(self) -> None:
        """For the server to call when kinds have come, gone or changed."""
        for changed in self._watching_kinds:
            changed.set()

    async def _until(self, changed: asyncio.Event) -> None:
        timer = self._clock.call_later(self._interval, changed.set)
        try:
            await changed.wait()
        finally:
            timer.cancel()

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        media: str = _JSON,
        accept: str = _JSON,
    ) -> Object:
        response = await self._send(
            method, path, query=query or {}, body=body, media=media, accept=accept
        )
        return _object(await _whole(response))

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str],
        body: object = None,
        media: str = _JSON,
        accept: str = _JSON,
    ) -> Response:
        headers = {"accept": accept, "user-agent": self._agent}
        if body is not None:
            headers["content-type"] = media
        request = Request(
            method=method,
            path=path,
            query=urlencode([(key, value) for key, value in query.items() if value]),
            headers=headers,
            body=b"" if body is None else encode_json(body),
            user=self._user,
        )
        response = await self._api.handle(request)
        if not 200 <= response.status < 300:
            raise _refusal(response.status, await _whole(response))
        return response


def _selected(labels: str, fields: str) -> dict[str, str]:
    return {"labelSelector": labels, "fieldSelector": fields}


def _write(manager: str, dry_run: bool) -> dict[str, str]:
    return {"fieldManager": manager, "dryRun": "All" if dry_run else ""}


def _named(name: str) -> str:
    """A name that is none would be the path of something else."""
    if not name or "/" in name or name in (".", ".."):
        raise ValueError(f"not the name of an object: {name!r}")
    return name


def _namespace_of(content: Object) -> str:
    return str(content.get("metadata", {}).get("namespace") or "")


def _path_of(resource: Resource, content: Object, subresource: str) -> str:
    name = _named(content.get("metadata", {}).get("name") or "")
    return resource.path(name, _namespace_of(content), subresource=subresource)


async def _whole(response: Response) -> bytes:
    if isinstance(response.body, bytes):
        return response.body
    return b"".join([piece async for piece in response.body])


def _object(body: bytes) -> Object:
    found: Any = _decode(body)
    if not isinstance(found, dict):
        raise TypeError(f"an answer that is no object: {body[:80]!r}")
    return found


def _refusal(status: int, body: bytes) -> ApiError:
    """A Status, or, where the path is not known at all, only a text."""
    try:
        found = _object(body)
    except (msgspec.DecodeError, TypeError):
        reason = "NotFound" if status == 404 else ""
        return ApiError(status, reason, body.decode(errors="replace").strip())
    return ApiError.from_status({"code": status} | found)


async def _lines(response: Response) -> AsyncGenerator[bytes, None]:
    """The lines of a stream, wherever its pieces are cut."""
    rest = b""
    pieces = _pieces(response)
    try:
        async for piece in pieces:
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                if line:
                    yield line
    finally:
        # Closing is what tells the server that nobody watches any more.
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()
    if rest:
        yield rest


def _pieces(response: Response) -> AsyncIterator[bytes]:
    return _once(response.body) if isinstance(response.body, bytes) else response.body


async def _once(body: bytes) -> AsyncGenerator[bytes, None]:
    yield body


def _event(line: bytes) -> Event:
    found = _object(line)
    if found["type"] == "ERROR":
        raise ApiError.from_status(found["object"])
    return Event(found["type"], found["object"])
