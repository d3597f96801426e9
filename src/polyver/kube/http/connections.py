"""HTTP/1.1 connections: parsing, pipelining, deadlines and limits on buffered data.

A request is answered immediately, without a task and without ASGI messages, if the function
`at_once` (see `AtOnce`) answers it. The ASGI application answers all other requests.
"""

from __future__ import annotations

import asyncio
import re
import urllib.parse
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from email.utils import formatdate
from functools import lru_cache
from typing import Any

import httptools

from polyver.kube.http.exchanges import Exchange, header_block_of
from polyver.kube.http.http import Application, AtOnce, RequestHeaders

__all__ = ["Connection", "Known", "ServerState"]

Known = Callable[[asyncio.Transport], dict[str, Any]]
"""A function that returns the ASGI state for a new connection; it is called once per connection.

All requests of the connection get this state. It has, for example, the user in the client
certificate.
"""

_KEEP_ALIVE = 120.0
"""The number of seconds for which a connection without requests stays open.

Clients usually close such connections earlier.
"""
_REQUEST = 60.0
_MOST_HEADER_BYTES = 1024 * 1024
_MOST_AT_ONCE = 256 * 1024
_MOST_UNREAD = 64 * 1024
"""The maximum number of body bytes that wait until a running application takes them.

If more bytes wait, the server reads nothing from the connection.
"""
_MOST_HELD = 2 * 1024 * 1024
"""The maximum number of bytes of a request body that are collected before the request is processed.

If a body is larger, the ASGI application starts before the whole body has arrived.
"""
_MOST_HELD_BY_ALL = 64 * 1024 * 1024
_ONE_RECORD = 16 * 1024
"""If the body of an answer has fewer bytes than this, headers and body are sent in one write.

Copying the body costs less than the TLS record of a second write.
"""
_NEVER = float("inf")


class ServerState:
    """State that the connections of one server share."""

    def __init__(self, app: Application, at_once: AtOnce | None, known: Known) -> None:
        self.app = app
        self.at_once = at_once
        self.known = known
        self.loop = asyncio.get_running_loop()
        self.connections: set[Connection] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self.held = 0
        """The number of body bytes, on all connections, that no application has taken yet."""
        self.buffer = memoryview(bytearray(_MOST_AT_ONCE))
        """The buffer for received data.

        All connections share one buffer, because each connection parses its data immediately.
        """
        self.date = b""
        self._tick()

    def _tick(self) -> None:
        self.date = b"date: %b\r\n" % formatdate(usegmt=True).encode()
        self._ticking = self.loop.call_later(1.0, self._tick)

    def start(self, exchange: Exchange) -> None:
        """Start a task in which the application answers a request."""
        exchange.started = True
        # If a request blocks the event loop, the watchdog logs this name.
        name = f"{exchange.method} {exchange.path}"
        task = self.loop.create_task(exchange.run(self.app), name=name)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def close(self) -> None:
        self._ticking.cancel()


@lru_cache(256)
def _target(url: bytes) -> tuple[str, bytes, bytes]:
    """Parse a request target into the decoded path, the raw path and the query."""
    parsed = httptools.parse_url(url)
    written: bytes = parsed.path
    path = written.decode("ascii")
    return urllib.parse.unquote(path) if "%" in path else path, written, parsed.query or b""


class _Refused(Exception):
    """Raised in a callback of the HTTP parser if the server rejects the request."""


_NO_HOST = re.compile(rb"[^A-Za-z0-9!$%&'()*+,.:;=\[\]_~-]")


def _host_problem(headers: Sequence[tuple[bytes, bytes]], version: str) -> str:
    """Check the Host header (RFC 9112, section 3.2).

    Return the problem in the words of Go's HTTP library, or an empty string.
    """
    host = None
    for name, value in headers:
        if name == b"host":
            if host is not None:
                return "too many Host headers"
            host = value
    if host is None:
        return "" if version == "1.0" else "missing required Host header"
    return "malformed Host header" if _is_malformed(host) else ""


@lru_cache(256)
def _is_malformed(host: bytes) -> bool:
    return _NO_HOST.search(host) is not None


class Connection(asyncio.BufferedProtocol):
    """One HTTP/1.1 connection: it receives the requests of a client, and answers them in order."""

    def __init__(self, server_state: ServerState) -> None:
        self.transport: asyncio.Transport
        self.scope: dict[str, Any]
        self._server_state = server_state
        self._parser = httptools.HttpRequestParser(self)
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = _NEVER
        # Receiving.
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._expects = False
        self._problem = ""
        self._unparsed = 0
        self._in_headers = True
        self._in_message = True
        self._incoming: Exchange | None = None
        self._reads = True
        self._closing = False
        """True if the connection accepts no further request; it closes after its last answer."""
        # Answering.
        self._queue: deque[Exchange] = deque()
        self._answering: Exchange | None = None
        self._written: asyncio.Event | None = None

    # Connecting and disconnecting.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        self._server_state.connections.add(self)
        self.scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "scheme": "https" if transport.get_extra_info("sslcontext") else "http",
            "server": _address(transport, "sockname"),
            "client": _address(transport, "peername"),
            "root_path": "",
            "state": self._server_state.known(transport),
        }
        self._deadline = self._server_state.loop.time() + _REQUEST
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's words
        self._server_state.connections.discard(self)
        self._closing = True
        if self._timer is not None:
            self._timer.cancel()
        if self._answering is not None:
            self._drop(self._answering)
        while self._queue:
            self._drop(self._queue.pop())
        self.resume_writing()

    def _drop(self, exchange: Exchange) -> None:
        self._server_state.held -= exchange.size
        exchange.size, exchange.gone = 0, True
        exchange.wake()

    def shutdown(self) -> None:
        """Accept no further requests; answer those that have arrived, then close the connection."""
        self._closing = True
        newest = self._queue[-1] if self._queue else self._answering
        if newest is not None:
            newest.keep_alive = False
            self._advance()
        else:
            self.transport.close()

    def close(self) -> None:
        self.transport.close()

    def _look(self) -> None:
        """Close the connection if its deadline has passed; otherwise check again later."""
        # A request only changes the deadline. A timer for each request would cost more.
        left = self._deadline - self._server_state.loop.time()
        if left <= 0 and not self._reads:
            # The client is not late: the server paused reading to answer an earlier request.
            left = _REQUEST
            self._deadline = self._server_state.loop.time() + left
        if left > 0:
            self._timer = self._server_state.loop.call_later(min(left, _REQUEST), self._look)
        elif self._in_message:
            self.transport.abort()
        else:
            self.transport.close()

    # Receiving.

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's words
        return self._server_state.buffer

    def buffer_updated(self, nbytes: int) -> None:
        data = self._server_state.buffer[:nbytes]
        if self._closing and (self._incoming is None or self._incoming.whole):
            return
        self._unparsed = len(data) + (self._unparsed if self._in_headers else 0)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # upgrades are not supported; respond as without the header
        except httptools.HttpParserError:
            self._refuse("400 Bad Request", self._problem)
            return
        if self._in_headers and self._unparsed > _MOST_HEADER_BYTES:
            self._refuse("431 Request Header Fields Too Large")
            return
        self._advance()

    def on_message_begin(self) -> None:
        self._in_message = self._in_headers = True
        self._deadline = self._server_state.loop.time() + _REQUEST
        self._url, self._headers, self._expects = b"", [], False

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_headers:  # trailers are ignored
            name = name.lower()
            self._headers.append((name, value))
            if name == b"expect":
                self._expects = value.lower() == b"100-continue" or self._expects

    def on_headers_complete(self) -> None:
        self._in_headers, self._unparsed, self._incoming = False, 0, None
        if self._closing:
            return
        parser, version = self._parser, self._parser.get_http_version()
        self._problem = _host_problem(self._headers, version)
        if self._problem:
            raise _Refused
        lasting = version != "1.0" and parser.should_keep_alive() and not parser.should_upgrade()
        self._closing = not lasting
        self._incoming = Exchange(
            self,
            parser.get_method().decode("ascii"),
            _target(self._url),
            self._headers,
            version,
            keep_alive=lasting,
            expects=self._expects,
        )
        self._queue.append(self._incoming)

    def on_body(self, body: bytes) -> None:
        exchange = self._incoming
        if exchange is not None and not exchange.complete:
            self._server_state.held += len(body)
            exchange.add(body)

    def on_message_complete(self) -> None:
        self._in_message, self._unparsed = False, 0
        if self._incoming is not None:
            self._incoming.whole = True
            self._incoming.wake()
        busy = self._queue or self._answering
        self._deadline = _NEVER if busy else self._server_state.loop.time() + _KEEP_ALIVE

    def _refuse(self, status: str, problem: str = "") -> None:
        """Reject a malformed or too large request.

        After this, accept no further request on this connection.
        """
        self._closing = True
        exchange = self._incoming if self._in_message and not self._in_headers else None
        if exchange is not None and not exchange.complete:
            self._drop(exchange)
            if self._queue:
                self._queue.pop()
            elif exchange.begun:
                self.transport.abort()
            else:
                self._answering = None
        newest = self._queue[-1] if self._queue else self._answering
        if newest is not None:
            newest.keep_alive = False  # earlier requests are answered first
            self._advance()
        elif not self.transport.is_closing():
            headers = "content-type: text/plain; charset=utf-8\r\nconnection: close"
            text = f"{status}: {problem}" if problem else status
            self.transport.write(f"HTTP/1.1 {status}\r\n{headers}\r\n\r\n{text}".encode())
            self.transport.close()

    # Answering.

    def _advance(self) -> None:
        """Start the next request in the queue, unless the previous request is not answered yet."""
        if not self._queue or self._answering is not None or self._may_wait(self._queue[0]):
            self._regulate()
            return
        exchange = self._answering = self._queue.popleft()
        state, answer = self._server_state, None
        if state.at_once is not None and exchange.whole and self._written is None:
            headers = exchange.headers
            request = RequestHeaders(exchange.method, exchange.path, exchange.query, headers)
            quick = state.at_once(request)
            answer = quick(exchange.body) if quick is not None else None
        if answer is None:
            state.start(exchange)
            self._regulate()
            return
        body = b"" if exchange.method == "HEAD" else answer.body
        self.write(header_block_of(answer, state.date, keep_alive=exchange.keep_alive), body)
        exchange.finish()

    def _may_wait(self, exchange: Exchange) -> bool:
        """Report whether to wait for the rest of the body before the request is processed.

        A request can be answered immediately, without a task, only when its whole body has arrived.
        """
        if exchange.whole or self._server_state.at_once is None:
            return False
        much = exchange.size > _MOST_HELD or self._server_state.held > _MOST_HELD_BY_ALL
        return not (much or exchange.expects or self._closing)

    def _regulate(self) -> None:
        """Stop reading from the connection if too much received data is not processed yet.

        Otherwise read again.
        """
        exchange = self._incoming
        crowded = len(self._queue) > (self._answering is None)
        if exchange is not None and not crowded:
            crowded = exchange.size > (_MOST_UNREAD if exchange.started else _MOST_HELD)
        if crowded is self._reads and not self.transport.is_closing():
            self._reads = not crowded
            (self.transport.pause_reading if crowded else self.transport.resume_reading)()

    # The interface for exchanges.

    @property
    def date(self) -> bytes:
        return self._server_state.date

    @property
    def writable(self) -> Awaitable[object] | None:
        return None if self._written is None else self._written.wait()

    def pause_writing(self) -> None:
        self._written = self._written or asyncio.Event()

    def resume_writing(self) -> None:
        if self._written is not None:
            self._written.set()
            self._written = None

    def write(self, headers: bytes, body: bytes) -> None:
        if len(body) < _ONE_RECORD:
            self.transport.write(headers + body)
        else:
            self.transport.writelines((headers, body))

    def taken(self, size: int) -> None:
        self._server_state.held -= size
        self._regulate()

    def answered(self, exchange: Exchange) -> None:
        self._answering = None
        self._server_state.held -= exchange.size
        exchange.size = 0
        if not exchange.keep_alive:
            self.transport.close()
        elif self._queue:
            # Other clients get their turn before the next pipelined request of this client.
            self._server_state.loop.call_soon(self._advance)
        elif not self._in_message:
            self._deadline = self._server_state.loop.time() + _KEEP_ALIVE
        self._regulate()


def _address(transport: asyncio.Transport, name: str) -> tuple[str, int] | None:
    found = transport.get_extra_info(name)
    return (str(found[0]), int(found[1])) if isinstance(found, tuple) else None
