"""Calls functions with limits on time, size and concurrency, and probes their readiness.

Each function revision has its own connection and its own concurrency limit. So a slow or dead
function delays only its own callers. The library gRPC is loaded at the first call.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from polyver.compositions.calls.endpoints import Endpoint
from polyver.compositions.calls.errors import (
    CallFailure,
    FunctionFailed,
    UnreadableMessage,
    UnwritableMessage,
)
from polyver.compositions.calls.metrics import CallMetrics
from polyver.compositions.calls.protocol import decode_response, encode_request
from polyver.compositions.messages import Request, Response
from polyver.kube.objects.protobuf_wire import MalformedError, fields

if TYPE_CHECKING:
    from polyver.compositions.calls._channels import FunctionConnection

__all__ = ["Caller", "CallerLimits", "probe"]

_PAUSES = (0.1, 0.5)
"""Average seconds of the pauses before the second and the third try of a call."""
_LARGE = 1 << 18
"""A response with more bytes than this is decoded in a worker thread.

Decoding it on the event loop would block the event loop.
"""
_SETTINGS = {
    # polyver reports errors itself; gRPC must not write them to stderr too.
    "GRPC_VERBOSITY": "NONE",
    # Without this setting, gRPC would stop its threads each time polyver starts a process, in case
    # the child process also used gRPC.
    "GRPC_ENABLE_FORK_SUPPORT": "0",
}
_HEALTH = "/grpc.health.v1.Health/Check"
_MOST = 1 << 16
_SERVING = 1


chance = random.SystemRandom().random
"""Returns a random number in [0, 1), so that retries are spread over time.

`random.seed` does not affect it.
"""


@dataclass(frozen=True, slots=True)
class CallerLimits:
    """Limits for the calls of each function revision, and for the size of messages."""

    concurrent: int = 32
    """Maximum number of concurrent calls of a function revision."""
    waiting: int = 1024
    """Maximum number of calls of a function revision that may wait for a concurrency slot."""
    most_sent: int = 4 << 20
    """Maximum size of a request in bytes.

    The default is 4 MiB, because functions made with Crossplane's SDKs accept 4 MiB by default.
    """
    most_received: int = 4 << 20
    """Maximum size of a response in bytes."""


class Caller:
    """Calls functions over persistent connections. Each Caller belongs to one event loop."""

    def __init__(
        self, limits: CallerLimits | None = None, *, metrics: CallMetrics | None = None
    ) -> None:
        self._limits = limits or CallerLimits()
        self.metrics = metrics or CallMetrics()
        self._lines: dict[str, _Line] = {}
        self._finishing: list[_Line] = []
        """Connections of revisions that `forget` has removed. They are closed when their calls have
        ended.
        """

    async def call(
        self, endpoint: Endpoint, request: Request, *, within: float = 10.0, resend: bool = True
    ) -> Response:
        """Call a function. Return its response, or raise FunctionFailed.

        The response must arrive within `within` seconds. If a request may have been lost, it is
        sent again within this time, because functions have no side effects. A request is sent at
        most three times if no connection can be made, and at most twice if the connection breaks.
        If `resend` is False, a request that the function may have received is not sent again.
        """
        now = asyncio.get_running_loop().time
        counts = self.metrics.of(endpoint.revision)
        deadline = _Deadline(within, now() + within)
        began = now()
        counts.in_flight += 1
        try:
            await load_grpc()
            line = self._lines.get(endpoint.revision)
            if line is None:
                line = self._lines[endpoint.revision] = _Line(self._limits)
            async with line.turn(endpoint, deadline):
                content = self._encoded(endpoint, request)
                answer = await _answered(line, endpoint, content, deadline, resend=resend)
            response = await _decoded(endpoint, answer)
        except FunctionFailed as error:
            counts.observe(error.failure, now() - began)
            raise
        finally:
            counts.in_flight -= 1
        counts.observe(None, now() - began)
        return response

    async def forget(self, revision: str) -> None:
        """Remove a function revision that is not called any more. Calls in progress may finish."""
        self.metrics.forget(revision)
        if line := self._lines.pop(revision, None):
            await line.retire()
            self._finishing = [each for each in (*self._finishing, line) if each.open]

    async def close(self) -> None:
        """Close all connections. Calls in progress fail."""
        lines = [*self._lines.values(), *self._finishing]
        self._lines, self._finishing = {}, []
        for line in lines:
            await line.close()

    @property
    def connections(self) -> int:
        """The number of open connections to all function revisions."""
        return sum(line.open for line in (*self._lines.values(), *self._finishing))

    def _encoded(self, endpoint: Endpoint, request: Request) -> bytes:
        try:
            content = encode_request(request)
        except UnwritableMessage as error:
            fact = f"cannot be called: {error.problem}, at {error.at}"
            raise _failed(endpoint, CallFailure.UNSENDABLE, fact) from None
        if (size := len(content)) > (most := self._limits.most_sent):
            fact = f"cannot be called: the request has {size:,} bytes, and {most:,} are allowed"
            raise _failed(endpoint, CallFailure.TOO_LARGE, fact)
        return content


@dataclass(frozen=True, slots=True)
class _Deadline:
    """The timeout of a call in seconds, and the time at which it is reached."""

    within: float
    at: float

    @property
    def left(self) -> float:
        return max(0.0, self.at - asyncio.get_running_loop().time())


class _Line:
    """The connections and the concurrency slots that all calls of one function revision share."""

    def __init__(self, limits: CallerLimits) -> None:
        self._limits = limits
        self._turns = asyncio.Semaphore(limits.concurrent)
        self._waiting = 0
        self._connections: list[FunctionConnection] = []
        """Open connections. The last one is the current connection, which new calls use."""
        self._retired = self._closed = False

    @asynccontextmanager
    async def turn(self, endpoint: Endpoint, deadline: _Deadline) -> AsyncIterator[None]:
        """Wait for a concurrency slot, which is released at the end of the `with` block.

        Raise FunctionFailed if too many calls are waiting already, or if the wait exceeds the
        deadline.
        """
        if self._turns.locked() and self._waiting >= self._limits.waiting:
            fact = f"is busy: {self._waiting:,} calls are already waiting"
            raise _failed(endpoint, CallFailure.BUSY, fact)
        self._waiting += 1
        try:
            async with asyncio.timeout_at(deadline.at):
                await self._turns.acquire()
        except TimeoutError:
            others = f"{self._limits.concurrent:,} other calls are in progress"
            fact = f"could not be called within {deadline.within:g}s: {others}"
            raise _failed(endpoint, CallFailure.DEADLINE, fact) from None
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._turns.release()

    @asynccontextmanager
    async def connected(self, endpoint: Endpoint) -> AsyncIterator[FunctionConnection]:
        """Yield a connection to the current address of the revision.

        If the address has changed, calls in progress may finish on connections to the earlier
        address.
        """
        from polyver.compositions.calls._channels import FunctionConnection

        if self._closed:
            raise _closed(endpoint)
        if not self._connections or self._connections[-1].endpoint != endpoint:
            limits = self._limits
            sizes = {"most_sent": limits.most_sent, "most_received": limits.most_received}
            self._connections.append(FunctionConnection(endpoint, **sizes))
        connection = self._connections[-1]
        connection.calls += 1
        try:
            await self._tidy()
            yield connection
        finally:
            connection.calls -= 1
            await self._tidy()

    async def _tidy(self) -> None:
        """Close the connections without calls, except the current connection."""
        kept = () if self._retired else self._connections[-1:]
        over = [each for each in self._connections if not each.calls and each not in kept]
        self._connections = [each for each in self._connections if each not in over]
        for each in over:
            await each.close()

    @property
    def open(self) -> int:
        return len(self._connections)

    async def retire(self) -> None:
        """Close each connection as soon as all its calls have ended."""
        self._retired = True
        await self._tidy()

    async def close(self) -> None:
        """Close all connections. Calls that are in progress or that wait fail."""
        self._closed = True
        connections, self._connections = self._connections, []
        for each in connections:
            await each.close()


async def _answered(
    line: _Line, endpoint: Endpoint, content: bytes, deadline: _Deadline, *, resend: bool
) -> bytes:
    """Send a request until a response arrives, or until no further try is allowed."""
    from polyver.compositions.calls._channels import ConnectionClosed, RpcError, failed, meaning

    tries, sent = 0, False
    async with line.connected(endpoint) as connection:
        while True:
            tries += 1
            try:
                return await connection.ask(content, within=deadline.left)
            except RpcError as error:
                found = meaning(error, endpoint, within=deadline.within)
                sent |= found.sent
                most = found.tries if resend or not sent else 1
                pause = _PAUSES[tries - 1] * (0.5 + chance()) if tries < most else 0.0
                if tries >= most or pause >= deadline.left:
                    raise failed(found, endpoint, sent=sent) from None
            except ConnectionClosed:
                raise _closed(endpoint) from None
            await asyncio.sleep(pause)


async def _decoded(endpoint: Endpoint, answer: bytes) -> Response:
    try:
        if len(answer) > _LARGE:
            return await asyncio.to_thread(decode_response, answer)
        return decode_response(answer)
    except UnreadableMessage as error:
        place = f", at {error.at}" if error.at else ""
        fact = f"violates the protocol: {error.problem}{place}"
        raise _failed(endpoint, CallFailure.BROKEN, fact) from None


def _closed(endpoint: Endpoint) -> FunctionFailed:
    fact = "could not answer: the caller closed the connection"
    return _failed(endpoint, CallFailure.UNREACHABLE, fact)


def _failed(endpoint: Endpoint, failure: CallFailure, fact: str) -> FunctionFailed:
    return FunctionFailed(failure, fact, revision=endpoint.revision, address=endpoint.address)


_ready = False


async def load_grpc() -> None:
    """Load gRPC in a worker thread: the import takes a tenth of a second."""
    global _ready  # noqa: PLW0603 - a module is loaded once for all
    if not _ready:
        await asyncio.to_thread(_load)
        _ready = True


def _load() -> None:
    ours = {name: value for name, value in _SETTINGS.items() if name not in os.environ}
    os.environ |= ours
    try:
        importlib.import_module("polyver.compositions.calls._channels")
    finally:
        # gRPC has read these environment variables. Remove them, so that child processes do not
        # inherit them.
        for name in ours:
            os.environ.pop(name, None)


async def probe(endpoint: Endpoint, *, within: float = 2.0) -> None:
    """Check whether a function can be called. If it cannot, raise FunctionFailed with the reason.

    A server without a gRPC health service answers UNIMPLEMENTED. polyver treats this server as
    ready, because its certificate belongs to the function revision, it trusts polyver's
    certificate, and it speaks gRPC.
    """
    await load_grpc()
    from polyver.compositions.calls import _channels as channels

    channel = channels.open_channel(endpoint, most_sent=_MOST, most_received=_MOST)
    try:
        answer = await channels.answered(channel, _HEALTH, b"", within=within)
    except channels.RpcError as error:
        if error.code() is not channels.Code.UNIMPLEMENTED:
            found = channels.meaning(error, endpoint, within=within)
            raise channels.failed(found, endpoint, sent=found.sent) from None
    else:
        _check(answer, endpoint)
    finally:
        await channel.close(None)


def _check(answer: bytes, endpoint: Endpoint) -> None:
    """Raise FunctionFailed unless the answer of the health service is SERVING."""
    try:
        states = [each.integer("status") for each in fields(answer, "") if each.number == 1]
    except MalformedError as error:
        raise _failed(
            endpoint,
            CallFailure.BROKEN,
            f"answers the health check with an invalid message: {error}",
        ) from None
    if states[-1:] != [_SERVING]:
        raise _failed(endpoint, CallFailure.UNREACHABLE, "reports that it is not ready")
