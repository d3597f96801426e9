"""Functions at work: each call in a thread of its own, with a deadline, and never on our loop.

An async function gets an event loop of its own there, because nobody knows whether it blocks. A
plain one cannot be stopped from outside: what is over its time is given up, and its thread counts
until it ends, so that there are never more of them than there may be.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from polyver.capabilities.functions.registering import Duration, Function
from polyver.client import Client
from polyver.core import PolyverError
from polyver.functions._clients import BlockingClient, RemoteClient
from polyver.functions._context import Cancelled, FunctionContext
from polyver.serving.logs import Log

__all__ = ["CallFailed", "Calls"]


class CallFailed(PolyverError):
    """A call that did not return: what its function raised, or that it took too long."""

    def __init__(self, fact: str, error: BaseException | None = None) -> None:
        super().__init__(fact)
        self.error = error


class Calls:
    """Calls functions, not more than some at a time."""

    def __init__(self, client: Client, log: Log, *, limit: int = 32, grace: float = 2.0) -> None:
        self._client = client
        self._log = log
        self._free = limit
        self._grace = grace

    def take(self) -> bool:
        """Take the right to one call, if there is one left; the call gives it back."""
        if not self._free:
            return False
        self._free -= 1
        return True

    def give_back(self) -> None:
        """The call is over, or is not made."""
        self._free += 1

    async def call(
        self,
        function: Function,
        arguments: Mapping[str, object],
        about: FunctionContext[Any],
        *,
        seconds: float,
    ) -> object:
        """What a function returns; what goes wrong is a CallFailed, a cancellation stops it."""
        about = replace(about, deadline=datetime.now(UTC) + timedelta(seconds=seconds))
        loop = asyncio.get_running_loop()
        call = _Call(function, arguments, about, self._client, loop, self.give_back)
        call.start()
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(call.done)
        except TimeoutError:
            await self._stop(call)
            fact = f"{function.label} took longer than {Duration(seconds)}"
            raise CallFailed(fact) from None
        except asyncio.CancelledError:
            await self._stop(call)
            raise

    async def _stop(self, call: _Call) -> None:
        await call.stop(self._grace)
        if not call.done.done():
            fact = "a function goes on although nobody waits for it any more"
            self._log.warning(fact, function=call.function.label, phase=call.about.phase)


@dataclass(eq=False)
class _Call:
    """One call and its thread."""

    function: Function
    arguments: Mapping[str, object]
    about: FunctionContext[Any]
    client: Client
    loop: asyncio.AbstractEventLoop
    ended: Callable[[], None]
    over: threading.Event = field(default_factory=threading.Event)
    cancel: Callable[[], None] = lambda: None
    asked: Future[Any] | None = None
    """What a plain function waits for."""

    def __post_init__(self) -> None:
        self.done: asyncio.Future[object] = self.loop.create_future()
        # Somebody who gave up on it does not want to hear of it.
        self.done.add_done_callback(lambda done: done.cancelled() or done.exception())

    def start(self) -> None:
        name = f"polyver-{self.function.name}"
        # Of a kind that does not keep the process from ending.
        threading.Thread(target=self._run, name=name, daemon=True).start()

    async def stop(self, grace: float) -> None:
        """Tell it to end, and give it a moment for that."""
        self.over.set()
        self.cancel()
        if self.asked is not None:
            self.asked.cancel()
        await asyncio.wait({self.done}, timeout=grace)

    def _run(self) -> None:
        try:
            result = self._in_loop() if self.function.is_async else self._plainly()
            self._tell(partial(self._end, self.done.set_result, result))
        except BaseException as error:
            failure = _failure(self.function, error)
            self._tell(partial(self._end, self.done.set_exception, failure))
        finally:
            self._tell(self.ended)

    def _end(self, end: Callable[[Any], None], what: object) -> None:
        if not self.done.done():
            end(what)

    def _tell(self, what: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop has gone: nobody is there to be told
            self.loop.call_soon_threadsafe(what)

    def _plainly(self) -> object:
        client = BlockingClient(self.client, self._wait)
        ctx = replace(self.about, client=client, is_over=self.over.is_set)
        return self.function.call(ctx, self.arguments)

    def _in_loop(self) -> object:
        client = RemoteClient(self.client, self._send)
        ctx = replace(self.about, client=client, is_over=self.over.is_set)

        async def main() -> object:
            task, own = asyncio.current_task(), asyncio.get_running_loop()
            assert task is not None

            def cancel() -> None:
                with suppress(RuntimeError):  # it has ended meanwhile
                    own.call_soon_threadsafe(task.cancel)

            self.cancel = cancel
            if self.over.is_set():
                raise Cancelled
            return await self.function.call(ctx, self.arguments)

        with asyncio.Runner() as runner:
            return runner.run(main())

    def _send(self, call: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(call, self.loop)

    def _wait(self, call: Coroutine[Any, Any, Any]) -> Any:
        if self.over.is_set():
            call.close()
            raise Cancelled
        self.asked = self._send(call)
        if self.over.is_set():
            self.asked.cancel()
        try:
            return self.asked.result()
        except CancelledError:
            raise Cancelled from None


def _failure(function: Function, error: BaseException) -> CallFailed:
    if isinstance(error, PolyverError):
        return CallFailed(str(error), error)
    said = str(error) or "without a word"
    return CallFailed(f"{function.label} raised {type(error).__name__}: {said}", error)
