"""One request and its answer: as a whole where both are, or in ASGI's messages.

An answer whose length is known leaves in one piece, head and body, because each piece is a record
of TLS, a call of the system and a client that wakes up for half of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import http
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any, Protocol

from polyver.kube.http.http import Application, EncodedResponse

__all__ = ["Exchange", "ExchangeTransport", "head_of"]

Message = Mapping[str, Any]
_BODILESS = (204, 304)
_PIECE = 256 * 1024
_NO_HEADERS: tuple[tuple[bytes, bytes], ...] = ()


def _status_line(code: int) -> bytes:
    phrase = http.HTTPStatus(code).phrase if code in http.HTTPStatus._value2member_map_ else ""
    return f"HTTP/1.1 {code} {phrase}\r\n".encode()


_STATUS_LINES = {code: _status_line(code) for code in range(100, 600)}
_FAILED = b"Internal Server Error"
_FAILURE_HEADERS = [
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"content-length", b"%d" % len(_FAILED)),
    (b"connection", b"close"),
]


class ExchangeTransport(Protocol):
    """What an exchange needs of its connection."""

    scope: dict[str, Any]
    """What is the same for all requests."""

    @property
    def date(self) -> bytes:
        """The line of a head that says when it was made."""

    @property
    def writable(self) -> Awaitable[object] | None:
        """What is to be awaited before more is written; mostly nothing."""

    def write(self, head: bytes, body: bytes) -> None: ...

    def taken(self, size: int) -> None:
        """So much of what has come is held no longer; more may come."""

    def answered(self, exchange: Exchange) -> None:
        """This was all."""

    def close(self) -> None: ...


class Exchange:
    """A request, as much of it as has come, and as much of its answer as is sent."""

    __slots__ = (
        "_begun",
        "_changed",
        "_chunked",
        "_ended",
        "_expects",
        "_held",
        "_left",
        "_parts",
        "_way",
        "complete",
        "gone",
        "headers",
        "keep_alive",
        "method",
        "path",
        "query",
        "raw_path",
        "size",
        "started",
        "version",
        "whole",
    )

    def __init__(
        self,
        way: ExchangeTransport,
        method: str,
        target: tuple[str, bytes, bytes],
        headers: list[tuple[bytes, bytes]],
        version: str,
        *,
        keep_alive: bool,
        expects: bool,
    ) -> None:
        self._way = way
        self.method = method
        self.path, self.raw_path, self.query = target
        self.headers = headers
        self.version = version
        self.keep_alive = keep_alive
        self.whole = False
        """Whether all of the request has come."""
        self.size = 0
        """How many bytes of the body have come and are not taken yet."""
        self.started = False
        """Whether somebody works on it."""
        self.gone = False
        """Whether the client left before the end."""
        self.complete = False
        """Whether it is answered."""
        self._parts: list[bytes] = []
        self._expects = expects
        self._ended = False  # whether the end of the body was told
        self._changed: asyncio.Event | None = None
        self._begun = False
        self._held = b""
        self._chunked = False
        self._left: int | None = None

    # What comes.

    @property
    def expects(self) -> bool:
        """Whether the client waits to be told to go on."""
        return self._expects

    @property
    def begun(self) -> bool:
        """Whether some of the answer may have been sent."""
        return self._begun

    @property
    def body(self) -> bytes:
        """All that has come and is not taken yet; it stays."""
        parts = self._parts
        if len(parts) == 1:
            return parts[0]
        joined = b"".join(parts)
        self._parts = [joined]
        return joined

    def add(self, part: bytes) -> None:
        self._parts.append(part)
        self.size += len(part)
        self.wake()

    def wake(self) -> None:
        """Let whoever waits look again."""
        if self._changed is not None:
            self._changed.set()

    # In ASGI's messages.

    async def run(self, app: Application) -> None:
        """Have it answered; an application that fails without a word is not the client's fault."""
        scope = self._way.scope.copy()
        scope |= {
            "http_version": self.version,
            "method": self.method,
            "path": self.path,
            "raw_path": self.raw_path,
            "query_string": self.query,
            "headers": self.headers,
            "state": dict(scope["state"]),
        }
        # Applications log what they raise; what else comes is the end of the server.
        with contextlib.suppress(BaseException):
            await app(scope, self.receive, self.send)
        if self.complete or self.gone:
            return
        if self._begun and not self._held:
            self._way.close()
        else:
            self._begin(500, _FAILURE_HEADERS)
            self._go_on(_FAILED, more=False)

    async def receive(self) -> Message:
        if self._expects:
            self._expects = False
            self._way.write(b"HTTP/1.1 100 Continue\r\n\r\n", b"")
        while not (self._parts or self.gone or self.complete):
            if self.whole and not self._ended:
                break
            await self._change()
        if self.gone or self.complete:
            return {"type": "http.disconnect"}
        body = self.body
        self._parts, self.size, self._ended = [], 0, self.whole
        self._way.taken(len(body))
        return {"type": "http.request", "body": body, "more_body": not self.whole}

    async def _change(self) -> None:
        if self._changed is None:
            self._changed = asyncio.Event()
        self._changed.clear()
        await self._changed.wait()

    async def send(self, message: Message) -> None:
        """Send a part of an answer, in pieces: the next when the client has taken most before.

        To encrypt and copy a large body takes long. Others are answered between two pieces.
        """
        body = memoryview(message.get("body", b""))
        if len(body) > _PIECE and self.method != "HEAD":
            while len(body) > _PIECE:
                piece = bytes(body[:_PIECE])
                await self._send({**message, "body": piece, "more_body": True})
                await asyncio.sleep(0)
                body = body[_PIECE:]
            message = {**message, "body": bytes(body)}
        await self._send(message)

    async def _send(self, message: Message) -> None:
        while not self.gone and (writable := self._way.writable) is not None:
            await writable
        if self.gone:
            return
        kind = message["type"]
        if kind == "http.response.start" and not self._begun:
            self._begin(message["status"], message.get("headers", _NO_HEADERS))
        elif kind == "http.response.body" and self._begun and not self.complete:
            self._go_on(message.get("body", b""), more=message.get("more_body", False))
        else:
            raise RuntimeError(f"{kind} is out of order")

    def _begin(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        given = list(headers)
        said = dict(given)
        self._left = int(said[b"content-length"]) if b"content-length" in said else None
        bodiless = self.method == "HEAD" or status in _BODILESS
        ends_alone = self._left is not None or bodiless
        self._chunked = not ends_alone and self.version != "1.0"
        if self._chunked:
            given.append((b"transfer-encoding", b"chunked"))
        elif not ends_alone:
            self.keep_alive = False  # the end of the connection is that of the answer
        if b"close" in said.get(b"connection", b"").lower():
            self.keep_alive = False
        elif not self.keep_alive:
            given.append((b"connection", b"close"))
        self._left = 0 if bodiless else self._left
        self._held = _head(status, self._way.date, given)
        self._begun, self._expects = True, False
        if not ends_alone:
            self._flush(b"")  # who knows when the first piece comes

    def _go_on(self, body: bytes, *, more: bool) -> None:
        if self.method == "HEAD":
            body = b""
        if self._chunked:
            piece = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            self._flush(piece if more else piece + b"0\r\n\r\n")
        else:
            self._flush(self._counted(body, more=more))
        if not more:
            self.finish()

    def _counted(self, body: bytes, *, more: bool) -> bytes:
        """A piece of a body, if the body is as long as was said."""
        if self._left is None:
            return body
        self._left -= len(body)
        if self._left < 0 or (self._left and not more):
            raise RuntimeError("the body is not as long as was said")
        return body

    def _flush(self, body: bytes) -> None:
        head, self._held = self._held, b""
        if head or body:
            self._way.write(head, body)

    def finish(self) -> None:
        """All is said."""
        self.complete = True
        self.wake()
        self._way.answered(self)


def _head(status: int, date: bytes, headers: list[tuple[bytes, bytes]]) -> bytes:
    lines = [b"%b: %b\r\n" % each for each in headers]
    head = b"".join((_STATUS_LINES[status], date, *lines))
    ends = len(lines) + 2
    if head.count(b"\n") != ends or head.count(b"\r") != ends or b"\0" in head:
        raise RuntimeError("a header reaches beyond its line")
    return head + b"\r\n"


def head_of(answer: EncodedResponse, date: bytes, *, keep_alive: bool) -> bytes:
    """The head of an answer that is known as a whole.

    >>> answer = EncodedResponse(200, b"content-type: text/plain\\r\\n", b"ab")
    >>> head_of(answer, b"", keep_alive=True)
    b'HTTP/1.1 200 OK\\r\\ncontent-type: text/plain\\r\\ncontent-length: 2\\r\\n\\r\\n'
    """
    end = b"" if keep_alive else b"connection: close\r\n"
    said = (_STATUS_LINES[answer.status], date, answer.head, end, len(answer.body))
    return b"%b%b%b%bcontent-length: %d\r\n\r\n" % said
