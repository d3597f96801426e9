"""HTTP requests to servers that users have named: checked, limited, and without redirects."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from polyver.controllers.egress import AllowedHttp, HttpNotAllowed, HttpServer
from polyver.core import PolyverError

if TYPE_CHECKING:
    import httpx2

    _Response = contextlib.aclosing[httpx2.Response]

__all__ = ["HttpAnswer", "HttpRequests", "NoAnswer"]

_SECONDS: Final = 10.0
"""The time limit of a request, from the resolution of the name to the end of the response."""
_CONNECTING: Final = 3.0
"""The time limit for a connection to one of the addresses of a server."""


class NoAnswer(PolyverError):
    """A server did not answer a request, or its answer cannot be used."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The status code and the body of a response."""

    status: int
    body: bytes = b""
    """The body; empty if it was not requested."""


class HttpRequests:
    """Sends requests to allowed servers.

    - The name of a server is resolved once for each request. The request connects to an address
      that was checked, so a second answer of a DNS server cannot lead it elsewhere.
    - Redirects are not followed, and the proxy variables of the environment are not used.
    - Nothing is kept from one request to the next: no connection and no cookie.
    """

    def __init__(self, allowed: AllowedHttp) -> None:
        self._allowed = allowed
        self._tls: ssl.SSLContext | None = None

    async def send(
        self, method: str, url: str, *, json: bytes | None = None, largest: int = 0
    ) -> HttpAnswer:
        """Send a request and return the response; read at most `largest` bytes of its body.

        Raise NoAnswer, or an error of `polyver.controllers.egress`.
        """
        import httpx2  # imported here because the import takes long

        server = self._allowed.server(url)
        try:
            async with (
                asyncio.timeout(_SECONDS),
                httpx2.AsyncClient(verify=self._context(), trust_env=False) as client,
                await self._connected(client, method, url, server, json) as response,
            ):
                return HttpAnswer(response.status_code, await _body(response, server, largest))
        except TimeoutError:
            raise NoAnswer(f"{server} did not answer within {_SECONDS:g} s") from None
        except (httpx2.HTTPError, ssl.SSLError) as error:
            raise NoAnswer(f"{server} did not answer: {_reason(error)}") from None

    async def _connected(
        self,
        client: httpx2.AsyncClient,
        method: str,
        url: str,
        server: HttpServer,
        json: bytes | None,
    ) -> _Response:
        """Send a request to the first address of a server that accepts the connection."""
        import httpx2

        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = {
            "host": server.host_header,
            "user-agent": "polyver",
            "accept-encoding": "identity",
        }
        if json is not None:
            headers["content-type"] = "application/json"
        timeout = httpx2.Timeout(None, connect=_CONNECTING)
        problem: httpx2.HTTPError | None = None
        for address in await self._addresses(server):
            at = httpx2.URL(
                scheme=server.scheme, host=address, port=server.port, raw_path=target.encode()
            )
            # The certificate must be for the name of the server, and not for its address.
            extensions = {"sni_hostname": server.host, "timeout": timeout.as_dict()}
            request = client.build_request(
                method, at, headers=headers, content=json, extensions=extensions
            )
            try:
                response = await client.send(request, stream=True, follow_redirects=False)
                return contextlib.aclosing(response)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                problem = problem or error
        assert problem is not None, "a server has an address"
        raise problem

    async def _addresses(self, server: HttpServer) -> Sequence[str]:
        """Return the IP addresses of a server to which requests are allowed."""
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise NoAnswer(f"the name {server.host} cannot be resolved") from None
        every = list(dict.fromkeys(str(each[4][0]) for each in found))
        allowed = [each for each in every if self._allowed.reaches(server, each)]
        if not allowed:
            fact = f"{server} has the address {every[0]}, which no wildcard allows"
            hint = f"--allow-http {server.authority} allows it"
            raise HttpNotAllowed(fact, hint=hint)
        return allowed

    def _context(self) -> ssl.SSLContext:
        self._tls = self._tls or ssl.create_default_context()
        return self._tls


async def _body(response: httpx2.Response, server: HttpServer, largest: int) -> bytes:
    read = b""
    if not largest:
        return read
    async for piece in response.aiter_raw():
        read += piece
        if len(read) > largest:
            raise NoAnswer(f"{server} answered with more than {largest >> 10} KiB")
    return read


def _reason(error: BaseException) -> str:
    """Return the message of the operating system or of TLS, if one of them caused the error."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return cause.verify_message
        if isinstance(cause, ConnectionError) and cause.errno:
            return os.strerror(cause.errno)
        cause = cause.__cause__ or cause.__context__
    return str(error) or type(error).__name__
