"""The API for functions, which run in threads of their own: each call goes to the client's loop.

A function can block as long as it likes, and nobody else waits for it.
"""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import aclosing
from typing import Any, TypeVar

from polyver.client import (
    Client,
    Discovery,
    Executed,
    GroupVersionResource,
    Listing,
    PatchType,
    PodClient,
    Propagation,
    WatchEvent,
)
from polyver.core import PolyverError
from polyver.core.plain import Object

__all__ = ["NO_NODES", "BlockingClient", "NoNodes", "RemoteClient"]

T = TypeVar("T")
NO_NODES = "polyver up does not run pods: this needs a cluster with nodes"


class NoNodes(PolyverError):
    """Something that only a cluster with nodes can do."""


Send = Callable[[Coroutine[Any, Any, Any]], "Future[Any]"]
"""Has something awaited where the client is at home."""


class RemoteClient:
    """`polyver.client.Client` for an event loop that is not the client's own."""

    def __init__(self, client: Client, send: Send) -> None:
        self._client = client
        self._send = send

    async def _there(self, call: Coroutine[Any, Any, T]) -> T:
        result: T = await asyncio.wrap_future(self._send(call))
        return result

    async def get(
        self,
        resource: GroupVersionResource,
        name: str,
        namespace: str = "",
        *,
        subresource: str = "",
        metadata: bool = False,
    ) -> Object:
        return await self._there(
            self._client.get(resource, name, namespace, subresource=subresource, metadata=metadata)
        )

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
        return await self._there(
            self._client.list(
                resource,
                namespace,
                labels=labels,
                fields=fields,
                resource_version=resource_version,
                limit=limit,
                more=more,
                metadata=metadata,
            )
        )

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
        events = self._client.watch(
            resource,
            namespace,
            resource_version=resource_version,
            labels=labels,
            fields=fields,
            metadata=metadata,
            timeout=timeout,
        )
        async with aclosing(_carried(events, self._send)) as carried:
            async for event in carried:
                yield event

    async def create(
        self,
        resource: GroupVersionResource,
        content: Object,
        namespace: str = "",
        *,
        manager: str = "",
        dry_run: bool = False,
    ) -> Object:
        return await self._there(
            self._client.create(resource, content, namespace, manager=manager, dry_run=dry_run)
        )

    async def update(
        self,
        resource: GroupVersionResource,
        content: Object,
        *,
        subresource: str = "",
        manager: str = "",
        dry_run: bool = False,
    ) -> Object:
        return await self._there(
            self._client.update(
                resource, content, subresource=subresource, manager=manager, dry_run=dry_run
            )
        )

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
        return await self._there(
            self._client.patch(
                resource,
                name,
                namespace,
                change=change,
                type=type,
                subresource=subresource,
                manager=manager,
                dry_run=dry_run,
            )
        )

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
        return await self._there(
            self._client.apply(
                resource,
                content,
                manager=manager,
                force=force,
                subresource=subresource,
                dry_run=dry_run,
            )
        )

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
        return await self._there(
            self._client.delete(
                resource,
                name,
                namespace,
                propagation=propagation,
                uid=uid,
                resource_version=resource_version,
                grace=grace,
                dry_run=dry_run,
            )
        )

    async def delete_collection(
        self,
        resource: GroupVersionResource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        propagation: Propagation | None = None,
    ) -> None:
        await self._there(
            self._client.delete_collection(
                resource, namespace, labels=labels, fields=fields, propagation=propagation
            )
        )

    async def release(self) -> Object:
        return await self._there(self._client.release())

    async def discover(self) -> Discovery:
        return await self._there(self._client.discover())

    async def execute(
        self, pod: str, namespace: str, *, container: str, command: Sequence[str], limit: int
    ) -> Executed:
        call = self._pods.execute(pod, namespace, container=container, command=command, limit=limit)
        return await self._there(call)

    async def logs(self, pod: str, namespace: str, *, container: str, limit: int) -> bytes:
        return await self._there(self._pods.logs(pod, namespace, container=container, limit=limit))

    @property
    def _pods(self) -> PodClient:
        if not isinstance(self._client, PodClient):
            raise NoNodes("commands in pods and logs are not available", hint=NO_NODES)
        return self._client

    async def watch_kinds(self) -> AsyncGenerator[Discovery, None]:
        async with aclosing(_carried(self._client.watch_kinds(), self._send)) as carried:
            async for discovery in carried:
                yield discovery


async def _carried(events: AsyncGenerator[T, None], send: Send) -> AsyncGenerator[T, None]:
    """What comes there, here, one after the other."""
    try:
        while True:
            try:
                event: T = await asyncio.wrap_future(send(_next(events)))
            except _End:
                return
            yield event
    finally:
        send(events.aclose())


class _End(Exception):
    """StopAsyncIteration cannot leave a coroutine."""


async def _next(events: AsyncGenerator[T, None]) -> T:
    try:
        return await anext(events)
    except StopAsyncIteration:
        raise _End from None


class BlockingClient:
    """The same for plain functions: every method waits for its answer, `watch` for each event.

    A call that is made after the function's time, or after its action was cancelled, raises
    `Cancelled`.
    """

    def __init__(self, client: Client, wait: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self._client = client
        self._wait = wait

    def get(
        self,
        resource: GroupVersionResource,
        name: str,
        namespace: str = "",
        *,
        subresource: str = "",
        metadata: bool = False,
    ) -> Object:
        """An object, or a part of it that has a path of its own."""
        call = self._client.get(
            resource, name, namespace, subresource=subresource, metadata=metadata
        )
        return self._object(call)

    def list(
        self,
        resource: GroupVersionResource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
    ) -> builtins.list[Object]:
        """All objects of a namespace or of all namespaces."""
        call = self._client.list(resource, namespace, labels=labels, fields=fields)
        listing: Listing = self._wait(call)
        return listing.items

    def watch(
        self,
        resource: GroupVersionResource,
        namespace: str = "",
        *,
        resource_version: str,
        labels: str = "",
        fields: str = "",
    ) -> Iterator[WatchEvent]:
        """Every change after a resourceVersion, until the server ends it."""
        events = self._client.watch(
            resource, namespace, resource_version=resource_version, labels=labels, fields=fields
        )
        try:
            while True:
                event: WatchEvent = self._wait(_next(events))
                yield event
        except _End:
            return
        finally:
            self._wait(events.aclose())

    def create(
        self,
        resource: GroupVersionResource,
        content: Object,
        namespace: str = "",
        *,
        dry_run: bool = False,
    ) -> Object:
        """Make an object, in its own namespace or in the one that is given."""
        return self._object(self._client.create(resource, content, namespace, dry_run=dry_run))

    def update(
        self, resource: GroupVersionResource, content: Object, *, subresource: str = ""
    ) -> Object:
        """Replace an object, or its part; with a resourceVersion only if it is still that one."""
        return self._object(self._client.update(resource, content, subresource=subresource))

    def patch(
        self,
        resource: GroupVersionResource,
        name: str,
        namespace: str = "",
        *,
        change: object,
        type: PatchType = "merge",  # noqa: A002
        subresource: str = "",
    ) -> Object:
        """Change an object, or its part."""
        call = self._client.patch(
            resource, name, namespace, change=change, type=type, subresource=subresource
        )
        return self._object(call)

    def apply(
        self, resource: GroupVersionResource, content: Object, *, manager: str, force: bool = False
    ) -> Object:
        """Server-side apply: own what the content states, and nothing else."""
        call = self._client.apply(resource, content, manager=manager, force=force)
        return self._object(call)

    def delete(
        self,
        resource: GroupVersionResource,
        name: str,
        namespace: str = "",
        *,
        propagation: Propagation | None = None,
    ) -> Object:
        """Delete an object."""
        return self._object(self._client.delete(resource, name, namespace, propagation=propagation))

    def discover(self) -> Discovery:
        """What is served now."""
        found: Discovery = self._wait(self._client.discover())
        return found

    def _object(self, call: Coroutine[Any, Any, Object]) -> Object:
        found: Object = self._wait(call)
        return found
