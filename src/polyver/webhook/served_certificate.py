"""The certificate that the webhook server presents on new connections, and its sources.

Each pair of certificate and key is loaded into a new TLS context. If the key does not fit, OpenSSL
leaves the context without a certificate; connections must not use such a context.
"""

from __future__ import annotations

import asyncio
import datetime
import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from cryptography import x509

from polyver.core import PolyverError
from polyver.kube.http.background import repeated
from polyver.kube.http.listener import tls_context
from polyver.kube.http.logs import Log

__all__ = ["FilePairs", "LoadedPair", "PairSource", "PairUnusable", "load_pair"]

_LOOK_EVERY = 1.0
_PEM = "both must be PEM, and the key must not be encrypted"
OLD_PAIR = "the old certificate stays in use"


class PairUnusable(PolyverError):
    """A certificate and its key cannot be used, or not yet."""


@dataclass(frozen=True, slots=True)
class LoadedPair:
    """A certificate and its key, loaded into a TLS context, with its time of validity."""

    content: tuple[bytes, bytes]
    context: ssl.SSLContext
    since: datetime.datetime
    until: datetime.datetime

    def problem(self, now: datetime.datetime) -> str:
        """Return the reason why clients would refuse the certificate; "" if they would trust it."""
        if now < self.since:
            return f"the certificate is not valid before {self.since.isoformat()}"
        return "" if now < self.until else f"the certificate expired at {self.until.isoformat()}"


class PairSource(Protocol):
    """A source of the certificate and its key: files, or a Secret that replicas share."""

    @property
    def shown(self) -> LoadedPair:
        """The loaded certificate for new connections. Call `start` first."""
        ...

    @property
    def trust(self) -> str:
        """Where users find the CA or certificate that callers must trust, for a log message."""
        ...

    async def start(self) -> None:
        """Load the certificate; raise PolyverError if there is no certificate."""
        ...

    async def follow(self, log: Log) -> None:
        """Load each new certificate that the source gets, until the task is cancelled."""
        ...


def load_pair(certificate: bytes, key: bytes, *, source: str) -> LoadedPair:
    """Load a certificate and its key from PEM; errors name their `source`."""
    with ExitStack() as files:
        names = [files.enter_context(_file(each)) for each in (certificate, key)]
        called = (f"the certificate of {source}", f"the key of {source}")
        return _loaded((certificate, key), names[0], names[1], called)


@contextmanager
def _file(content: bytes) -> Iterator[Path]:
    """Yield the path of a temporary file with this content, because OpenSSL reads only files.

    If the system supports it, the file is in memory.
    """
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("pair")
        try:
            os.write(number, content)
            yield Path(f"/proc/self/fd/{number}")
        finally:
            os.close(number)
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        yield Path(file.name)


def _loaded(
    content: tuple[bytes, bytes], certificate: Path, key: Path, names: tuple[str, str]
) -> LoadedPair:
    """Load a certificate and its key from two files. Errors call the files by the two `names`."""
    try:
        leaf = x509.load_pem_x509_certificate(content[0])
    except ValueError:
        raise PairUnusable(f"{names[0]} is not a certificate", hint=_PEM) from None
    if b"-----BEGIN" not in content[1]:
        raise PairUnusable(f"{names[1]} is not a private key", hint=_PEM)
    try:
        context = tls_context(certificate, key)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or str(error)
        fact = f"{names[0]} and {names[1]} are not a certificate and its key: {reason}"
        raise PairUnusable(fact, hint=_PEM) from None
    return LoadedPair(content, context, leaf.not_valid_before_utc, leaf.not_valid_after_utc)


class FilePairs:
    """A certificate and key in two files, which another program or a person may replace."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = (certificate, key)
        self._loaded: LoadedPair | None = None

    @property
    def shown(self) -> LoadedPair:
        assert self._loaded is not None
        return self._loaded

    @property
    def trust(self) -> str:
        return f"certificate from {self._files[0]}"

    async def start(self) -> None:
        await asyncio.to_thread(self.reload)

    async def follow(self, log: Log) -> None:
        await repeated(partial(self._look, log), every=_LOOK_EVERY, log=log, failing=OLD_PAIR)

    async def _look(self, log: Log) -> None:
        if await asyncio.to_thread(self.reload):
            log.info("certificate reloaded", until=self.shown.until.isoformat())

    def reload(self) -> bool:
        """Load the files again; return False if they have not changed.

        Raise PairUnusable if the new files cannot be used; the certificate that was loaded before
        then stays in use.
        """
        certificate, key = self._files
        content = _content(certificate), _content(key)
        if self._loaded is not None and content == self._loaded.content:
            return False
        self._loaded = _loaded(content, certificate, key, (str(certificate), str(key)))
        return True


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise PairUnusable(f"{file} cannot be read: {error.strerror or error}") from None
