"""Call functions that users write, in threads.

The controllers share an event loop with the API server, so a function that blocks must not run on
this loop. A function that is not async runs in a thread. All calls of an async function run in one
thread with an event loop of its own, so that they can share clients.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Hashable
from typing import Any

from polyver.core import PolyverError
from polyver.kube.http.worker_threads import DaemonThreadPool

__all__ = ["CallTimeout", "StillRunning", "UserCode"]

_THREADS = 64
"""The maximum number of threads for the calls of one function.

A call that never returns occupies a thread for ever. If all threads are occupied, no further call
can run.
"""


class CallTimeout(PolyverError):
    """A call did not end before its deadline."""


class StillRunning(PolyverError):
    """An earlier call for the same object has not ended yet."""


class UserCode:
    """Calls one function of a user for many objects, but only once at a time for each object."""

    def __init__(self, function: Callable[[Any], Any], *, timeout: float) -> None:
        self._function = function
        self._timeout = timeout
        self._threads = DaemonThreadPool(_THREADS)
        self._running: set[Hashable] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def call(self, key: Hashable, given: Any) -> Any:
        """Call the function with `given`, and return its result.

        `key` identifies the object. Raise StillRunning if an earlier call for it has not ended.
        """
        if key in self._running:
            fact = f"an earlier call has not returned after its deadline of {self._timeout:g} s"
            raise StillRunning(fact, hint="it is called again after that call has ended")
        deadline = asyncio.timeout(self._timeout)
        try:
            async with deadline:
                if inspect.iscoroutinefunction(self._function):
                    return await self._on_loop(given)
                return await self._in_thread(key, given)
        except TimeoutError:
            if not deadline.expired():
                raise  # the function itself raised TimeoutError
            raise CallTimeout(f"the call did not finish within {self._timeout:g} s") from None

    def close(self) -> None:
        """Stop the event loop in which async functions run."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None

    async def _in_thread(self, key: Hashable, given: Any) -> Any:
        engine, started = asyncio.get_running_loop(), threading.Event()

        def work() -> Any:
            started.set()
            try:
                return self._function(given)
            finally:
                engine.call_soon_threadsafe(self._running.discard, key)

        self._running.add(key)
        try:
            return await self._threads.run(work)
        finally:
            if not started.is_set():
                self._running.discard(key)

    async def _on_loop(self, given: Any) -> Any:
        if self._loop is None:
            self._loop = _loop_in_a_thread()
        called = asyncio.run_coroutine_threadsafe(self._guarded(given), self._loop)
        return await asyncio.wrap_future(called)

    async def _guarded(self, given: Any) -> Any:
        """Call an async function; replace SystemExit by an error, as it would end the loop."""
        try:
            return await self._function(given)
        except (SystemExit, KeyboardInterrupt) as error:
            raise RuntimeError(f"{type(error).__name__} was raised") from error


def _loop_in_a_thread() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()

    def run() -> None:
        loop.run_forever()
        loop.close()

    threading.Thread(target=run, name="async-user-code", daemon=True).start()
    return loop
