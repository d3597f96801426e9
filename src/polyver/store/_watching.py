"""Hands every change to those who watch, without waiting for any of them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Self

from polyver.store.port import Event, Lagging, StoreClosed

MOST_WAITING = 10_000


class Watcher:
    """Events for one watcher: first those of the log, then those that come."""

    def __init__(
        self, prefix: str, past: Iterable[Event], newest: int, closed: Callable[[Watcher], object]
    ) -> None:
        self.prefix = prefix
        self.revision = newest
        self._newest = newest  # what the past already holds
        self._waiting: deque[Event] = deque(past)
        self._most = len(self._waiting) + MOST_WAITING
        self._closed = closed
        self._end: Lagging | StoreClosed | None = None
        self._woken = asyncio.Event()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while not self._waiting:
            if self._end is not None:
                raise self._end
            self._woken.clear()
            await self._woken.wait()
        return self._waiting.popleft()

    @property
    def waiting(self) -> bool:
        return bool(self._waiting) or self._end is not None

    async def batch(self, patience: float) -> list[Event]:
        """All events that wait, or none if none comes in time."""
        if not self._waiting and self._end is None:
            self._woken.clear()
            # Not wait_for, which may lose a cancellation on Python 3.11.
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._woken.wait()
        if not self._waiting and self._end is not None:
            raise self._end
        events = list(self._waiting)
        self._waiting.clear()
        return events

    def close(self) -> None:
        """Want no more; whoever waits is woken."""
        self.end(StoreClosed("the watch was closed"))

    def offer(self, event: Event) -> None:
        self.revision = max(self.revision, event.entry.revision)
        if event.entry.revision <= self._newest or not event.entry.key.startswith(self.prefix):
            return
        if len(self._waiting) >= self._most:
            self.end(Lagging(f"{len(self._waiting)} events wait for one watcher of {self.prefix}"))
            return
        self._waiting.append(event)
        self._woken.set()

    def end(self, why: Lagging | StoreClosed) -> None:
        self._end = self._end or why
        self._closed(self)
        self._woken.set()


class Hub:
    """All watchers of a store."""

    def __init__(self) -> None:
        self._watchers: dict[int, Watcher] = {}

    def __len__(self) -> int:
        return len(self._watchers)

    def watch(self, prefix: str, past: Iterable[Event], newest: int) -> Watcher:
        watcher = Watcher(prefix, past, newest, lambda gone: self._watchers.pop(id(gone), None))
        self._watchers[id(watcher)] = watcher
        return watcher

    def publish(self, event: Event) -> None:
        for watcher in list(self._watchers.values()):
            watcher.offer(event)

    def close(self) -> None:
        for watcher in list(self._watchers.values()):
            watcher.end(StoreClosed("the store was closed"))
