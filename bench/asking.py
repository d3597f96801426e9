"""A client that costs little, the same for every server: HTTPS connections that stay open."""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from typing import Any

from bench.planes import LOOPBACK, Plane

__all__ = ["Connection"]

_LARGEST = 64 * 1024 * 1024


class Connection:
    """One connection; one request at a time."""

    def __init__(
        self, plane: Plane, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._plane = plane
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, plane: Plane) -> Connection:
        context = ssl._create_unverified_context()
        reader, writer = await asyncio.open_connection(
            LOOPBACK, plane.port, ssl=context, limit=_LARGEST
        )
        return cls(plane, reader, writer)

    async def raw(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        media: str = "application/json",
        accept: str = "application/json",
    ) -> bytes:
        """What is answered; anything but a success ends the measurement."""
        await self._send(method, path, body, media, accept)
        status, headers = await self._head()
        if headers.get("transfer-encoding") == "chunked":
            parts = [part async for part in self._chunks()]
            answer = b"".join(parts)
        else:
            answer = await self._reader.readexactly(int(headers.get("content-length", "0")))
        if status >= 300:
            sys.exit(f"{self._plane.name}: {method} {path}: {status} {answer[:500]!r}")
        return answer

    async def ask(self, method: str, path: str, body: object = None, **options: str) -> Any:
        sent = b"" if body is None else json.dumps(body).encode()
        return json.loads(await self.raw(method, path, sent, **options))

    async def lines(self, path: str, accept: str = "application/json") -> Lines:
        """The events of a watch, which has begun when this returns."""
        await self._send("GET", path, b"", "application/json", accept)
        status, headers = await self._head()
        if status != 200 or headers.get("transfer-encoding") != "chunked":
            sys.exit(f"{self._plane.name}: GET {path}: {status} is no watch")
        return Lines(self._reader)

    def close(self) -> None:
        self._writer.transport.abort()

    async def _send(self, method: str, path: str, body: bytes, media: str, accept: str) -> None:
        length = f"content-length: {len(body)}\r\ncontent-type: {media}\r\n" if body else ""
        head = (
            f"{method} {path} HTTP/1.1\r\nhost: {LOOPBACK}:{self._plane.port}\r\n"
            f"authorization: Bearer {self._plane.token}\r\nuser-agent: bench/1\r\n"
            f"accept: {accept}\r\n{length}\r\n"
        )
        self._writer.write(head.encode() + body)
        await self._writer.drain()

    async def _head(self) -> tuple[int, dict[str, str]]:
        text = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *rest = text.split("\r\n")
        pairs = (line.partition(":") for line in rest if line)
        return int(first.split()[1]), {name.lower(): value.strip() for name, _, value in pairs}

    async def _chunks(self) -> Any:
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            yield (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readexactly(2)


class Lines:
    """The lines of a stream in chunks, however they are cut."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._left = b""

    async def take(self, count: int) -> list[bytes]:
        """So many lines."""
        while self._left.count(b"\n") < count:
            size = int(await self._reader.readuntil(b"\r\n"), 16)
            self._left += (await self._reader.readexactly(size + 2))[:-2]
        *found, self._left = self._left.split(b"\n", count)
        return found
