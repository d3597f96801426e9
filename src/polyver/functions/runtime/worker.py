"""The worker process of one call: reads the request, calls the function, and reports the result.

A worker runs third-party code, so polyver does not trust its messages: polyver masks and limits all
data that a worker sends.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from polyver.client import Executed, GroupVersionResource, WatchEvent
from polyver.client.client import ClientRequest
from polyver.client.cluster import ClusterAccess, ClusterClient, read_access
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.functions.registering import Function
from polyver.functions.runtime.calls import FunctionCallFailed, ThreadCall, output_of
from polyver.functions.runtime.context import FunctionContext, FunctionLog, NoNodes
from polyver.functions.runtime.messages import (
    LARGEST_LINE,
    WorkerMessage,
    WorkerRequest,
    decode_request,
    encode_line,
)
from polyver.kube.objects.masking import Masks

__all__ = ["Find", "work"]

Find = Callable[[WorkerRequest], Function]
"""Returns the function that a request names. Raises PolyverError if there is no such function."""
_LONGEST = 8 * 1024
_LONGEST_TRACE = 64 * 1024
_SECRETS = re.compile(r"/api/v1/(namespaces/[^/]+/)?secrets(/|$)")


def work(messages: socket.socket, find: Find) -> None:
    """Read the request from a socket, make the call, and send the result."""
    asyncio.run(_work(messages, find))


async def _work(messages: socket.socket, find: Find) -> None:
    reader, writer = await asyncio.open_connection(sock=messages, limit=LARGEST_LINE)
    request = decode_request(await reader.readline())
    reports = _Reports(writer, asyncio.get_running_loop(), request.secrets, most=request.log)
    try:
        function = find(request)
        result = await _called(request, function, reader, reports)
        reports.send(WorkerMessage(output=output_of(result, function, largest=request.output)))
    except FunctionCallFailed as failure:
        trace = reports.masks.mask(failure.trace)[-_LONGEST_TRACE:]
        reports.send(WorkerMessage(failed=failure.fact or "it failed", trace=trace))
    except PolyverError as error:
        reports.send(WorkerMessage(failed=str(error)))
    writer.close()
    await writer.wait_closed()


async def _called(
    request: WorkerRequest, function: Function, reader: asyncio.StreamReader, reports: _Reports
) -> object:
    access = read_access(request.cluster, request.user, place=request.server)
    async with _client(access, request, reports.note) as client:
        about = _context(request, client, reports)
        loop = asyncio.get_running_loop()
        call = ThreadCall(function, request.arguments, about, client, loop)
        call.start()
        stopping = asyncio.create_task(_stop_when_told(reader, call))
        try:
            return await call.done
        finally:
            stopping.cancel()


async def _stop_when_told(reader: asyncio.StreamReader, call: ThreadCall) -> None:
    # polyver sends no other message than a request to stop. If polyver ends, the socket closes; the
    # call is then stopped too.
    await reader.readline()
    call.stop()


def _context(
    request: WorkerRequest, client: ClusterClient, reports: _Reports
) -> FunctionContext[ClusterClient]:
    return FunctionContext(
        client,
        request.params,
        FunctionLog(reports),
        request.phase,
        request.deadline,
        request.namespace,
        request.key,
        frozenset(request.allows),
        mask=reports.masks.mask,
    )


class _Reports:
    """Sends messages to polyver. Functions run in other threads, so this class is thread-safe."""

    def __init__(
        self,
        writer: asyncio.StreamWriter,
        loop: asyncio.AbstractEventLoop,
        secrets: Sequence[str],
        *,
        most: int,
    ) -> None:
        self._writer = writer
        self._loop = loop
        self._left = most
        self.masks = Masks()
        for each in secrets:
            self.masks.add(each)

    def info(self, event: str, **facts: object) -> None:
        self._line("info", event, facts)

    def warning(self, event: str, **facts: object) -> None:
        self._line("warning", event, facts)

    def _line(self, level: str, event: str, facts: Mapping[str, object]) -> None:
        if self._left < 0:
            return
        shown = {str(name): _plain(value, self.masks) for name, value in facts.items()}
        line = WorkerMessage(level=level, event=self.masks.mask(str(event))[:_LONGEST], facts=shown)
        self._left -= len(encode_line(line))
        # Also send the first line that exceeds the limit. By this line, polyver detects that lines
        # are dropped.
        self._loop.call_soon_threadsafe(self.send, line)

    def note(self, obj: Object) -> None:
        """Mask the values of a Secret that the function has read, and send them to polyver."""
        known = set(self.masks.values)
        self.masks.add_secret(obj)
        new = [each for each in self.masks.values if each not in known]
        if new:
            self.send(WorkerMessage(secrets=new))

    def send(self, answer: WorkerMessage) -> None:
        self._writer.write(encode_line(answer))


def _plain(value: object, masks: Masks) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    return masks.mask(str(value))[:_LONGEST]


def _client(
    access: ClusterAccess, request: WorkerRequest, note: Callable[[Object], None]
) -> ClusterClient:
    kind = _WorkerClient if request.runs_pods else _NoPods
    return kind(access, note)


class _WorkerClient(ClusterClient):
    """The API client of a function. It calls `note` with each Secret that the function reads."""

    def __init__(self, access: ClusterAccess, note: Callable[[Object], None]) -> None:
        super().__init__(access, agent="polyver-function")
        self._note = note

    async def _ask(self, ask: ClientRequest) -> Object:
        found = await super()._ask(ask)
        if _SECRETS.match(ask.path):
            # The response to a list request has the Secrets in `items`.
            for each in (found, *(found.get("items") or ())):
                self._note(each)
        return found

    async def watch(
        self, resource: GroupVersionResource, *arguments: Any, **options: Any
    ) -> AsyncGenerator[WatchEvent, None]:
        async with aclosing(super().watch(resource, *arguments, **options)) as events:
            async for event in events:
                if (resource.group, resource.plural) == ("", "secrets"):
                    self._note(event.object)
                yield event


class _NoPods(_WorkerClient):
    """The API client of a function, if the API server runs no pods."""

    async def execute(self, *_: Any, **__: Any) -> Executed:
        raise NoNodes

    async def logs(self, *_: Any, **__: Any) -> bytes:
        raise NoNodes
