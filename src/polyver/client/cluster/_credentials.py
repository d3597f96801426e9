"""Provide the current credentials: tokens and certificates are replaced while a program runs.

The token that a kubelet writes for a pod is valid for an hour; the token of a credential plugin is
often valid only for minutes. So polyver reads files again after some time, and runs a plugin again
when its credentials have expired. If a server responds with 401, polyver does both immediately. It
runs credential plugins (client.authentication.k8s.io) as kubectl does.
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from polyver.client._clock import Clock
from polyver.client.cluster._access import ClientLimits, ClusterAccess, KubeconfigExec, NoAccess
from polyver.kube.objects.codec import encode_json

__all__ = [
    "CredentialProvider",
    "ExecCredential",
    "PresentedCredentials",
    "TlsMaterial",
    "run_plugin",
]

_API = "client.authentication.k8s.io"
_VERSIONS = tuple(f"{_API}/{version}" for version in ("v1", "v1beta1", "v1alpha1"))
_LARGEST = 1024 * 1024
_EARLY = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class ExecCredential:
    """The credentials that a plugin printed, and the time at which they expire."""

    token: str = ""
    certificate: bytes = b""
    key: bytes = b""
    until: datetime | None = None

    def expired(self, clock: Clock) -> bool:
        return self.until is not None and clock.now() >= self.until - _EARLY


class _Status(Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _Credential(Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


_credential = msgspec.json.Decoder(_Credential)


async def run_plugin(access: ClusterAccess, clock: Clock, *, within: float) -> ExecCredential:
    """Run the credential plugin of a user; an error contains the plugin's own message."""
    program = access.user.exec
    assert program is not None
    place = f"exec {program.command} in {access.place}"
    if program.apiVersion not in _VERSIONS:
        raise NoAccess(f"the exec API {program.apiVersion} is not supported", at=place)
    if program.interactive == "Always" and not sys.stdin.isatty():
        raise NoAccess("it needs an interactive terminal", at=place)
    output = await _run(program, access, place, within)
    try:
        told = _credential.decode(output)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise NoAccess(f"its output is not an ExecCredential: {error}", at=place) from None
    return _told(told, program, place, clock)


def _told(found: _Credential, program: KubeconfigExec, place: str, clock: Clock) -> ExecCredential:
    if found.kind != "ExecCredential" or found.api_version != program.apiVersion:
        shown = f"{found.api_version} {found.kind}".strip()
        raise NoAccess(
            f"it printed {shown}, not an ExecCredential of {program.apiVersion}", at=place
        )
    status = found.status or _Status()
    if not status.token and not (status.client_certificate_data and status.client_key_data):
        raise NoAccess("it returned neither a token nor a certificate with its key", at=place)
    until = status.expiration_timestamp
    if until is not None and until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    if until is not None and until <= clock.now():
        raise NoAccess(f"its credential expired at {until:%Y-%m-%dT%H:%M:%SZ}", at=place)
    pair = status.client_certificate_data.encode(), status.client_key_data.encode()
    return ExecCredential(status.token, *pair, until)


async def _run(program: KubeconfigExec, access: ClusterAccess, place: str, within: float) -> bytes:
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            program.command,
            *(program.args or ()),
            env=_environment(program, access),
            stdin=None if sys.stdin and sys.stdin.isatty() else asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        hint = (program.installHint or "").strip()
        raise NoAccess(f"it cannot be run: {reason}", at=place, hint=hint) from None
    try:
        async with asyncio.timeout(within):
            output, said = await process.communicate()
    except TimeoutError:
        raise NoAccess(f"it did not finish within {within:g} s", at=place) from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode or len(output) > _LARGEST:
        last = said.decode(errors="replace").strip().splitlines()[-1:]
        told = f": {last[0][:300]}" if last else ""
        raise NoAccess(f"it exited with code {process.returncode}{told}", at=place)
    return output


def _environment(program: KubeconfigExec, access: ClusterAccess) -> dict[str, str]:
    spec: dict[str, object] = {"interactive": bool(sys.stdin and sys.stdin.isatty())}
    if program.wants_cluster:
        cluster = access.cluster
        about = {
            "server": cluster.server,
            "tls-server-name": cluster.tls_server_name,
            "insecure-skip-tls-verify": cluster.insecure or None,
            "certificate-authority-data": cluster.certificate_auth_data,
            "proxy-url": cluster.proxy_url,
        }
        spec["cluster"] = {name: value for name, value in about.items() if value}
    asked = {"apiVersion": program.apiVersion, "kind": "ExecCredential", "spec": spec}
    own = {each.name: each.value for each in program.env or ()}
    return {**os.environ, **own, "KUBERNETES_EXEC_INFO": encode_json(asked).decode()}


class TlsMaterial(NamedTuple):
    """The certificates and the key for connections, in PEM.

    If one of them changes, new connections are needed.
    """

    authority: bytes = b""
    certificate: bytes = b""
    key: bytes = b""


@dataclass(frozen=True, slots=True)
class PresentedCredentials:
    """The credentials that a client sends to a server."""

    material: TlsMaterial
    authorization: str = ""


class CredentialProvider:
    """Provides the current credentials for one cluster and user."""

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
        """Return the current credentials. Renew them first if they have expired."""
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
            # Certificate and key files are replaced one after the other, so the new pair may be
            # incomplete. The old pair is used until the server refuses it.
        self._until = self._clock.time() + self._limits.look

    async def _run(self) -> ExecCredential:
        """Run the credential plugin.

        For `look` seconds after a failure, do not run it, but raise the same error again.
        """
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
