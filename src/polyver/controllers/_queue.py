"""The work queue: each key once, never twice at the same time, again later if it failed."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from polyver.client import Backoff, Clock, Timer, chance
from polyver.core import PolyverError

__all__ = ["QueueClosed", "WorkQueue"]

K = TypeVar("K", bound=Hashable)


class QueueClosed(PolyverError):
    """The queue is closed."""

    def __init__(self) -> None:
        super().__init__("the queue is closed")


class WorkQueue(Generic[K]):
    """Keys that wait, that are scheduled for later, and that are being processed.

    Adding a key that already waits changes nothing. A key that is added while it is being processed
    waits until that is done. So a key is never processed twice at the same time, and is processed
    at least once after its last change.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        backoff: Backoff | None = None,
        limit: int = 100_000,
        chance: Callable[[], float] = chance,
    ) -> None:
        self._clock = clock
        self._backoff = backoff or Backoff()
        self._limit = limit
        self._chance = chance
        self._ready: OrderedDict[K, None] = OrderedDict()
        self._later: dict[K, tuple[float, Timer]] = {}
        self._active: set[K] = set()
        self._again: set[K] = set()
        self._failures: dict[K, int] = {}
        self._work = asyncio.Event()
        self._room = asyncio.Event()
        self._closed = False

    @property
    def depth(self) -> int:
        """The number of keys that wait, including those scheduled for later."""
        return len(self._ready) + len(self._later) + len(self._again)

    async def put(self, key: K) -> None:
        """Add a key, and wait while the queue is full.

        This delays the producer instead of losing work. Never call it from inside the work
        itself: that would wait for its own end.
        """
        while self.depth >= self._limit and not self._waits(key) and not self._closed:
            self._room.clear()
            await self._room.wait()
        self.add(key)

    def add(self, key: K) -> None:
        """Add a key at once, even if the queue is full; a scheduled time is cancelled."""
        if self._closed:
            return
        if key in self._later:
            self._later.pop(key)[1].cancel()
        if key in self._active:
            self._again.add(key)
        elif key not in self._ready:
            self._ready[key] = None
            self._work.set()

    def add_later(self, key: K, seconds: float) -> None:
        """Add a key after some time, unless it waits already or is scheduled earlier."""
        if self._closed or key in self._ready or key in self._again:
            return
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock.time() + seconds
        earlier = self._later.get(key)
        if earlier is not None:
            if earlier[0] <= due:
                return
            earlier[1].cancel()
        self._later[key] = due, self._clock.call_later(seconds, lambda: self._due(key))

    def retry(self, key: K) -> None:
        """Add a key that failed, after a back-off that grows with every failure in a row."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self.add_later(key, self._backoff.delay(failures, spread=self._chance()))

    def forget(self, key: K) -> None:
        """Reset the failures of a key that succeeded."""
        self._failures.pop(key, None)

    async def take(self) -> K:
        """Return the key that has waited longest; it is being processed until `done`."""
        while not self._ready:
            if self._closed:
                raise QueueClosed
            self._work.clear()
            await self._work.wait()
        key, _ = self._ready.popitem(last=False)
        self._active.add(key)
        self._room.set()
        return key

    def done(self, key: K) -> None:
        """End the processing of a key; a key that was added in between waits from now on."""
        self._active.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)
        self._room.set()

    def close(self) -> None:
        """Drop all waiting keys, and end all waiting calls."""
        self._closed = True
        for _, timer in self._later.values():
            timer.cancel()
        for waiting in (self._ready, self._later, self._again, self._failures):
            waiting.clear()
        self._work.set()
        self._room.set()

    def _waits(self, key: K) -> bool:
        return key in self._ready or key in self._later or key in self._again

    def _due(self, key: K) -> None:
        self._later.pop(key, None)
        self.add(key)
