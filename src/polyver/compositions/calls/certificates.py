"""Certificates of functions that run as processes on this machine, stored in a folder.

Each start of a function uses a subfolder whose content never changes. When polyver renews a
certificate, it writes a new subfolder for the next start of the function. The certificate
authorities (CAs) are stored in the folder too, so they survive a restart of polyver.
"""

from __future__ import annotations

import datetime
import re
import secrets
import shutil
import threading
from dataclasses import dataclass, field
from pathlib import Path

from polyver.compositions.calls.authorities import (
    Authorities,
    FunctionAuthority,
    IssuedCertificate,
    renewal,
    server_names,
)
from polyver.compositions.calls.endpoints import Trust
from polyver.core import PolyverError
from polyver.kube.http.files import FolderFailed, private_folder, refusal, write_file

__all__ = ["CertificateFolder", "FunctionCertificates", "InvalidName"]

_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_KEPT = 2
"""Number of subfolders to keep for each function revision: the current and the previous one."""


class InvalidName(PolyverError):
    """The string cannot be the name of a function revision."""


@dataclass(frozen=True)
class FunctionCertificates:
    """Certificates for one start of a function, which gets `folder` as `--tls-certs-dir`."""

    revision: str
    folder: Path
    issued: IssuedCertificate
    names: tuple[str, ...]


@dataclass(frozen=True)
class _Client:
    """The client certificate of polyver. It is cached because each call needs it."""

    issued: IssuedCertificate
    authorities: Authorities
    signer: FunctionAuthority
    until: datetime.datetime
    trusts: dict[str, Trust] = field(default_factory=dict)

    @classmethod
    def of(cls, authorities: Authorities, now: datetime.datetime) -> _Client:
        issued = authorities.client(now)
        return cls(issued, authorities, authorities.signer(now), issued.renewed_at)

    def holds(self, authorities: Authorities, now: datetime.datetime) -> bool:
        same = self.authorities is authorities and self.signer is authorities.signer(now)
        return same and now < self.until

    def trust(self, revision: str) -> Trust:
        if revision not in self.trusts:
            self.trusts[revision] = Trust(self.issued.bundle, self.issued.pair, revision)
        return self.trusts[revision]


class CertificateFolder:
    """A folder with CAs and certificates. Any thread may call its methods."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._authorities: Authorities | None = None
        self._client: _Client | None = None
        self._lock = threading.Lock()

    def issue(
        self, revision: str, *, now: datetime.datetime, namespace: str = ""
    ) -> FunctionCertificates:
        """Write the files tls.crt, tls.key and ca.crt for the next start of a function revision."""
        if not _NAME.fullmatch(revision):
            raise InvalidName(f"{revision!r} cannot be the name of a revision")
        names = server_names(revision, namespace=namespace)
        with self._lock:
            issued = self._advanced(now).server(names, now)
            try:
                folder = self._write(revision, issued)
            except OSError as error:
                raise self._failed(error) from None
        return FunctionCertificates(revision, folder, issued, names)

    def renewal(self, certificates: FunctionCertificates, *, now: datetime.datetime) -> str:
        """Return the reason to restart a function with new certificates; "" without a reason."""
        with self._lock:
            return renewal(certificates.issued, self._advanced(now), certificates.names, now)

    def trust(self, revision: str, *, now: datetime.datetime) -> Trust:
        """Return the certificates with which polyver calls a revision.

        The result is the same object as before, as long as these certificates are valid.
        """
        with self._lock:
            authorities = self._advanced(now)
            if self._client is None or not self._client.holds(authorities, now):
                self._client = _Client.of(authorities, now)
            return self._client.trust(revision)

    def forget(self, revision: str) -> None:
        """Remove the certificates of a function revision that is not served any more."""
        with self._lock:
            if self._client is not None:
                self._client.trusts.pop(revision, None)
        if _NAME.fullmatch(revision):
            shutil.rmtree(self._revisions / revision, ignore_errors=True)

    @property
    def _revisions(self) -> Path:
        return self._folder / "revisions"

    def _advanced(self, now: datetime.datetime) -> Authorities:
        """Perform the CA rotation that is due, store the result, and return it.

        It is stored first, so that a certificate never comes from a CA that is not stored.
        """
        try:
            if self._authorities is None:
                private_folder(self._folder)
                self._authorities = self._read()
            advanced = self._authorities.advanced(now)
            if advanced is not self._authorities:
                write_file(self._file, advanced.encode())
                self._authorities = advanced
        except OSError as error:
            raise self._failed(error) from None
        return advanced

    @property
    def _file(self) -> Path:
        return self._folder / "authorities.json"

    def _read(self) -> Authorities:
        if not self._file.exists():
            return Authorities()
        try:
            return Authorities.decode(self._file.read_bytes())
        except ValueError:
            hint = "move it away: functions then get certificates of a new authority"
            raise FolderFailed(f"{self._file} has unexpected content", hint=hint) from None

    def _write(self, revision: str, issued: IssuedCertificate) -> Path:
        home = self._revisions / revision
        private_folder(self._revisions)
        private_folder(home)
        name = secrets.token_hex(4)
        unfinished = home / f".{name}"
        private_folder(unfinished)
        contents = (
            ("tls.crt", issued.pair.certificate),
            ("tls.key", issued.pair.key),
            ("ca.crt", issued.bundle),
        )
        for file, content in contents:
            write_file(unfinished / file, content)
        finished = unfinished.rename(home / name)
        _tidy(home, finished)
        return finished

    def _failed(self, error: OSError) -> FolderFailed:
        return FolderFailed(refusal(error, self._folder))


def _tidy(home: Path, newest: Path) -> None:
    """Remove unfinished subfolders, and subfolders that no process uses any more."""
    others = [each for each in home.iterdir() if each != newest]
    finished = [each for each in others if not each.name.startswith(".")]
    finished.sort(key=lambda each: each.stat().st_mtime_ns, reverse=True)
    for each in set(others) - set(finished[: _KEPT - 1]):
        shutil.rmtree(each, ignore_errors=True)
