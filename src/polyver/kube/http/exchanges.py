"""An exchange: one request on a connection and its answer, as ASGI messages.

If the length of the answer's body is known, body and headers are sent together: each separate write
costs a TLS record, a system call and a wake-up of the client.
"""

from __future__ import annotations

import asyncio
import contextlib
import http
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any, Protocol

from polyver.kube.http.http import Application, EncodedResponse

__all__ = ["Exchange", "ExchangeTransport", "header_block_of"]

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
    """The operations of a connection that an exchange (a request and its answer) uses."""

    scope: dict[str, Any]
    """The part of the ASGI scope that all requests of the connection share."""

    @property
    def date(self) -> bytes:
        """The header line `Date` with the current time."""

    @property
    def writable(self) -> Awaitable[object] | None:
        """An awaitable that is done when more can be written. None if this is possible now."""

    def write(self, headers: bytes, body: bytes) -> None: ...

    def taken(self, size: int) -> None:
        """Record that the application has taken `size` bytes of the body.

        The connection stops reading while too many bytes wait for the application. If it has
        stopped, it reads again.
        """

    def answered(self, exchange: Exchange) -> None:
        """Record that the answer to a request is complete, so that the next request can begin."""

    def close(self) -> None: ...


class Exchange:
    """One request and its answer: the part that was received, and the part that was sent."""

    __slots__ = (
        "_changed",
        "_chunked",
        "_connection",
        "_ended",
        "_held",
        "_left",
        "_parts",
        "begun",
        "complete",
        "expects",
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
        connection: ExchangeTransport,
        method: str,
        target: tuple[str, bytes, bytes],
        headers: list[tuple[bytes, bytes]],
        version: str,
        *,
        keep_alive: bool,
        expects: bool,
    ) -> None:
        self._connection = connection
        self.method = method
        self.path, self.raw_path, self.query = target
        self.headers = headers
        self.version = version
        self.keep_alive = keep_alive
        self.whole = False
        """True if the request was received completely, including its body."""
        self.size = 0
        """The number of received body bytes that the application has not taken yet."""
        self.started = False
        """True if the application has received the request, perhaps without its whole body."""
        self.gone = False
        """True if the client disconnected before the answer was complete."""
        self.complete = False
        """True if the answer was sent completely."""
        self._parts: list[bytes] = []
        self.expects = expects
        """True if the client sends the body only after it has received `100 Continue`."""
        self._ended = False  # True if the application got the end of the body
        self._changed: asyncio.Event | None = None
        self.begun = False
        """True if a part of the answer may have been sent."""
        self._held = b""
        self._chunked = False
        self._left: int | None = None

    # Receiving.

    @property
    def body(self) -> bytes:
        """The received part of the body that the application has not taken yet."""
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
        """Wake the task that answers the request, if it waits, for example for more of the body."""
        if self._changed is not None:
            self._changed.set()

    # ASGI.

    async def run(self, app: Application) -> None:
        """Run the application, which answers the request.

        If the application fails, send status 500. If a part of the answer was sent already, close
        the connection instead.
        """
        scope = self._connection.scope.copy()
        scope |= {
            "http_version": self.version,
            "method": self.method,
            "path": self.path,
            "raw_path": self.raw_path,
            "query_string": self.query,
            "headers": self.headers,
            "state": dict(scope["state"]),
        }
        # An application logs its own exceptions. A cancellation means that the server shuts down.
        with contextlib.suppress(BaseException):
            await app(scope, self.receive, self.send)
        if self.complete or self.gone:
            return
        if self.begun and not self._held:
            self._connection.close()
        else:
            self._begin(500, _FAILURE_HEADERS)
            self._go_on(_FAILED, more=False)

    async def receive(self) -> Message:
        if self.expects:
            self.expects = False
            self._connection.write(b"HTTP/1.1 100 Continue\r\n\r\n", b"")
        while not (self._parts or self.gone or self.complete):
            if self.whole and not self._ended:
                break
            if self._changed is None:
                self._changed = asyncio.Event()
            self._changed.clear()
            await self._changed.wait()
        if self.gone or self.complete:
            return {"type": "http.disconnect"}
        body = self.body
        self._parts, self.size, self._ended = [], 0, self.whole
        self._connection.taken(len(body))
        return {"type": "http.request", "body": body, "more_body": not self.whole}

    async def send(self, message: Message) -> None:
        """Send an ASGI message; divide a large body into pieces.

        A piece is sent when the client has read most of the piece before it. Encrypting and copying
        a large body takes long; other requests run between two pieces.
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
        while not self.gone and (writable := self._connection.writable) is not None:
            await writable
        if self.gone:
            return
        kind = message["type"]
        if kind == "http.response.start" and not self.begun:
            self._begin(message["status"], message.get("headers", _NO_HEADERS))
        elif kind == "http.response.body" and self.begun and not self.complete:
            self._go_on(message.get("body", b""), more=message.get("more_body", False))
        else:
            raise RuntimeError(f"{kind} is out of order")

    def _begin(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        given = list(headers)
        by_name = dict(given)
        self._left = int(by_name[b"content-length"]) if b"content-length" in by_name else None
        bodiless = self.method == "HEAD" or status in _BODILESS
        ends_alone = self._left is not None or bodiless
        self._chunked = not ends_alone and self.version != "1.0"
        if self._chunked:
            given.append((b"transfer-encoding", b"chunked"))
        elif not ends_alone:
            self.keep_alive = False  # the end of the connection marks the end of the answer
        if b"close" in by_name.get(b"connection", b"").lower():
            self.keep_alive = False
        elif not self.keep_alive:
            given.append((b"connection", b"close"))
        self._left = 0 if bodiless else self._left
        lines = [b"%b: %b\r\n" % each for each in given]
        block = b"".join((_STATUS_LINES[status], self._connection.date, *lines))
        ends = len(lines) + 2
        if block.count(b"\n") != ends or block.count(b"\r") != ends or b"\0" in block:
            raise RuntimeError("a header contains a line break or a NUL")
        self._held = block + b"\r\n"
        self.begun, self.expects = True, False
        if not ends_alone:
            self._flush(b"")  # the first piece of the body may come much later than the headers

    def _go_on(self, body: bytes, *, more: bool) -> None:
        if self.method == "HEAD":
            body = b""
        if self._chunked:
            piece = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            self._flush(piece if more else piece + b"0\r\n\r\n")
        else:
            if self._left is not None:
                self._left -= len(body)
                if self._left < 0 or (self._left and not more):
                    raise RuntimeError("the body does not have the announced length")
            self._flush(body)
        if not more:
            self.finish()

    def _flush(self, body: bytes) -> None:
        headers, self._held = self._held, b""
        if headers or body:
            self._connection.write(headers, body)

    def finish(self) -> None:
        """Mark the answer as complete, and report this to the connection."""
        self.complete = True
        self.wake()
        self._connection.answered(self)


def header_block_of(answer: EncodedResponse, date: bytes, *, keep_alive: bool) -> bytes:
    """Encode the status line and the headers of a complete answer.

    >>> answer = EncodedResponse(200, b"content-type: text/plain\\r\\n", b"ab")
    >>> header_block_of(answer, b"", keep_alive=True)
    b'HTTP/1.1 200 OK\\r\\ncontent-type: text/plain\\r\\ncontent-length: 2\\r\\n\\r\\n'
    """
    end = b"" if keep_alive else b"connection: close\r\n"
    parts = (_STATUS_LINES[answer.status], date, answer.headers, end, len(answer.body))
    return b"%b%b%b%bcontent-length: %d\r\n\r\n" % parts
