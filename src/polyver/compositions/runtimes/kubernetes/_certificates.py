"""Certificates of functions on a cluster.

The certificate authorities are stored in a Secret, which all replicas of polyver use.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from datetime import datetime

from polyver.client import Client, Clock, find
from polyver.client.field_managers import POLYVER
from polyver.compositions.calls import Authorities, IssuedCertificate, Trust, renewal, server_names
from polyver.compositions.runtimes.kubernetes._manifests import SECRETS
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError

__all__ = ["AUTHORITIES", "ClusterCertificates"]

AUTHORITIES = "polyver-functions"
"""Name of the Secret that contains the certificate authorities."""
_KEY = "authorities.json"
_TRIES = 5
_READ_EVERY = 60.0


class _UnreadableSecret(PolyverError):
    """The content of the Secret with the certificate authorities is not valid."""


class ClusterCertificates:
    """Issues certificates for function revisions, and for polyver, which calls them."""

    def __init__(self, client: Client, namespace: str, clock: Clock) -> None:
        self._client = client
        self._namespace = namespace
        self._clock = clock
        self._known: Authorities | None = None
        self._read_at = float("-inf")
        self._caller: IssuedCertificate | None = None
        self._one_at_a_time = asyncio.Lock()

    async def fitting(self, revision: str, before: IssuedCertificate | None) -> IssuedCertificate:
        """Return valid certificates for a revision.

        The result is `before` or, if `before` must be renewed, new certificates.
        """
        authorities, now = await self._authorities(), self._clock.now()
        names = server_names(revision, namespace=self._namespace)
        if before is not None and not renewal(before, authorities, names, now):
            return before
        return authorities.server(names, now)

    async def trust(self, revision: str) -> Trust:
        """Return the certificates with which polyver calls a revision."""
        authorities, now = await self._authorities(), self._clock.now()
        if self._caller is None or renewal(self._caller, authorities, (), now):
            self._caller = authorities.client(now)
        return Trust(self._caller.bundle, self._caller.pair, revision)

    async def _authorities(self) -> Authorities:
        """Return the certificate authorities, after any rotation that is due has been stored."""
        async with self._one_at_a_time:
            age = self._clock.time() - self._read_at
            if self._known is not None and age < _READ_EVERY:
                return self._known
            for _ in range(_TRIES):
                found = await self._advanced(self._clock.now())
                if found is not None:
                    self._known, self._read_at = found, self._clock.time()
                    return found
            fact = f"the Secret {self._namespace}/{AUTHORITIES} is changed all the time"
            raise _UnreadableSecret(fact)

    async def _advanced(self, now: datetime) -> Authorities | None:
        """Read the authorities, perform the rotation that is due, and store the result.

        Return None if another replica changed the Secret at the same time.
        """
        kept = await find(self._client, SECRETS, AUTHORITIES, self._namespace)
        before = self._decoded(kept) if kept else Authorities()
        after = before.advanced(now)
        if after is before:
            return after
        data = {_KEY: base64.b64encode(after.encode()).decode()}
        try:
            if kept is None:
                metadata = {"name": AUTHORITIES, "namespace": self._namespace}
                made = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
                await self._client.create(SECRETS, made, self._namespace, manager=POLYVER)
            else:
                await self._client.update(SECRETS, kept | {"data": data}, manager=POLYVER)
        except ApiError as error:
            if error.code != 409:
                raise
            return None
        return after

    def _decoded(self, kept: Object) -> Authorities:
        try:
            text = (kept.get("data") or {}).get(_KEY, "")
            return Authorities.decode(base64.b64decode(text, validate=True))
        except (ValueError, TypeError, binascii.Error):
            fact = f"the Secret {self._namespace}/{AUTHORITIES} has unexpected content"
            raise _UnreadableSecret(fact, hint="delete it to create a new authority") from None
