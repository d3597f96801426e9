"""The current credentials: tokens and certificates are replaced while a program runs.

A token that a kubelet projects is valid for an hour, one of an exec plugin often for minutes. Files
are read again after a while, plugins run again when their credentials have expired, and both happen
at once when a server responds with 401.
"""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from polyver.client._clock import Clock
from polyver.client.cluster._access import ClusterAccess
from polyver.client.cluster._exec import ExecCredential, run_plugin
from polyver.client.cluster._limits import ClientLimits
from polyver.client.cluster._problems import NoAccess

__all__ = ["CredentialProvider", "PresentedCredentials", "TlsMaterial"]

_LARGEST = 1024 * 1024


class TlsMaterial(NamedTuple):
    """The TLS material of connections, all PEM: other material needs new connections."""

    authority: bytes = b""
    certificate: bytes = b""
    key: bytes = b""


@dataclass(frozen=True, slots=True)
class PresentedCredentials:
    """The credentials that a server gets."""

    material: TlsMaterial
    authorization: str = ""


class CredentialProvider:
    """Provides the current credentials for a cluster."""

    def __init__(self, access: ClusterAccess, *, clock: Clock, limits: ClientLimits) -> None:
        self._access = access
        self._clock = clock
        self._limits = limits
        self._shown: PresentedCredentials | None = None
        self._told: ExecCredential | None = None
        self._until = 0.0
        self._problem: NoAccess | None = None
        self._next_run = 0.0
        self._lock = asyncio.Lock()

    async def shown(self) -> PresentedCredentials:
        """Return the current credentials."""
        if self._shown is not None and self._clock.time() < self._until:
            return self._shown
        async with self._lock:
            if self._shown is None or self._clock.time() >= self._until:
                await self._renew()
            assert self._shown is not None
            return self._shown

    async def renewed(self, refused: PresentedCredentials) -> bool:
        """Renew credentials that a server refused; return False if there are no others."""
        async with self._lock:
            if self._shown == refused:
                if self._clock.time() >= self._next_run:
                    self._told = None
                await self._renew()
            return self._shown != refused

    async def _renew(self) -> None:
        if self._access.user.exec and (self._told is None or self._told.expired(self._clock)):
            self._told = await self._run()
        try:
            self._shown = self._read()
        except NoAccess:
            if self._shown is None:
                raise
            # Files are replaced one after the other: the old ones are used until they are refused.
        self._until = self._clock.time() + self._limits.look

    async def _run(self) -> ExecCredential:
        """Run the plugin; after a failure, raise the same error for `look` seconds."""
        if self._problem is not None and self._clock.time() < self._next_run:
            raise self._problem.with_traceback(None)
        self._problem = None
        try:
            return await run_plugin(self._access, self._clock, within=self._limits.plugin)
        except NoAccess as problem:
            self._problem = problem
            raise
        finally:
            self._next_run = self._clock.time() + self._limits.look

    def _read(self) -> PresentedCredentials:
        user = self._access.user
        authority, certificate, key = self._material()
        if self._told is not None:
            told = self._told
            own = TlsMaterial(authority, told.certificate or certificate, told.key or key)
            return PresentedCredentials(own, f"Bearer {told.token}" if told.token else "")
        shown = PresentedCredentials(TlsMaterial(authority, certificate, key))
        if user.token_file:
            token = self._file(user.token_file, "tokenFile").decode(errors="replace").strip()
            named = f"tokenFile {user.token_file}"
            return replace(shown, authorization=f"Bearer {_header(token, named, self._access)}")
        if user.token:
            token = _header(user.token, "the token", self._access)
            return replace(shown, authorization=f"Bearer {token}")
        if user.username and user.password is not None:
            pair = base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
            return replace(shown, authorization=f"Basic {pair}")
        return shown

    def _material(self) -> TlsMaterial:
        cluster, user = self._access.cluster, self._access.user
        return TlsMaterial(
            self._pem(
                cluster.certificate_auth_data, cluster.certificate_auth, "certificate-authority"
            ),
            self._pem(user.client_cert_data, user.client_cert, "client-certificate"),
            self._pem(user.client_key_data, user.client_key, "client-key"),
        )

    def _pem(self, data: str | None, file: str | None, name: str) -> bytes:
        if data:
            return base64.b64decode(data)
        return self._file(file, name) if file else b""

    def _file(self, file: str, name: str) -> bytes:
        try:
            with Path(file).open("rb") as opened:
                content = opened.read(_LARGEST + 1)
        except OSError as error:
            fact = f"{name} {file} cannot be read: {error.strerror}"
            raise NoAccess(fact, at=self._access.place) from None
        if not content.strip() or len(content) > _LARGEST:
            wrong = "is empty" if len(content) <= _LARGEST else "is too large"
            raise NoAccess(f"{name} {file} {wrong}", at=self._access.place)
        if name != "tokenFile" and b"-----BEGIN" not in content:
            raise NoAccess(f"{name} {file} is not PEM", at=self._access.place)
        return content


def _header(token: str, named: str, access: ClusterAccess) -> str:
    if not token.isascii() or not token.isprintable() or " " in token:
        raise NoAccess(
            f"{named} contains characters that are not allowed in a token", at=access.place
        )
    return token
