"""The loop that runs a controller, and its work queue.

The loop takes keys from the queue and calls `reconcile` for each key. The queue contains each key
only once. It does not return a key that is still being reconciled. If the reconcile of a key fails,
the loop adds the key again after a delay.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from polyver.client import Backoff, Clock, Timer, chance, sleep
from polyver.controllers.controller import Controller
from polyver.controllers.tracebacks import place_of
from polyver.core import PolyverError
from polyver.kube.http.logs import Log
from polyver.kube.objects.status import ApiError

__all__ = ["Loop", "LoopMetrics", "QueueClosed", "WorkQueue"]

K = TypeVar("K", bound=Hashable)
_LOG = Log()


class QueueClosed(PolyverError):
    """The work queue was closed, so it returns no more keys."""

    def __init__(self) -> None:
        super().__init__("the queue is closed")


class WorkQueue(Generic[K]):
    """The keys of objects to reconcile: waiting, scheduled for later, or being processed.

    Adding a key that already waits changes nothing. A key that is added while it is being processed
    waits until that processing has ended. So a key is never processed twice at the same time, and
    is processed at least once after its last change.
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
        """The number of keys that wait, including keys that are scheduled for later."""
        return len(self._ready) + len(self._later) + len(self._again)

    async def put(self, key: K) -> None:
        """Add a key; if the queue is full, wait until it is not full any more.

        A full queue delays the caller instead of losing keys. Do not call `put` from `reconcile`:
        `put` might wait for the end of another reconcile, and that reconcile for this one.
        """
        while self.depth >= self._limit and not self._waits(key) and not self._closed:
            self._room.clear()
            await self._room.wait()
        self.add(key)

    def add(self, key: K) -> None:
        """Add a key now, even if the queue is full.

        If the key is scheduled for later, cancel this schedule.
        """
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
        """Add a key after a delay, unless it already waits or is scheduled for an earlier time."""
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

        def add_due() -> None:
            self._later.pop(key, None)
            self.add(key)

        self._later[key] = due, self._clock.call_later(seconds, add_due)

    def retry(self, key: K) -> None:
        """Add a key that failed, after a back-off that grows with every failure in a row."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self.add_later(key, self._backoff.delay(failures, spread=self._chance()))

    def forget(self, key: K) -> None:
        """Reset the failure count of a key whose reconcile succeeded."""
        self._failures.pop(key, None)

    async def take(self) -> K:
        """Wait for a key and return the key that has waited longest.

        The key counts as being processed until `done` is called for it.
        """
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
        """Record that a key has been processed. A key that was added meanwhile now waits again."""
        self._active.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)
        self._room.set()

    def close(self) -> None:
        """Drop all waiting keys, and end all calls of `take` and `put` that wait."""
        self._closed = True
        for _, timer in self._later.values():
            timer.cancel()
        for waiting in (self._ready, self._later, self._again, self._failures):
            waiting.clear()
        self._work.set()
        self._room.set()

    def _waits(self, key: K) -> bool:
        return key in self._ready or key in self._later or key in self._again


@dataclass(slots=True)
class LoopMetrics:
    """Counters of the loop that runs one controller."""

    worked: int = 0
    failed: int = 0
    seconds: float = 0.0
    """The sum of the durations of all reconciles.

    Because several keys are reconciled at the same time, it may exceed the elapsed time.
    """
    depth: int = 0
    active: int = 0


class Loop(Generic[K]):
    """Runs one controller: reconciles several keys at a time, and retries failed keys later."""

    def __init__(
        self,
        controller: Controller[K],
        *,
        clock: Clock,
        workers: int = 4,
        backoff: Backoff | None = None,
        limit: int = 100_000,
    ) -> None:
        self.controller = controller
        self.queue: WorkQueue[K] = WorkQueue(clock=clock, backoff=backoff, limit=limit)
        controller.wake = self.queue.add
        self._clock = clock
        self._free = asyncio.Semaphore(workers)
        self._running: set[asyncio.Task[None]] = set()
        self._metrics = LoopMetrics()
        self._unsynced: set[Hashable] = set()
        self.ready = asyncio.Event()
        """Set when all objects that the controller watches have been read for the first time."""
        self.begin = asyncio.Event()
        """Set when reconciling may begin.

        This is when all watched objects have been read, or when the start timeout is over.
        """

    @property
    def metrics(self) -> LoopMetrics:
        self._metrics.depth = self.queue.depth
        self._metrics.active = len(self._running)
        return self._metrics

    def wait_for(self, source: Hashable) -> None:
        """Make this loop wait for an informer, which `source` identifies.

        The controller is not synced until this informer has read all its objects for the first
        time.
        """
        self._unsynced.add(source)
        self.controller.synced = False

    def settle(self, source: Hashable = None) -> None:
        """Record that the informer `source` has read all its objects, or has been removed.

        If the loop then waits for no informer, the controller is synced. Without a `source`, only
        check this.
        """
        self._unsynced.discard(source)
        self.controller.synced = not self._unsynced
        if self.controller.synced:
            self.ready.set()
            self.begin.set()

    async def run(self) -> None:
        """Reconcile keys until the queue is closed."""
        await self.begin.wait()
        try:
            while True:
                await self._free.acquire()
                task = asyncio.create_task(self._reconcile(await self.queue.take()))
                self._running.add(task)
                task.add_done_callback(self._running.discard)
        except QueueClosed:
            return

    async def stop(self, *, grace: float = 5.0) -> None:
        """Drop waiting keys; cancel reconciles that have not ended after `grace` seconds."""
        self.queue.close()
        running = set(self._running)
        if running:
            patience = asyncio.ensure_future(sleep(self._clock, grace))
            finish = asyncio.ensure_future(asyncio.wait(running))
            await asyncio.wait({patience, finish}, return_when=asyncio.FIRST_COMPLETED)
            for task in (patience, finish, *running):
                task.cancel()
            await asyncio.gather(patience, finish, *running, return_exceptions=True)

    async def _reconcile(self, key: K) -> None:
        began = self._clock.time()
        try:
            result = await self.controller.reconcile(key)
        except Exception as error:
            self._metrics.failed += 1
            self.queue.retry(key)
            self._log(key, error)
        else:
            self._metrics.worked += 1
            self.queue.forget(key)
            if result is not None:
                self.queue.add_later(key, result.after)
        finally:
            self._metrics.seconds += self._clock.time() - began
            self.queue.done(key)
            self._free.release()

    def _log(self, key: K, error: Exception) -> None:
        if isinstance(error, ApiError) and error.code == 409:
            return  # a conflict is not logged: the other client's write causes a new reconcile
        told = {"controller": self.controller.name, "key": key}
        if isinstance(error, PolyverError | ApiError | OSError):
            _LOG.warning("will be tried again", **told, error=repr(error))
        else:
            # For an unexpected exception, the log needs the file and line that raised it.
            _LOG.failure("will be tried again", error, **told, at=place_of(error))
