"""The listening socket: accepts TLS connections, and shuts down gracefully.

Before the TLS handshake, the server looks at the first byte of a connection. This byte shows
whether the client speaks TLS. A client that speaks plain HTTP gets an error message. A slow client
does not block other clients.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import socket
import ssl
import sys
import termios
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from polyver.core import PolyverError
from polyver.kube.http.connections import Connection, Known, ServerState
from polyver.kube.http.http import Application, AtOnce
from polyver.kube.http.watchdog import watched

__all__ = ["CannotListen", "bind", "serving", "tls_context"]

_HANDSHAKE = 10.0
_CLOSE_TIMEOUT = 0.02
_TLS_HANDSHAKE = 0x16
_BACKLOG = 512
_PROBES = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}
_PLAIN_HTTP = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"


class CannotListen(PolyverError):
    """The server cannot listen on an address, for example because another process uses the port."""


def tls_context(certificate: Path, key: Path, *, clients: Path | None = None) -> ssl.SSLContext:
    """Create the TLS context of a server from the files with its certificate and its key.

    `clients` is a file with CA certificates. With it, a client may present a certificate that one
    of these CAs signed.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key, password=_no_password)
    if clients:
        context.load_verify_locations(clients)
        context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    return context


def _no_password() -> str:
    # Without this function OpenSSL would ask for a password on the terminal.
    raise ValueError("the key is encrypted")


def bind(host: str, port: int, *, option: str = "--port") -> socket.socket:
    """Open a listening socket; port 0 means any free port.

    `option` is the name of the command-line option for the port, for error messages.
    """
    where = f"{host}:{port}"
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        hint = "use an address of this machine, such as 127.0.0.1"
        raise CannotListen(f"{host} cannot be resolved", hint=hint) from None
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        reason, hint = _why(error, option)
        raise CannotListen(f"cannot listen on {where}: {reason}", hint=hint) from None
    return listener


def _why(error: OSError, option: str) -> tuple[str, str]:
    import errno

    match error.errno:
        case errno.EADDRINUSE:
            hint = f"choose another port with {option}, or any free port with {option} 0"
            return "the port is in use", hint
        case errno.EACCES:
            return "permission denied", "choose a port above 1023"
        case errno.EADDRNOTAVAIL:
            return "this machine has no such address", "use 127.0.0.1"
    return error.strerror or str(error), ""


@contextlib.asynccontextmanager
async def serving(
    app: Application,
    listener: socket.socket,
    context: Callable[[], ssl.SSLContext] | None,
    *,
    at_once: AtOnce | None = None,
    known: Known = lambda _: {},
    ending: Callable[[], None] = lambda: None,
    grace_period: float = 5.0,
) -> AsyncIterator[None]:
    """Serve while the body of the `async with` statement runs.

    `at_once` is called with the headers of a request, and returns a function or None. The function
    is called with the complete body, and returns an answer or None. If `at_once` or the function
    returns None, the application answers the request. If one of them raises an exception, the
    connection is closed. `known` returns the ASGI state for a new connection.

    `context` returns the TLS context for each new connection. If `context` is None, the server
    speaks plain HTTP. When the body has ended, the server accepts no more connections, calls
    `ending`, and gives running requests `grace_period` seconds to finish.
    """
    with watched():
        server = _Server(ServerState(app, at_once, known), listener, context)
        try:
            yield
        finally:
            await server.stop(ending, grace_period)


class _Server:
    """Accepts the connections of one listening socket, and closes them at the shutdown."""

    def __init__(
        self,
        server_state: ServerState,
        listener: socket.socket,
        context: Callable[[], ssl.SSLContext] | None,
    ) -> None:
        self._server_state = server_state
        self._listener = listener
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._arriving: set[asyncio.Task[None]] = set()
        self._accepting = self._loop.create_task(self._accept())

    # Accepting.

    async def _accept(self) -> None:
        while True:
            try:
                connection, _ = await self._loop.sock_accept(self._listener)
            except OSError:
                # Usually the cause is that no file descriptor is free. Accept the waiting clients
                # later.
                await asyncio.sleep(0.05)
                continue
            task = self._loop.create_task(self._welcome(connection))
            self._arriving.add(task)
            task.add_done_callback(self._arriving.discard)

    async def _welcome(self, connection: socket.socket) -> None:
        """Read the first byte of a new connection, then serve the connection or refuse it.

        Each connection has its own task, so a client that sends nothing does not block other
        clients.
        """
        try:
            # With keep-alive probes, the system detects clients that disappeared.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in _PROBES.items():
                if (option := getattr(socket, name, None)) is not None:
                    connection.setsockopt(socket.IPPROTO_TCP, option, value)
            async with asyncio.timeout(_HANDSHAKE):
                first = await self._first_byte(connection)
            if (first == _TLS_HANDSHAKE) is (self._context is not None):
                context = self._context() if self._context else None
                await self._loop.connect_accepted_socket(
                    lambda: Connection(self._server_state),
                    connection,
                    ssl=context,
                    ssl_handshake_timeout=_HANDSHAKE if context else None,
                )
                return
            _hang_up(connection, _PLAIN_HTTP if chr(first).isalpha() else b"")
        except (OSError, TimeoutError):
            pass
        except asyncio.CancelledError:
            connection.close()
            raise
        connection.close()

    async def _first_byte(self, connection: socket.socket) -> int:
        ready = self._loop.create_future()
        self._loop.add_reader(connection, _set, ready)
        try:
            await ready
        finally:
            self._loop.remove_reader(connection)
        first = connection.recv(1, socket.MSG_PEEK)
        return first[0] if first else 0

    # Stopping.

    async def stop(self, ending: Callable[[], None], grace_period: float) -> None:
        self._server_state.close()
        await _cancelled(self._accepting, *self._arriving)
        self._listener.close()
        ending()
        for connection in list(self._server_state.connections):
            connection.shutdown()
        await _until(lambda: not self._server_state.tasks and not self._unsent(), grace_period)
        # Most clients close their connection now. The server does not wait longer for a client
        # that keeps an idle connection in a pool and does not read from it.
        await _until(lambda: not self._server_state.connections, _CLOSE_TIMEOUT)
        for connection in list(self._server_state.connections):
            connection.transport.abort()
        await _cancelled(*self._server_state.tasks)
        await _until(lambda: not self._server_state.connections, _CLOSE_TIMEOUT)

    def _unsent(self) -> bool:
        return any(_bytes_unsent(each.transport) for each in self._server_state.connections)


async def _until(done: Callable[[], bool], timeout: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout):
            while not done():
                await asyncio.sleep(0.002)


def _bytes_unsent(transport: asyncio.Transport) -> int:
    """Count the bytes that the server wrote and the client has not acknowledged yet."""
    connection = transport.get_extra_info("socket")
    try:
        queued = fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4))
    except (AttributeError, OSError, ValueError):
        # The transport is closed already; which exception is raised depends on its state.
        return 0
    return transport.get_write_buffer_size() + int.from_bytes(queued, sys.byteorder)


async def _cancelled(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


def _hang_up(connection: socket.socket, answer: bytes) -> None:
    # Read first: if a socket is closed with unread data, the system may drop the answer.
    connection.recv(65536)
    connection.send(answer)
    connection.shutdown(socket.SHUT_WR)
