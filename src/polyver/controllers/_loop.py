"""The loop that runs every controller: takes keys from its queue and reconciles them."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from polyver.client import Backoff, Clock, sleep
from polyver.controllers._queue import QueueClosed, WorkQueue
from polyver.controllers.controller import Controller
from polyver.controllers.tracebacks import place_of
from polyver.core import PolyverError
from polyver.kube.http.logs import Log
from polyver.kube.objects.status import ApiError

__all__ = ["Loop", "LoopMetrics"]

K = TypeVar("K", bound=Hashable)
_LOG = Log()


@dataclass(slots=True)
class LoopMetrics:
    """Counters of a loop."""

    worked: int = 0
    failed: int = 0
    seconds: float = 0.0
    """The time of all work together; with several workers this exceeds the elapsed time."""
    depth: int = 0
    active: int = 0


class Loop(Generic[K]):
    """Runs one controller: several keys at a time, failed ones again later."""

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
        """Set when everything that the controller watches has been read for the first time."""
        self.begin = asyncio.Event()
        """Set when work may begin: the controller is ready, or has waited for that long enough."""

    @property
    def metrics(self) -> LoopMetrics:
        self._metrics.depth = self.queue.depth
        self._metrics.active = len(self._running)
        return self._metrics

    def wait_for(self, source: Hashable) -> None:
        """Add a source; the controller is not synced until the source has been read completely."""
        self._unsynced.add(source)
        self.controller.synced = False

    def settle(self, source: Hashable = None) -> None:
        """Mark a source as completely read, or as removed."""
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
                self._begin(await self.queue.take())
        except QueueClosed:
            return

    async def stop(self, *, grace: float = 5.0) -> None:
        """Let running work end within the grace period, then cancel it; drop waiting keys."""
        self.queue.close()
        running = set(self._running)
        if running:
            patience = asyncio.ensure_future(sleep(self._clock, grace))
            finish = asyncio.ensure_future(asyncio.wait(running))
            await asyncio.wait({patience, finish}, return_when=asyncio.FIRST_COMPLETED)
            await _cancel(patience, finish, *running)

    def _begin(self, key: K) -> None:
        task = asyncio.create_task(self._work(key))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _work(self, key: K) -> None:
        began = self._clock.time()
        try:
            await self._reconcile(key)
        finally:
            self._metrics.seconds += self._clock.time() - began
            self.queue.done(key)
            self._free.release()

    async def _reconcile(self, key: K) -> None:
        try:
            result = await self.controller.reconcile(key)
        except Exception as error:
            self._metrics.failed += 1
            self.queue.retry(key)
            self._log(key, error)
            return
        self._metrics.worked += 1
        self.queue.forget(key)
        if result is not None:
            self.queue.add_later(key, result.after)

    def _log(self, key: K, error: Exception) -> None:
        if isinstance(error, ApiError) and error.code == 409:
            return  # not logged: another client was faster, and its write wakes us
        told = {"controller": self.controller.name, "key": key}
        if isinstance(error, PolyverError | ApiError | OSError):
            _LOG.warning("will be tried again", **told, error=repr(error))
        else:
            # Unexpected: only the file and the line show its origin.
            _LOG.failure("will be tried again", error, **told, at=place_of(error))


async def _cancel(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
