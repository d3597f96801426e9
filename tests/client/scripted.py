"""Servers that misbehave as they are told, and a line between a client and a good one."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.deadlines import HANG

from polyver.client.cluster import ClientLimits, ClusterAccess, ClusterClient
from polyver.client.cluster._access import KubeconfigCluster, KubeconfigUser

if TYPE_CHECKING:
    from tests.client.virtual import VirtualClock


@dataclass(frozen=True)
class Seen:
    """A request as it came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    peer: str = ""
    """The name in the client's certificate."""

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


@dataclass(frozen=True)
class Reply:
    """What is answered, and what happens to the connection then."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    hangs: bool = False
    """Nothing more comes, and the connection stays open."""
    breaks: bool = False
    """The connection ends before the answer does."""


def reply(content: object, status: int = 200, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, json.dumps(content).encode(), named)


def refused(status: int, reason: str, message: str, **headers: str) -> Reply:
    about = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return reply(about | {"reason": reason, "message": message, "code": status}, status, **headers)


@dataclass
class Scripted:
    """A server that answers what a function says."""

    answer: Callable[[Seen], Reply]
    seen: list[Seen] = field(default_factory=list)
    url: str = ""

    def access(self, user: KubeconfigUser | None = None, **cluster: object) -> ClusterAccess:
        options: dict[str, object] = {"server": self.url, **cluster}
        return ClusterAccess(KubeconfigCluster(**options), user or KubeconfigUser(), "a test")  # type: ignore[arg-type]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended = (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError)
        try:
            with suppress(*ended):
                while await self._one(reader, writer):
                    pass
                writer.close()
                await writer.wait_closed()
        finally:
            writer.transport.abort()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (x.partition(": ") for x in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        method, target, _ = first.split()
        seen = Seen(method, target, headers, body, _peer(writer))
        self.seen.append(seen)
        said = self.answer(seen)
        if said.breaks and not said.body:
            return False
        length = len(said.body) + (1 if said.hangs or said.breaks else 0)
        told = {"content-type": "application/json", "content-length": str(length)} | said.headers
        text = "".join(f"{name}: {value}\r\n" for name, value in told.items())
        writer.write(f"HTTP/1.1 {said.status} X\r\n{text}\r\n".encode() + said.body)
        await writer.drain()
        if said.hangs:
            await reader.read()
        return not (said.hangs or said.breaks)


def _peer(writer: asyncio.StreamWriter) -> str:
    found = writer.get_extra_info("peercert") or {}
    names = [value for part in found.get("subject", ()) for key, value in part]
    return names[-1] if names else ""


@asynccontextmanager
async def scripted(
    answer: Callable[[Seen], Reply], *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Scripted]:
    script = Scripted(answer)
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        await script.serve(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    script.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    try:
        yield script
    finally:
        server.close()
        await _ended(tasks)


async def _ended(tasks: set[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0)  # in which the connections go, too


@dataclass
class Line:
    """A way through to a server that can be cut, closed and frozen."""

    target: int
    port: int = 0
    refuses: bool = False
    frozen: bool = False
    _open: set[asyncio.StreamWriter] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def connections(self) -> int:
        return len(self._open) // 2

    def cut(self) -> None:
        """End all connections at once, as when a server is killed."""
        for writer in self._open:
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        if self.refuses:
            writer.transport.abort()
            return
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, back}
        try:
            with suppress(asyncio.CancelledError):
                await asyncio.gather(self._copy(reader, back), self._copy(there, writer))
        finally:
            self._open -= {writer, back}
            writer.transport.abort()
            back.transport.abort()

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await source.read(65536):
                if not self.frozen:
                    target.write(data)
                    await target.drain()
        target.close()


@asynccontextmanager
async def line_to(target: int) -> AsyncIterator[Line]:
    line = Line(target)
    server = await asyncio.start_server(line.serve, "127.0.0.1", 0)
    line.port = server.sockets[0].getsockname()[1]
    try:
        yield line
    finally:
        server.close()
        await _ended(line._tasks)


def asked(
    answer: Callable[[Seen], Reply],
    scenario: Callable[[ClusterClient, Scripted], Awaitable[None]],
    *,
    limits: ClientLimits | None = None,
    clock: VirtualClock | None = None,
    user: KubeconfigUser | None = None,
) -> None:
    """Run a scenario with a client of a scripted server."""

    async def run() -> None:
        async with scripted(answer) as server:
            access = server.access(user)
            async with ClusterClient(access, limits=limits, clock=clock) as client:
                await asyncio.wait_for(scenario(client, server), HANG)

    asyncio.run(run())


async def settled(condition: Callable[[], bool]) -> None:
    """Wait until something holds; pytest ends a test that waits in vain."""
    async with asyncio.timeout(HANG):
        while not condition():
            await asyncio.sleep(0.005)
