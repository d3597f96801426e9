"""Worker threads: a pool of daemon threads, and work that runs off the event loop.

`DaemonThreadPool` is for work that may take any time. `off_loop` is for work whose cost depends on
its input, such as the size of a request. The event loop continues during the work. But Python code
in a worker thread shares the interpreter lock with the event loop, which waits up to one switch
interval (see `sys.setswitchinterval`) for the lock. Therefore this module shortens the interval,
and only few threads work at a time. If the work of `off_loop` takes too long, an exception in its
thread stops it, so that the thread does not use the lock for a result that nobody needs.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar
from weakref import WeakKeyDictionary

__all__ = [
    "MOST_SECONDS",
    "DaemonThreadPool",
    "Turns",
    "end_workers",
    "off_loop",
    "running_off_loop",
]

T = TypeVar("T")
_Jobs = queue.SimpleQueue[Callable[[], None]]
_IDLE = 5.0
"""A thread that gets no work for this number of seconds ends."""
_GIVEN_UP: Final = 8
"""The maximum number of threads that run abandoned work: work whose caller got TimeoutError.

These threads do not count for the limit of the pool.
"""


class DaemonThreadPool:
    """A limited number of daemon threads. The process can end while such threads still work."""

    def __init__(self, places: int = 4) -> None:
        self._slots = asyncio.Semaphore(places)
        self._lock = threading.Lock()
        self._idle: dict[_Jobs, threading.Thread] = {}
        self._closed = False
        self._given_up = 0

    async def run(self, work: Callable[[], T], *, left: Callable[[], float] | None = None) -> T:
        """Run the work in a worker thread and return its result.

        If the caller is cancelled before the work is done, the thread still finishes the work.

        `left` returns how many seconds the work may still take. `run` calls it when a thread has
        started the work, so the time before that does not count, and again when these seconds are
        over. When `left` returns 0, `run` raises TimeoutError. The thread then continues the
        abandoned work, and another thread may start the next work.
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
            with contextlib.suppress(RuntimeError):  # the event loop is closed
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
        """Allow another thread to start the next work while a thread still runs abandoned work.

        If too many threads run abandoned work already, do nothing and return False.
        """
        if self._given_up >= _GIVEN_UP:
            return False
        self._given_up += 1
        self._slots.release()
        return True

    async def run_within(self, seconds: float, work: Callable[[], T]) -> T:
        """Run the work in a worker thread and return its result.

        Raise TimeoutError if it takes longer than `seconds`; the thread stays busy until the work
        ends. If the work itself raises TimeoutError, raise RuntimeError instead.
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
        """End all threads without work now, and each busy thread when its work is done."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, {}
        for jobs in idle:
            jobs.put(_nothing)
        for thread in idle.values():
            thread.join()


def _nothing() -> None:
    """Do nothing. `close` gives this job to each idle thread, so that the thread ends."""


def _as_exception(error: BaseException) -> BaseException:
    """Return the exception that the caller gets for an error in a worker thread.

    Errors such as SystemExit become a RuntimeError, because in a worker thread they must not end
    the process.
    """
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    wrapped = RuntimeError(f"{type(error).__name__} was raised")
    wrapped.__cause__ = error
    return wrapped


MOST_SECONDS = 60.0
"""The default timeout for work, in seconds. kube-apiserver has the same default for requests."""
_THREADS = 4
_SWITCH_INTERVAL = 0.001
_TURN = 0.005

_NEVER = 2**30
_LONGEST_PAUSE = 60.0
_STEPS_END = 1.0


class _Collector:
    """Pauses full garbage collections while work runs in worker threads.

    A full collection visits every object while it holds the interpreter lock. A large request is
    decoded into millions of objects, so that each full collection stops the server for half a
    second. Most of these objects are freed without a collection when the work is done.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs = 0
        self._since = 0.0
        self._threshold = 0
        """The threshold of the oldest generation (see `gc.set_threshold`) before the pause."""

    def pause(self) -> None:
        with self._lock:
            self._jobs += 1
            young, middle, old = gc.get_threshold()
            if self._jobs == 1 and old != _NEVER:
                self._threshold = old
                gc.set_threshold(young, middle, _NEVER)
                self._since = time.monotonic()

    def end_pause(self) -> None:
        with self._lock:
            self._jobs -= 1
        # Resume later, because the request may run further work on the same objects.
        asyncio.get_running_loop().call_later(_STEPS_END, self.go_on)

    def go_on(self) -> None:
        """End the pause: allow full collections again.

        Do nothing while work runs, unless the pause has lasted too long.
        """
        with self._lock:
            if self._jobs and time.monotonic() - self._since < _LONGEST_PAUSE:
                return
            young, middle, old = gc.get_threshold()
            if old == _NEVER:
                gc.set_threshold(young, middle, self._threshold)


_collector = _Collector()
_running: dict[int, str] = {}
_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, DaemonThreadPool] = WeakKeyDictionary()


async def off_loop(work: Callable[[], T], *, seconds: float = MOST_SECONDS) -> T:
    """Run work in a worker thread and return its result; raise `TimeoutError` if it takes too long.

    The work must not use data that the event loop may change during the work.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    pool = _pools.get(loop)
    if pool is None:
        pool = _pools[loop] = DaemonThreadPool(_THREADS)
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_INTERVAL))
    job = _Job(work, task.get_name() if task is not None else "")
    _collector.pause()
    try:
        async with asyncio.timeout(seconds):
            return await pool.run(job)
    finally:
        job.stop()
        _collector.end_pause()


def running_off_loop() -> list[str]:
    """List the names of the asyncio tasks whose work runs in worker threads now."""
    return list(_running.values())


def end_workers() -> None:
    """End the worker threads of the running event loop; new work starts new threads."""
    if (pool := _pools.pop(asyncio.get_running_loop(), None)) is not None:
        pool.close()
    _collector.go_on()


class _Stopped(BaseException):
    """Raised by `stop` inside a worker thread, to end work whose result is no longer needed."""


class _Job(Generic[T]):
    """Work that another thread can stop."""

    def __init__(self, work: Callable[[], T], name: str) -> None:
        self._work = work
        self._name = name
        self._lock = threading.Lock()
        self._thread = 0
        self._over = False

    def __call__(self) -> T:
        with self._lock:
            if self._over:
                raise _Stopped
            self._thread = threading.get_ident()
            _running[self._thread] = self._name
        try:
            return self._work()
        finally:
            with self._lock:
                self._over = True
                _running.pop(self._thread, None)
            _deliver()

    def stop(self) -> None:
        """Stop the work if it still runs."""
        with self._lock:
            over, self._over = self._over, True
            if not over and self._thread:
                _raise_in(self._thread)


def _deliver() -> None:
    """Do nothing.

    During the call, the interpreter raises the exception that `stop` has requested.
    """


def _raise_in(thread: int) -> None:
    import ctypes

    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(_Stopped))


class Turns:
    """Pauses a long loop on the event loop regularly, so that other tasks can run."""

    __slots__ = ("_end",)

    def __init__(self) -> None:
        self._end = time.monotonic() + _TURN

    @property
    def over(self) -> bool:
        """True if the loop has run long enough, and must now call `next`."""
        return time.monotonic() > self._end

    async def next(self) -> None:
        """Interrupt the loop once, so that other tasks of the event loop run."""
        await asyncio.sleep(0)
        self._end = time.monotonic() + _TURN
