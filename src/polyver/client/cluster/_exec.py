"""Credential plugins (client.authentication.k8s.io), run as kubectl runs them."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import Struct

from polyver.client._clock import Clock
from polyver.client.cluster._access import ClusterAccess, KubeconfigExec
from polyver.client.cluster._problems import NoAccess
from polyver.kube.objects.codec import encode_json

__all__ = ["ExecCredential", "run_plugin"]

_API = "client.authentication.k8s.io"
_VERSIONS = tuple(f"{_API}/{version}" for version in ("v1", "v1beta1", "v1alpha1"))
_LARGEST = 1024 * 1024
_EARLY = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class ExecCredential:
    """The credentials that a plugin printed."""

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
    """Run the plugin of a user; an error contains the plugin's own message."""
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
