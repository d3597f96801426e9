"""An informer: lists a collection, then watches it for changes, and lists it again after errors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from polyver.client._clock import Backoff, Clock, SystemClock, chance, sleep
from polyver.client.client import Client
from polyver.client.types import GroupVersionResource
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError

__all__ = ["Change", "Informer", "Key"]

T = TypeVar("T")

_PAGE = 500
_BACKOFF = Backoff(first=0.05, most=30.0)
_GONE = 410
_TURN = 50


class Key(NamedTuple):
    """The key of an object in a collection: its namespace and its name."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """The old and the new state of an object.

    The old state is None for a new object. The new state is None for a deleted object.
    """

    key: Key
    before: T | None
    after: T | None


class Informer(Generic[T]):
    """Keeps the state of a collection, and reports each change to a handler, once and in order.

    For each object, the informer stores only the value that `keep` returns, to save memory. There
    is no buffer of events: a slow handler delays the watch. If the server ends the watch because it
    is too slow, the informer lists the collection again.
    """

    def __init__(
        self,
        client: Client,
        resource: GroupVersionResource,
        *,
        keep: Callable[[Object], T],
        handler: Callable[[Change[T]], Awaitable[None]],
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        metadata: bool = False,
        clock: Clock | None = None,
        backoff: Backoff = _BACKOFF,
        known: Mapping[Key, T] | None = None,
    ) -> None:
        self.resource = resource
        self.known: dict[Key, T] = dict(known or {})
        """The last reported state of each object, by its key.

        At the start, these may be the states that an earlier informer has reported.
        """
        self.synced = asyncio.Event()
        """Set when the whole collection has been read for the first time."""
        self.relists = 0
        self.problem: Exception | None = None
        """The error of the last request; None while requests succeed.

        After an error, the informer tries again.
        """
        self._client = client
        self._keep = keep
        self._handler = handler
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._metadata = metadata
        self._clock = clock or SystemClock()
        self._backoff = backoff
        self._version = ""
        self._failures = 0

    async def run(self) -> None:
        """List and watch until the task is cancelled; try again after any error."""
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except Exception as error:
                self.problem = error
                self._failures += 1
                if isinstance(error, ApiError) and error.code in (_GONE, 404):
                    self._version = ""
                await sleep(self._clock, self._backoff.delay(self._failures, spread=chance()))

    async def _list(self) -> None:
        found: dict[Key, T] = {}
        version, more = "", ""
        while True:
            page = await self._client.list(
                self.resource,
                self._namespace,
                labels=self._labels,
                fields=self._fields,
                limit=_PAGE,
                more=more,
                metadata=self._metadata,
            )
            for number, item in enumerate(page.items):
                if number % _TURN == 0:
                    # A server in this process answers without any wait. Pause here, so that other
                    # tasks run.
                    await asyncio.sleep(0)
                found[key_of(item)] = self._keep(item)
            version, more = page.resource_version, page.more
            if not more:
                break
        self.relists += 1
        await self._replace(found)
        self._version, self.problem = version, None
        self.synced.set()

    async def _replace(self, found: dict[Key, T]) -> None:
        """Report the differences between the known objects and the objects in a new list."""
        for key in [key for key in self.known if key not in found]:
            await self._tell(key, None)
        for number, (key, after) in enumerate(found.items()):
            if self.known.get(key) != after:
                await self._tell(key, after)
            if number % _TURN == 0:
                # Handlers seldom wait. Pause here, so that other tasks run.
                await asyncio.sleep(0)

    async def _watch(self) -> None:
        began = self._clock.time()
        events = self._client.watch(
            self.resource,
            self._namespace,
            resource_version=self._version,
            labels=self._labels,
            fields=self._fields,
            metadata=self._metadata,
        )
        try:
            async with aclosing(events):
                async for event in events:
                    self._failures, self.problem = 0, None
                    if event.type != "BOOKMARK":
                        gone, key = event.type == "DELETED", key_of(event.object)
                        await self._tell(key, None if gone else self._keep(event.object))
                    self._version = event.object["metadata"]["resourceVersion"]
        finally:
            lasted = self._clock.time() - began
            if lasted > self._backoff.most:
                self._failures = 0
        if lasted < self._backoff.first:
            # If a server ends every watch immediately, this delay prevents a busy loop.
            await sleep(self._clock, self._backoff.first)

    async def _tell(self, key: Key, after: T | None) -> None:
        # The change is reported before it is stored. If the handler is interrupted, the informer
        # reports the same change again.
        before = self.known.get(key)
        if before is not None or after is not None:
            await self._handler(Change(key, before, after))
        if after is None:
            self.known.pop(key, None)
        else:
            self.known[key] = after


def key_of(item: Object) -> Key:
    """Return the key of an object."""
    metadata = item["metadata"]
    return Key(metadata.get("namespace", ""), metadata["name"])
