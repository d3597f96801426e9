"""A pool of daemon threads for work that may take any time."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Final, TypeVar

__all__ = ["DaemonThreadPool"]

T = TypeVar("T")
_Jobs = queue.SimpleQueue[Callable[[], None]]
_IDLE = 5.0
"""The seconds for which a thread without work waits for more."""
_GIVEN_UP: Final = 8
"""The maximum of threads that continue abandoned work, beside the limit of the pool."""


class DaemonThreadPool:
    """A limited number of threads, which the end of the process does not wait for."""

    def __init__(self, places: int = 4) -> None:
        self._slots = asyncio.Semaphore(places)
        self._lock = threading.Lock()
        self._idle: dict[_Jobs, threading.Thread] = {}
        self._closed = False
        self._given_up = 0

    async def run(self, work: Callable[[], T], *, left: Callable[[], float] | None = None) -> T:
        """Run the work in a worker thread and return its result.

        If the caller is cancelled meanwhile, the thread still finishes the work.

        `left` returns how many seconds the work may still take. It is called once the work has a
        thread, so waiting for one does not count, and again when these seconds are over. At 0 the
        work is given up with a TimeoutError: its thread continues, and the next work may start.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        has_slot = True

        def settle(result: T | None, error: BaseException | None) -> None:
            if has_slot:
                self._slots.release()
            else:
                self._given_up -= 1
            if done.done():
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(result)  # type: ignore[arg-type]

        def run() -> None:
            result, failure = None, None
            try:
                result = work()
            except BaseException as error:
                failure = _as_exception(error)
            with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody waits
                loop.call_soon_threadsafe(settle, result, failure)

        await self._slots.acquire()
        self._start(run)
        while left is not None and not done.done():
            seconds = left()
            if seconds <= 0:
                has_slot = not self._give_up()
                done.cancel()
                raise TimeoutError
            await asyncio.wait({done}, timeout=seconds)
        return await done

    def _give_up(self) -> bool:
        """Free the slot of abandoned work; return False if too much abandoned work still runs."""
        if self._given_up >= _GIVEN_UP:
            return False
        self._given_up += 1
        self._slots.release()
        return True

    async def run_within(self, seconds: float, work: Callable[[], T]) -> T:
        """Run the work and return its result; raise TimeoutError only if it took too long.

        The thread of work that takes too long stays in use until the work ends.
        """
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                return await self.run(work)
        except TimeoutError as error:
            if deadline.expired():
                raise
            raise RuntimeError("TimeoutError was raised") from error

    def _start(self, job: Callable[[], None]) -> None:
        # Idle threads are reused: starting a thread takes longer than most work.
        with self._lock:
            jobs = self._idle.popitem()[0] if self._idle else None
        if jobs is None:
            jobs = _Jobs()
            threading.Thread(target=self._serve, args=(jobs,), name="worker", daemon=True).start()
        jobs.put(job)

    def _serve(self, jobs: _Jobs) -> None:
        while True:
            try:
                job = jobs.get(timeout=_IDLE)
            except queue.Empty:
                with self._lock:
                    if self._idle.pop(jobs, None) is not None:
                        return
                continue  # a caller has just taken this thread
            job()
            del job
            with self._lock:
                if self._closed:
                    return
                self._idle[jobs] = threading.current_thread()

    def close(self) -> None:
        """End the idle threads now, and the others when their work is done."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, {}
        for jobs in idle:
            jobs.put(_nothing)
        for thread in idle.values():
            thread.join()


def _nothing() -> None:
    """Do nothing: the job wakes a thread, which then sees that it must end."""


def _as_exception(error: BaseException) -> BaseException:
    """Return an exception that can be raised in the caller.

    SystemExit and its like in a worker thread must not end the process.
    """
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    wrapped = RuntimeError(f"{type(error).__name__} was raised")
    wrapped.__cause__ = error
    return wrapped
