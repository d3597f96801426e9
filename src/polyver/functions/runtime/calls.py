"""Runs one call of a blueprint function in a thread, and validates the returned value.

In production, this code runs in a worker process that makes only this call (`worker.py`), because a
process can be killed and a thread cannot. Tests make calls in threads of the test process
(`ThreadCalls`).

A function may block, so it does not run in the event loop of the process. An async function runs in
its own event loop, in the thread of the call.
"""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import msgspec

from polyver.client import Client
from polyver.core import PolyverError
from polyver.functions.registering import Function
from polyver.functions.runtime.context import (
    BlockingClient,
    Cancelled,
    FunctionContext,
    RemoteClient,
)
from polyver.functions.settings import DEFAULT_SECONDS
from polyver.kube.objects import encode_json

__all__ = ["CallLimits", "FunctionCallFailed", "ThreadCall", "output_of"]

_DEEPEST = 90


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Limits for calls of functions."""

    at_once: int = 32
    """Maximum number of concurrent calls."""
    seconds: float = DEFAULT_SECONDS
    """Timeout of a call in seconds."""
    output: int = 256 * 1024
    """Maximum size of the value that a function returns, in bytes of JSON."""
    status: int = 1024 * 1024
    """Maximum size of an ActionSet's status, in bytes of JSON.

    The limit is needed because API servers limit the size of objects.
    """
    log: int = 256 * 1024
    """Maximum size of the log of one call, in bytes. polyver drops the lines after this limit."""
    grace: float = 2.0
    """Seconds for which polyver waits, after a stop request, until the call ends by itself.

    polyver sends a stop request after a timeout, a cancellation or at shutdown.
    """


class FunctionCallFailed(PolyverError):
    """A call failed: the function raised an exception, took too long, or could not be called."""

    def __init__(self, fact: str, *, trace: str = "") -> None:
        super().__init__(fact)
        self.trace = trace
        """The traceback of the function's exception. Empty if polyver itself reports the error."""


@dataclass(eq=False)
class ThreadCall:
    """One call, which runs in its own thread.

    The client belongs to the event loop `loop`, which runs in another thread.
    """

    function: Function
    arguments: Mapping[str, object]
    about: FunctionContext[Any]
    client: Client
    loop: asyncio.AbstractEventLoop
    over: threading.Event = field(default_factory=threading.Event)
    cancel: Callable[[], None] = lambda: None
    asked: Future[Any] | None = None
    """The API call for whose result a blocking function waits; None if there is none."""

    def __post_init__(self) -> None:
        self.done: asyncio.Future[object] = self.loop.create_future()
        # Read the exception. After a timeout no code awaits this future, and asyncio would log an
        # exception that is never read.
        self.done.add_done_callback(lambda done: done.cancelled() or done.exception())

    def start(self) -> None:
        name = f"polyver-{self.function.name}"
        # A daemon thread cannot prevent the end of the process.
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def stop(self) -> None:
        """Try to stop the function: cancel its API call, and the asyncio task of an async function.

        A function that ignores this continues to run.
        """
        self.over.set()
        self.cancel()
        if self.asked is not None:
            self.asked.cancel()

    def _run(self) -> None:
        try:
            result = self._in_loop() if self.function.is_async else self._plainly()
            self._tell(partial(self._end, self.done.set_result, result))
        except BaseException as error:
            failure = _failure(self.function, error)
            self._tell(partial(self._end, self.done.set_exception, failure))

    def _end(self, end: Callable[[Any], None], what: object) -> None:
        if not self.done.done():
            end(what)

    def _tell(self, what: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed: no code waits for the result
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
                with suppress(RuntimeError):  # the event loop has ended meanwhile
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


def _failure(function: Function, error: BaseException) -> FunctionCallFailed:
    if isinstance(error, PolyverError):
        return FunctionCallFailed(str(error))
    said = str(error) or "without a message"
    trace = "".join(traceback.format_exception(error))
    return FunctionCallFailed(
        f"{function.label} raised {type(error).__name__}: {said}", trace=trace
    )


def output_of(result: object, function: Function, *, largest: int) -> dict[str, Any]:
    """Convert the value that a function returned to plain data.

    Raise FunctionCallFailed if it is not JSON data, is larger than `largest` bytes, or is nested
    too deeply.
    """
    if result is None:
        return {}
    if not isinstance(result, Mapping) or not all(isinstance(key, str) for key in result):
        kind = type(result).__name__
        raise FunctionCallFailed(
            f"{function.label} returned a {kind}, not a mapping of strings to data"
        )
    try:
        text = encode_json(dict(result))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise FunctionCallFailed(
            f"{function.label} returned a value that is not JSON data: {error}"
        ) from None
    if len(text) > largest:
        fact = f"{function.label} returned {len(text)} bytes"
        raise FunctionCallFailed(f"{fact}, more than {largest}; store the data elsewhere")
    output: dict[str, Any] = msgspec.json.decode(text)
    if _nests_deeply(output):
        raise FunctionCallFailed(
            f"{function.label} returned a value nested deeper than {_DEEPEST} levels"
        )
    return output


def _nests_deeply(value: object) -> bool:
    """Report whether a value is nested too deeply for templates and for copies."""
    level = [value]
    for _ in range(_DEEPEST):
        inside = [list(each.values()) for each in level if isinstance(each, dict)]
        inside += [each for each in level if isinstance(each, list)]
        level = [each for values in inside for each in values]
    return bool(level)
