"""The context of a function call: the API client, the data for templates, log, and deadline.

A function runs in its own thread and may block. The client belongs to the event loop of the worker
process, so each API call runs in that event loop. `RemoteClient` and `BlockingClient` have the
methods of `polyver.client.Client`, with the same arguments.
"""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from polyver.client import (
    Client,
    GroupVersionResource,
    Listing,
    PodClient,
)
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.kube.http.logs import Log

__all__ = [
    "NO_NODES",
    "AsyncContext",
    "BlockingClient",
    "Cancelled",
    "Context",
    "FunctionContext",
    "FunctionLog",
    "Lines",
    "NoNodes",
    "RemoteClient",
]

C = TypeVar("C")
P = ParamSpec("P")
T = TypeVar("T")
NO_NODES = "polyver up does not run pods: this needs a cluster with nodes"


class NoNodes(PolyverError):
    """A function needs a cluster with nodes, but this server runs no pods."""

    def __init__(self) -> None:
        super().__init__("commands in pods and logs are not available", hint=NO_NODES)


Send = Callable[[Coroutine[Any, Any, Any]], "Future[Any]"]
"""Schedules a coroutine of another thread in the event loop of the client."""


def _remote(
    method: Callable[Concatenate[C, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[RemoteClient, P], Coroutine[Any, Any, T]]:
    """Build a method for RemoteClient from a method of the client.

    It runs the client's method in the client's event loop, and awaits the result.
    """

    @wraps(method)
    async def call(self: RemoteClient, /, *arguments: P.args, **options: P.kwargs) -> T:
        result: T = await self.send(getattr(self.client, method.__name__)(*arguments, **options))
        return result

    return call


def _on_pods(
    method: Callable[Concatenate[C, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[RemoteClient, P], Coroutine[Any, Any, T]]:
    """Build a method as `_remote` does; the method raises NoNodes if the server runs no pods."""
    remote = _remote(method)

    @wraps(method)
    async def call(self: RemoteClient, /, *arguments: P.args, **options: P.kwargs) -> T:
        if not isinstance(self.client, PodClient):
            raise NoNodes
        return await remote(self, *arguments, **options)

    return call


def _remote_events(
    method: Callable[Concatenate[Client, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate[RemoteClient, P], AsyncGenerator[T, None]]:
    """Build a method for RemoteClient that yields the items of a generator of the client."""

    @wraps(method)
    async def call(
        self: RemoteClient, /, *arguments: P.args, **options: P.kwargs
    ) -> AsyncGenerator[T, None]:
        events = getattr(self.client, method.__name__)(*arguments, **options)
        async with aclosing(_forwarded(events, self)) as found:
            async for event in found:
                yield event

    return call


class RemoteClient:
    """A client for async functions.

    It wraps a `Client`, which belongs to another event loop than the function.
    """

    def __init__(self, client: Client, send: Send) -> None:
        self.client = client
        self.start = send

    async def send(self, call: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the event loop of the wrapped client, and await its result."""
        result: T = await asyncio.wrap_future(self.start(call))
        return result

    get = _remote(Client.get)
    list = _remote(Client.list)
    create = _remote(Client.create)
    update = _remote(Client.update)
    patch = _remote(Client.patch)
    apply = _remote(Client.apply)
    delete = _remote(Client.delete)
    delete_collection = _remote(Client.delete_collection)
    release = _remote(Client.release)
    discover = _remote(Client.discover)
    execute = _on_pods(PodClient.execute)
    logs = _on_pods(PodClient.logs)
    watch = _remote_events(Client.watch)
    watch_kinds = _remote_events(Client.watch_kinds)


async def _forwarded(
    events: AsyncGenerator[T, None], remote: RemoteClient
) -> AsyncGenerator[T, None]:
    """Yield the items of an async generator that belongs to another event loop."""
    try:
        while True:
            try:
                event: T = await remote.send(_next(events))
            except _End:
                return
            yield event
    finally:
        remote.start(events.aclose())


class _End(Exception):
    """Replaces StopAsyncIteration, which a coroutine cannot raise."""


async def _next(events: AsyncGenerator[T, None]) -> T:
    try:
        return await anext(events)
    except StopAsyncIteration:
        raise _End from None


def _blocking(
    method: Callable[Concatenate[Client, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[BlockingClient, P], T]:
    """Build a method for BlockingClient that blocks until the client's method has returned."""

    @wraps(method)
    def call(self: BlockingClient, /, *arguments: P.args, **options: P.kwargs) -> T:
        result: T = self.wait(getattr(self.client, method.__name__)(*arguments, **options))
        return result

    return call


def _blocking_events(
    method: Callable[Concatenate[Client, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate[BlockingClient, P], Iterator[T]]:
    """Build a method for BlockingClient that yields the items of a generator of the client.

    The method blocks until each item arrives.
    """

    @wraps(method)
    def call(self: BlockingClient, /, *arguments: P.args, **options: P.kwargs) -> Iterator[T]:
        events = getattr(self.client, method.__name__)(*arguments, **options)
        try:
            while True:
                event: T = self.wait(_next(events))
                yield event
        except _End:
            return
        finally:
            self.wait(events.aclose())

    return call


class BlockingClient:
    """A client for functions that are not async. Each method blocks until it has a result.

    `watch` blocks until each event arrives. After the deadline of the function, or after the
    cancellation of its action, every method raises `Cancelled`.
    """

    def __init__(self, client: Client, wait: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self.client = client
        self.wait = wait

    get = _blocking(Client.get)
    create = _blocking(Client.create)
    update = _blocking(Client.update)
    patch = _blocking(Client.patch)
    apply = _blocking(Client.apply)
    delete = _blocking(Client.delete)
    delete_collection = _blocking(Client.delete_collection)
    release = _blocking(Client.release)
    discover = _blocking(Client.discover)
    watch = _blocking_events(Client.watch)

    def list(
        self,
        resource: GroupVersionResource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
    ) -> builtins.list[Object]:
        """List the objects of one namespace, or of all namespaces if `namespace` is empty."""
        listing: Listing = self.wait(
            self.client.list(resource, namespace, labels=labels, fields=fields)
        )
        return listing.items


# The context.


class Cancelled(PolyverError):
    """The action was cancelled, or the deadline of the function has passed."""

    def __init__(self) -> None:
        super().__init__("the call has ended: its action was cancelled, or it timed out")


class Lines(Protocol):
    """A log, to which lines can be added."""

    def info(self, event: str, **facts: object) -> None: ...

    def warning(self, event: str, **facts: object) -> None: ...


class FunctionLog:
    """The log of a function. A line has a message and fields: `ctx.log.info("dumped", rows=12)`."""

    def __init__(self, log: Lines | None = None, /, **about: object) -> None:
        self._log = log or Log(verbose=True)
        self._about = about

    def info(self, event: str, **facts: object) -> None:
        self._log.info(event, **self._about | facts)

    def warning(self, event: str, **facts: object) -> None:
        self._log.warning(event, **self._about | facts)


@dataclass(frozen=True, slots=True)
class FunctionContext(Generic[C]):
    """The context of one call of a function."""

    client: C
    """The API client. It is async for an async function, and blocking for any other function."""
    params: Mapping[str, Any]
    """The data that templates read, by root name: Object, Options, Phases and so on."""
    log: FunctionLog
    phase: str
    """Name of the phase that calls the function."""
    deadline: datetime
    """Time until which the function must return. If it returns later, the call fails."""
    namespace: str = ""
    """Namespace of the ActionSet."""
    key: str = ""
    """A string that identifies this phase of this ActionSet.

    It is the same in each call of the phase, also after a restart of polyver.
    """
    allows: frozenset[str] = frozenset()
    """Permissions that the operator has granted to functions.

    `command` allows the function `Command` to run programs.
    """
    is_over: Callable[[], bool] = field(default=lambda: False, repr=False)
    mask: Callable[[str], str] = field(default=lambda text: text, repr=False)
    """Masks values of Secrets in a string.

    polyver itself masks the exceptions and logs of a function. But a function that truncates a
    string must mask it first, because a truncated value would not be recognized.
    """

    @property
    def remaining(self) -> float:
        """Return the number of seconds until the deadline."""
        return max((self.deadline - datetime.now(UTC)).total_seconds(), 0.0)

    def check(self) -> None:
        """Raise `Cancelled` if the call was cancelled, or if its deadline has passed."""
        if self.is_over() or not self.remaining:
            raise Cancelled


Context = FunctionContext[BlockingClient]
AsyncContext = FunctionContext[Client]
