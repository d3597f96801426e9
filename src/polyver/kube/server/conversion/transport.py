"""HTTPS calls to webhooks: persistent connections, deadlines and errors as in kube-apiserver.

This module has its own small HTTP client, because the error messages need details that a general
client does not report: the IP address of the connection, and whether connecting, sending or reading
failed.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import httptools

from polyver.kube.server.conversion.certificates import certificate_problem
from polyver.kube.server.conversion.reviews import WebhookCallFailed
from polyver.kube.server.conversion.statuses import WebhookResponse, retry_after
from polyver.languages.values.strings import quoted

__all__ = ["Transport", "WebhookAddress", "no_service", "post_with_retries", "service_url"]

MOST_CALLS = 32
"""The maximum number of concurrent calls to one webhook; further calls wait."""
LARGEST_ANSWER = 16 << 20
HANDSHAKE = 10.0
_KEPT_FOR = 90.0
_GRACE = 1.0
_CHUNK = 1 << 16
_MOST_RETRIES = 10
_LAST_PORT = 65535
_TIMED_OUT = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
_UNREAD = "unexpected error when reading response body. Please retry. Original error: "
_TIMED_OUT_INSIDE = (
    "net/http: request canceled (Client.Timeout or context cancellation while reading body)"
)


@dataclass(frozen=True, slots=True)
class WebhookAddress:
    """The address of a webhook: the parts of its URL."""

    host: str
    port: int
    authority: str
    """The host and the port in the form that they have in the URL."""
    path: str

    @classmethod
    def parse(cls, url: str) -> WebhookAddress:
        """Parse an `https://` URL.

        >>> WebhookAddress.parse("https://127.0.0.1:8443/a%20b/").target(30)
        '/a%20b?timeout=30s'
        """
        parts = urlsplit(url)
        path = quote(unquote(parts.path).rstrip("/") or "/", safe="/$&+,:;=@!*'()~")
        port = parts.netloc.rpartition(":")[2]
        return cls(parts.hostname or "", int(port) if _is_port(port) else 443, parts.netloc, path)

    def target(self, timeout: float) -> str:
        """Build the request target, which has the timeout in seconds: `/a?timeout=30s`."""
        return f"{self.path}?timeout={timeout:g}s"


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 9


class _Stopped(Exception):
    """Raised if a call fails; `begun` is True if the headers of the answer had been received."""

    def __init__(self, text: str, *, begun: bool = False) -> None:
        super().__init__(text)
        self.begun = begun


class Transport:
    """Sends requests to one address, over persistent connections."""

    def __init__(
        self,
        address: WebhookAddress,
        context: Callable[[], ssl.SSLContext],
        *,
        timeout: float,
        timed_out: str = _TIMED_OUT,
    ) -> None:
        """`timed_out` is the error message for a call that gets no answer within its timeout."""
        self._address = address
        self._new_context = context
        self._context: ssl.SSLContext | None = None
        self._target = address.target(timeout)
        self._named = f"Post {quoted(f'https://{address.authority}{self._target}')}"
        self._timed_out = timed_out
        self._closed = False
        self._idle: deque[_Connection] = deque()
        self._places = asyncio.Semaphore(MOST_CALLS)

    async def post(self, body: bytes, *, until: float) -> WebhookResponse:
        """Send a body and return the response; raise WebhookCallFailed if there is none.

        `until` is the deadline as a time of the event loop.
        """
        call = _Call()
        try:
            async with asyncio.timeout_at(until), self._places:
                return await self._post(body, call)
        except TimeoutError:
            if call.has_headers:
                raise WebhookCallFailed(f"{_UNREAD}{_TIMED_OUT_INSIDE}") from None
            raise WebhookCallFailed(f"{self._named}: {self._timed_out}") from None
        except _Stopped as stopped:
            raise WebhookCallFailed(
                f"{_UNREAD if stopped.begun else f'{self._named}: '}{stopped}"
            ) from None

    async def _post(self, body: bytes, call: _Call) -> WebhookResponse:
        if connection := self._kept():
            try:
                return await self._exchange(connection, body, call)
            except _Stopped:
                # The server may have closed the idle connection just before this request. Then try
                # a new connection, unless a part of the answer was received.
                if call.received:
                    raise
        return await self._exchange(await self._dial(), body, call)

    def _kept(self) -> _Connection | None:
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if connection.usable and now - connection.since < _KEPT_FOR:
                return connection
            connection.drop()
        return None

    async def _exchange(self, connection: _Connection, body: bytes, call: _Call) -> WebhookResponse:
        keep = False
        try:
            connection.writer.write(self._header_block(body) + body)
            answer = await connection.receive(call)
            keep = call.keeps and connection.usable
        except OSError as error:
            route, text = connection.route, _error_text(error)
            raise _Stopped(f"read tcp {route}: read: {text}", begun=call.has_headers) from None
        finally:
            self._put_back(connection) if keep and not self._closed else connection.drop()
        return answer

    def _put_back(self, connection: _Connection) -> None:
        connection.since = asyncio.get_running_loop().time()
        self._idle.append(connection)

    def _header_block(self, body: bytes) -> bytes:
        return (
            f"POST {self._target} HTTP/1.1\r\nHost: {self._address.authority}\r\n"
            f"User-Agent: kube-apiserver-admission\r\nContent-Length: {len(body)}\r\n"
            "Accept: application/json, */*\r\nContent-Type: application/json\r\n\r\n"
        ).encode()

    async def _dial(self) -> _Connection:
        """Open a connection to the first IP address of the host that accepts a connection."""
        if self._context is None:
            self._context = self._new_context()
        host, port = self._address.host, self._address.port
        if port > _LAST_PORT:
            raise _Stopped(f"dial tcp: address {port}: invalid port")
        try:
            loop = asyncio.get_running_loop()
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise _Stopped(f"dial tcp: lookup {host}: no such host") from None
        problem: _Stopped | None = None
        for address in dict.fromkeys(str(each[4][0]) for each in found):
            try:
                return await self._connect(address, self._context)
            except _Stopped as stopped:
                problem = problem or stopped
        raise problem or _Stopped(f"dial tcp: lookup {host}: no such host")

    async def _connect(self, address: str, context: ssl.SSLContext) -> _Connection:
        host, port = self._address.host, self._address.port
        try:
            reader, writer = await asyncio.open_connection(
                address,
                port,
                ssl=context,
                server_hostname=host,
                ssl_handshake_timeout=HANDSHAKE,
                limit=_CHUNK,
            )
        except ssl.SSLCertVerificationError as error:
            raise _Stopped(await certificate_problem(error, host, address, port)) from None
        except ssl.SSLError as error:
            raise _Stopped(_handshake_text(error)) from None
        except (ConnectionResetError, EOFError):
            raise _Stopped("EOF") from None
        except OSError as error:
            if error.errno is None:  # asyncio's error for a handshake timeout
                raise _Stopped("net/http: TLS handshake timeout") from None
            shown = f"[{address}]" if ":" in address else address
            raise _Stopped(f"dial tcp {shown}:{port}: connect: {_error_text(error)}") from None
        return _Connection(reader, writer, _route(writer))

    async def close(self) -> None:
        """Close the idle connections now, and each busy connection after its answer."""
        self._closed = True
        idle, self._idle = self._idle, deque()
        await asyncio.gather(*(connection.close() for connection in idle))


async def post_with_retries(transport: Transport, body: bytes, *, until: float) -> WebhookResponse:
    """Send a body; repeat this while the webhook requests retries; return the last response."""
    answer = await transport.post(body, until=until)
    for _ in range(_MOST_RETRIES):
        if (wait := retry_after(answer)) is None:
            break
        await _sleep(wait, until=until)
        answer = await transport.post(body, until=until)
    return answer


async def _sleep(seconds: float, *, until: float) -> None:
    """Sleep for `seconds`, but not longer than until the deadline.

    After the deadline, the next call to the webhook fails at once with a timeout.
    """
    left = until - asyncio.get_running_loop().time()
    await asyncio.sleep(min(seconds, max(left, 0)))


def service_url(service: Mapping[str, Any]) -> str:
    """Build the URL of a webhook that is behind a Service."""
    name, namespace, port = service["name"], service["namespace"], service.get("port") or 443
    return f"https://{name}.{namespace}.svc:{port}{service.get('path') or ''}"


def no_service(address: WebhookAddress, name: str, timeout: float) -> WebhookCallFailed:
    """Build the error that a call to a webhook behind a Service always gets.

    The embedded server runs no pods, so no such webhook can be called.
    """
    url = quoted(f"https://{address.authority}{address.target(timeout)}")
    return WebhookCallFailed(f"Post {url}: service {quoted(name)} not found")


def _route(writer: asyncio.StreamWriter) -> str:
    ends = (writer.get_extra_info(name) or ("", 0) for name in ("sockname", "peername"))
    return "->".join(f"{end[0]}:{end[1]}" for end in ends)


def _error_text(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else "connection reset by peer"


def _handshake_text(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLEOFError):
        return "EOF"
    if error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
        return "http: server gave HTTP response to HTTPS client"
    return f"remote error: tls: {(error.reason or 'handshake failure').lower().replace('_', ' ')}"


class _Call:
    """The received part of an answer. The HTTP parser calls the methods `on_...`."""

    def __init__(self) -> None:
        self.received = 0
        self.has_headers = False
        self.keeps = False
        self.done = False
        self.headers: dict[str, str] = {}
        self.parts: list[bytes] = []

    def on_message_begin(self) -> None:
        """Drop the headers of an interim response, such as 100 Continue, if there was one."""
        self.done = self.has_headers = False
        self.headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.has_headers = True

    def on_body(self, body: bytes) -> None:
        self.parts.append(body)

    def on_message_complete(self) -> None:
        self.done = True

    def answer(self, parser: httptools.HttpResponseParser) -> WebhookResponse:
        closes = self.headers.get("connection", "").lower() == "close"
        self.keeps = self.done and not closes and parser.get_http_version() == "1.1"
        return WebhookResponse(parser.get_status_code(), b"".join(self.parts), self.headers)


@dataclass(slots=True)
class _Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    route: str
    """The local and the remote address for error messages; a closed socket no longer has them."""
    since: float = 0.0

    @property
    def usable(self) -> bool:
        return not (self.reader.at_eof() or self.writer.is_closing())

    def drop(self) -> None:
        self.writer.transport.abort()

    async def close(self) -> None:
        """Close the connection and wait until it is closed.

        Without this wait, closing the event loop would hang.
        """
        self.writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_GRACE):
                await self.writer.wait_closed()

    async def receive(self, call: _Call) -> WebhookResponse:
        """Receive the response to a request, and return it."""
        parser = httptools.HttpResponseParser(call)
        while True:
            data = await self.reader.read(_CHUNK)
            call.received += len(data)
            if not data:
                return _ended(call, parser)
            if call.received > LARGEST_ANSWER:
                raise _Stopped(f"the answer is larger than {LARGEST_ANSWER} bytes")
            try:
                parser.feed_data(data)
            except httptools.HttpParserError:
                raise _malformed(data, call) from None
            if call.done and parser.get_status_code() >= 200:
                return call.answer(parser)


def _malformed(data: bytes, call: _Call) -> _Stopped:
    if call.has_headers:
        return _Stopped("malformed chunked encoding", begun=True)
    line = data.partition(b"\r\n")[0][:256].decode(errors="replace")
    broken = "net/http: HTTP/1.x transport connection broken: malformed HTTP response"
    return _Stopped(f"{broken} {quoted(line)}")


def _ended(call: _Call, parser: httptools.HttpResponseParser) -> WebhookResponse:
    """Return the response when the server has closed the connection.

    Raise an error if the response is not complete according to its headers.
    """
    if not call.has_headers:
        raise _Stopped("unexpected EOF" if call.received else "EOF")
    if "content-length" in call.headers or "transfer-encoding" in call.headers:
        raise _Stopped("unexpected EOF", begun=True)
    return call.answer(parser)
