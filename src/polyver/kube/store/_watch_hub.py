"""Delivers every change of a store to its watchers, and never waits for a slow watcher."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Self

from polyver.kube.store.interface import Lagging, StoreClosed, StoreEvent

MOST_WAITING = 10_000


class Watcher:
    """The events for one watcher: first those that were in the log before it, then new events."""

    def __init__(self, prefix: str, past: Iterable[StoreEvent], newest: int, hub: Hub) -> None:
        self.prefix = prefix
        self._newest = newest  # the past events cover up to this revision
        self._waiting: deque[StoreEvent] = deque(past)
        self._most = len(self._waiting) + MOST_WAITING
        self._hub = hub
        self._end: Lagging | StoreClosed | None = None
        self._sleeping: asyncio.Future[None] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> StoreEvent:
        while not self._waiting:
            if self._end is not None:
                raise self._end
            await self._sleep(None)
        return self._waiting.popleft()

    @property
    def revision(self) -> int:
        return max(self._newest, self._hub.revision)

    @property
    def waiting(self) -> bool:
        return bool(self._waiting) or self._end is not None

    async def batch(self, timeout: float) -> list[StoreEvent]:
        """Wait until an event is pending, but at most `timeout` seconds.

        Return all pending events.
        """
        if not self._waiting and self._end is None:
            await self._sleep(timeout)
        if not self._waiting and self._end is not None:
            raise self._end
        events = list(self._waiting)
        self._waiting.clear()
        return events

    async def _sleep(self, timeout: float | None) -> None:
        """Wait for an event, but at most `timeout` seconds (None: without a limit).

        This method sets a timer itself, because `asyncio.timeout` costs more than the delivery of
        an event.
        """
        loop = asyncio.get_running_loop()
        self._sleeping = loop.create_future()
        timer = None if timeout is None else loop.call_later(timeout, self._wake)
        try:
            await self._sleeping
        finally:
            self._sleeping = None
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        if self._sleeping is not None and not self._sleeping.done():
            self._sleeping.set_result(None)

    def close(self) -> None:
        """Stop the watch and wake its reader."""
        self.end(StoreClosed("the watch was closed"))

    def offer(self, event: StoreEvent) -> None:
        if event.entry.revision <= self._newest or not event.entry.key.startswith(self.prefix):
            return
        if len(self._waiting) >= self._most:
            self.end(
                Lagging(f"{len(self._waiting)} events are pending for one watcher of {self.prefix}")
            )
            return
        self._waiting.append(event)
        self._wake()

    def end(self, why: Lagging | StoreClosed) -> None:
        self._end = self._end or why
        self._hub.leave(self)
        self._wake()


class Hub:
    """The watchers of a store, grouped by the collection that they watch.

    A collection is all objects of one resource, such as `deployments` in `apps`. An event is
    offered only to the watchers of its collection, and to watchers whose prefix covers several
    collections.
    """

    def __init__(self) -> None:
        self._watchers: dict[str, dict[int, Watcher]] = {}
        self.revision = 0
        """The revision of the newest event that was offered to the watchers."""

    def __len__(self) -> int:
        return sum(map(len, self._watchers.values()))

    def watch(self, prefix: str, past: Iterable[StoreEvent], newest: int) -> Watcher:
        watcher = Watcher(prefix, past, newest, self)
        self._watchers.setdefault(_collection(prefix), {})[id(watcher)] = watcher
        return watcher

    def leave(self, watcher: Watcher) -> None:
        """Remove a watcher. It gets no more events."""
        name = _collection(watcher.prefix)
        there = self._watchers.get(name, {})
        there.pop(id(watcher), None)
        if not there:
            self._watchers.pop(name, None)

    def publish(self, event: StoreEvent) -> None:
        self.revision = event.entry.revision
        for name in {_collection(event.entry.key), _ANY}:
            for watcher in list(self._watchers.get(name, {}).values()):
                watcher.offer(event)

    def close(self) -> None:
        for watcher in [each for there in self._watchers.values() for each in there.values()]:
            watcher.end(StoreClosed("the store was closed"))


_ANY = ""


def _collection(key: str) -> str:
    """Return the collection to which a key or prefix belongs; "" if a prefix covers several.

    >>> _collection("/apps/deployments/default/web"), _collection("/apps/dep")
    ('/apps/deployments', '')
    """
    parts = key.split("/", 3)
    return "/".join(parts[:3]) if len(parts) > 3 else _ANY
