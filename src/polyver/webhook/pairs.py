"""The certificate that new connections get, from two files that somebody else may replace."""

from __future__ import annotations

import datetime
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509

from polyver.core import PolyverError
from polyver.serving.listening import tls_context

__all__ = ["PairUnusable", "ServedPair"]


class PairUnusable(PolyverError):
    """Two files that are not, or not yet, a certificate and its key."""


@dataclass(frozen=True, slots=True)
class _Loaded:
    content: tuple[bytes, bytes]
    context: ssl.SSLContext
    since: datetime.datetime
    until: datetime.datetime


class ServedPair:
    """A certificate and its key, as long as they are good.

    Each pair is loaded into a context of its own: OpenSSL leaves a context without any certificate
    when a key does not fit, and that must not be the one that connections get.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = (certificate, key)
        self._loaded = self._load(self._read())

    def context(self) -> ssl.SSLContext:
        return self._loaded.context

    @property
    def until(self) -> datetime.datetime:
        """When the certificate ends."""
        return self._loaded.until

    def problem(self, now: datetime.datetime) -> str:
        """Why clients would not believe the certificate; nothing if they would."""
        loaded = self._loaded
        if now < loaded.since:
            return f"the certificate is not valid before {loaded.since.isoformat()}"
        return "" if now < loaded.until else f"the certificate ended at {loaded.until.isoformat()}"

    def reload(self) -> bool:
        """Take what the files hold now; False if that is what they held before.

        PairUnusable if it cannot be used: then everything stays as it was.
        """
        content = self._read()
        if content == self._loaded.content:
            return False
        self._loaded = self._load(content)
        return True

    def _read(self) -> tuple[bytes, bytes]:
        certificate, key = (_content(file) for file in self._files)
        return certificate, key

    def _load(self, content: tuple[bytes, bytes]) -> _Loaded:
        certificate, key = self._files
        try:
            leaf = x509.load_pem_x509_certificate(content[0])
            context = tls_context(certificate, key)
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or str(error)
            raise PairUnusable(
                f"{certificate} and {key} are not a certificate and its key: {reason}",
                hint="both must be PEM, and the key not encrypted",
            ) from None
        return _Loaded(content, context, leaf.not_valid_before_utc, leaf.not_valid_after_utc)


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise PairUnusable(f"{file} cannot be read: {error.strerror or error}") from None
