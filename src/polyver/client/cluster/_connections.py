"""Connections to a server. When certificates change, new connections replace the old ones."""

from __future__ import annotations

import base64
import ipaddress
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2
from lightkube.config import models
from lightkube.config.client_adapter import verify_cluster

from polyver.client._clock import Clock
from polyver.client.cluster._access import ClientLimits, ClusterAccess, NoAccess
from polyver.client.cluster._credentials import (
    CredentialProvider,
    PresentedCredentials,
    TlsMaterial,
)

__all__ = ["Connections", "LeasedConnections"]

_IDLE = 30.0


class _Pool:
    """The connections that use one set of certificates.

    New certificates need a new pool, and the old one is retired: it gets no new requests. When its
    last request has ended, its connections are closed.
    """

    def __init__(self, material: TlsMaterial, access: ClusterAccess, limits: ClientLimits) -> None:
        self.material = material
        tls = _tls(material, access)
        self.requests = _client(tls, access, limits, most=limits.connections)
        self.watches = _client(tls, access, limits, most=limits.watches)
        self.users = 0
        self.retired = False

    async def close_if_done(self) -> None:
        if self.retired and not self.users:
            await self.requests.aclose()
            await self.watches.aclose()


@dataclass(frozen=True, slots=True)
class LeasedConnections:
    """The connections and the credentials for one request."""

    requests: httpx2.AsyncClient
    watches: httpx2.AsyncClient
    shown: PresentedCredentials


class Connections:
    """Provides connections for requests. All requests must be made on the same event loop."""

    def __init__(self, access: ClusterAccess, *, clock: Clock, limits: ClientLimits) -> None:
        self._access = access
        self._limits = limits
        self._credentials = CredentialProvider(access, clock=clock, limits=limits)
        self._pool: _Pool | None = None
        self._unusable: TlsMaterial | None = None
        self._closed = False

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[LeasedConnections]:
        """Provide the connections and credentials for one request, during a `with` block."""
        shown = await self._credentials.shown()
        pool = await self._current(shown.material)
        pool.users += 1
        try:
            yield LeasedConnections(pool.requests, pool.watches, shown)
        finally:
            pool.users -= 1
            await pool.close_if_done()

    async def ready(self) -> None:
        """Get the credentials before the first request.

        A credential plugin may prompt a person. The answer may take longer than the timeout of a
        request.
        """
        await self._credentials.shown()

    async def renewed(self, refused: PresentedCredentials) -> bool:
        """Renew credentials that a server refused; return False if there are no others."""
        return await self._credentials.renewed(refused)

    async def close(self) -> None:
        """Close unused connections now, and every other connection when it becomes unused."""
        self._closed = True
        await self._retire()

    async def _current(self, material: TlsMaterial) -> _Pool:
        if self._closed:
            raise RuntimeError("this client is closed")
        if self._pool is not None and material in (self._pool.material, self._unusable):
            return self._pool
        try:
            pool = _Pool(material, self._access, self._limits)
        except NoAccess:
            if self._pool is None:
                raise
            # A certificate is written before its key: until both exist, the old pair is used.
            self._unusable = material
            return self._pool
        await self._retire()
        self._pool = pool
        return pool

    async def _retire(self) -> None:
        old, self._pool = self._pool, None
        if old is not None:
            old.retired = True
            await old.close_if_done()


def _client(
    tls: ssl.SSLContext, access: ClusterAccess, limits: ClientLimits, *, most: int
) -> httpx2.AsyncClient:
    try:
        return httpx2.AsyncClient(
            verify=tls,
            limits=httpx2.Limits(
                max_connections=most, max_keepalive_connections=most, keepalive_expiry=_IDLE
            ),
            timeout=httpx2.Timeout(limits.request, connect=limits.connect),
            proxy=access.cluster.proxy_url,
            trust_env=not _is_near(access.server),
            follow_redirects=False,
        )
    except (ValueError, ImportError, httpx2.InvalidURL) as error:
        raise NoAccess(f"the proxy cannot be used: {error}", at=access.place) from None


def _is_near(server: str) -> bool:
    """Report whether a server runs on this machine.

    As in kubectl, no proxy is used for such a server.
    """
    host = httpx2.URL(server).host
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _tls(material: TlsMaterial, access: ClusterAccess) -> ssl.SSLContext:
    cluster = models.Cluster(
        certificate_auth_data=_encoded(material.authority), insecure=access.cluster.insecure
    )
    user = models.User(
        client_cert_data=_encoded(material.certificate), client_key_data=_encoded(material.key)
    )
    try:
        return verify_cluster(cluster, user, str)
    except ssl.SSLError as error:
        fact = f"{_named(access)} cannot be used: {error.reason or error}"
        raise NoAccess(fact, at=access.place) from None


def _named(access: ClusterAccess) -> str:
    """Return the names of the certificate files, for error messages."""
    files = (access.cluster.certificate_auth, access.user.client_cert, access.user.client_key)
    return ", ".join(each for each in files if each) or "the certificates"


def _encoded(pem: bytes) -> str | None:
    return base64.b64encode(pem).decode() if pem else None
