"""Certificates, keys and tokens of the server and its users, in a folder only its owner can read.

New certificates are created if the old ones are missing or damaged, expire soon, or are not valid
yet (because the clock was wrong when they were created). The library that reads certificates loads
slowly. Therefore the file `certificates.json` in the same folder records the names and the validity
of the certificates, and a digest of each file.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import hashlib
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from polyver.kube.http.addresses import local_names
from polyver.kube.http.files import FolderFailed, private_folder, refusal, write_file
from polyver.kube.objects.codec import encode_json
from polyver.kube.server.http import User
from polyver.kube.server.identity import ADMIN, MASTERS, VIEWER

if TYPE_CHECKING:
    import ssl

    from polyver.kube.http.tls import Authority

__all__ = ["Credentials", "server_names"]

_RENEWED_BEFORE = datetime.timedelta(days=30)
_TOKEN = re.compile(rb"[\x21-\x7e]*")
_KEY = re.compile(rb"-----BEGIN EC PRIVATE KEY-----\s([\w+/=\s]+)-----END EC PRIVATE KEY-----")
_SERVICE = ("kubernetes", "kubernetes.default", "kubernetes.default.svc")


class _Noted(msgspec.Struct):
    """The content of `certificates.json`: the record of the certificates in the folder."""

    names: list[str]
    until: datetime.datetime
    since: datetime.datetime | None = None
    digests: dict[str, str] = {}
    """The digest of each file, by file name."""


_noted = msgspec.json.Decoder(_Noted)


def server_names(host: str) -> list[str]:
    """List the names by which clients may address a server that listens on `host`.

    >>> server_names("10.1.2.3")[:2]
    ['10.1.2.3', 'localhost']
    """
    return list(dict.fromkeys((*local_names(host), *_SERVICE)))


@dataclass(frozen=True)
class Credentials:
    """The files with credentials in one folder."""

    folder: Path

    @classmethod
    def open(
        cls,
        folder: Path,
        names: Sequence[str],
        *,
        now: datetime.datetime,
        report: Callable[[str], None] = lambda _: None,
    ) -> Self:
        """Open the credentials in a folder; create files that are missing or cannot be used.

        A certificate cannot be used if it is damaged or expired, or if it is not valid for all
        `names`. When an existing certificate is replaced, `report` is called with the reason.
        """
        kept = cls(folder)
        try:
            private_folder(folder)
            first = not kept.are_there
            kept._ensure_tokens()
            kept._check_account_key()
            if problem := kept._problem(names, now):
                kept._make(names, now, (lambda _: None) if first else report, problem)
        except OSError as error:
            raise FolderFailed(refusal(error, folder)) from None
        return kept

    @property
    def are_there(self) -> bool:
        """True if the folder contains credentials already."""
        return self._token_file("admin").exists() or self._note.exists()

    @property
    def ca_file(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def server_cert_file(self) -> Path:
        return self.folder / "server.crt"

    @property
    def server_key_file(self) -> Path:
        return self.folder / "server.key"

    @property
    def client_cert_file(self) -> Path:
        return self.folder / "admin.crt"

    @property
    def client_key_file(self) -> Path:
        return self.folder / "admin.key"

    def tls(self) -> ssl.SSLContext:
        """Create the TLS context, which accepts client certificates but does not require them.

        To replace the certificate later, call `load_cert_chain` of this context: new connections
        then get the new certificate, and open connections stay open.
        """
        from polyver.kube.http.listener import tls_context

        try:
            return tls_context(self.server_cert_file, self.server_key_file, clients=self.ca_file)
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
            files = f"{self.server_cert_file}, {self.server_key_file} or {self.ca_file}"
            raise FolderFailed(f"{files} cannot be used: {reason}") from None

    @property
    def token(self) -> str:
        """The administrator's token."""
        return self._token("admin")

    @property
    def viewer_token(self) -> str:
        """The token of a user who may read everything except secrets."""
        return self._token("viewer")

    @property
    def page_token(self) -> str:
        """The token for the web page; the API server does not accept this token."""
        return self._token("page")

    def account_key(self) -> bytes:
        """Return the private key that signs the tokens of service accounts.

        The first call creates the key. The start of the server does not, because the library that
        creates keys loads slowly.
        """
        file = self._account_key_file
        if not file.exists():
            from polyver.kube.http.tls import key_pem, new_key

            write_file(file, key_pem(new_key()))
        return file.read_bytes()

    @property
    def _account_key_file(self) -> Path:
        return self.folder / "accounts.key"

    def _check_account_key(self) -> None:
        """Raise an error if the key for tokens of service accounts is damaged.

        The key is not replaced: all tokens that the old key signed would become invalid.
        """
        file = self._account_key_file
        if file.exists() and not _is_key(file.read_bytes()):
            hint = (
                "restore the file from a backup, or delete the file: all service account tokens "
                "then become invalid"
            )
            raise FolderFailed(f"{file} is not a private key", hint=hint)

    @property
    def tokens(self) -> dict[str, User]:
        return {self.token: ADMIN, self.viewer_token: VIEWER}

    def _token_file(self, name: str) -> Path:
        return self.folder / f"{name}.token"

    def _ensure_tokens(self) -> None:
        for name in ("admin", "viewer", "page"):
            file = self._token_file(name)
            if not file.exists() or not self._token(name):
                write_file(file, secrets.token_urlsafe(32).encode())

    def _token(self, name: str) -> str:
        file = self._token_file(name)
        found = file.read_bytes().strip()
        if _TOKEN.fullmatch(found) is None:
            hint = "delete the file; the next start creates a new token"
            raise FolderFailed(f"{file} holds no token", hint=hint)
        return found.decode()

    def _problem(self, names: Sequence[str], now: datetime.datetime) -> str:
        """Return the reason why the certificates cannot be used; "" if they can be used."""
        try:
            noted = _noted.decode(self._note.read_bytes())
        except FileNotFoundError:
            return f"{self._note} is missing"
        except (msgspec.DecodeError, UnicodeDecodeError):
            return f"{self._note} is damaged"
        return self._misfit(noted, names, now)

    def _misfit(self, noted: _Noted, names: Sequence[str], now: datetime.datetime) -> str:
        """Return the reason why the certificates with the record `noted` cannot be used, or ""."""
        if noted.since is None:
            return f"{self._note} was written by an older polyver"
        if noted.since > now:
            return f"{self.server_cert_file} is not valid before {noted.since.isoformat()}"
        if noted.until - now <= _RENEWED_BEFORE:
            return f"{self.server_cert_file} expires at {noted.until.isoformat()}"
        if not set(names) <= set(noted.names):
            return f"{self.server_cert_file} is not for {', '.join(names)}"
        changed = [file for file in self._files if noted.digests.get(file.name) != _digest(file)]
        return f"{changed[0]} is missing or damaged" if changed else ""

    @property
    def _note(self) -> Path:
        return self.folder / "certificates.json"

    @property
    def _ca_key_file(self) -> Path:
        return self.folder / "ca.key"

    @property
    def _files(self) -> tuple[Path, ...]:
        server = (self.server_cert_file, self.server_key_file)
        client = (self.client_cert_file, self.client_key_file)
        return (self.ca_file, self._ca_key_file, *server, *client)

    def _make(
        self,
        names: Sequence[str],
        now: datetime.datetime,
        report: Callable[[str], None],
        problem: str,
    ) -> None:
        from polyver.kube.http.tls import VALID_FOR, VALID_SINCE

        # Write the record after the other files: polyver trusts a record, so a record without its
        # files would be wrong.
        self._note.unlink(missing_ok=True)
        report(problem)
        authority = self._authority(now, report)
        server = authority.server(*names, now=now)
        admin = authority.client(ADMIN.name, MASTERS, now=now)
        write_file(self.server_cert_file, server.certificate)
        write_file(self.server_key_file, server.key)
        write_file(self.client_cert_file, admin.certificate)
        write_file(self.client_key_file, admin.key)
        digests = {file.name: _digest(file) for file in self._files}
        noted = _Noted(list(names), now + VALID_FOR, now - VALID_SINCE, digests)
        write_file(self._note, encode_json(noted))

    def _authority(self, now: datetime.datetime, report: Callable[[str], None]) -> Authority:
        """Load the CA. If it expires before the certificates that it must sign, create a new CA."""
        from polyver.kube.http.tls import VALID_FOR, Authority, Pair

        try:
            kept = Authority.load(Pair(self.ca_file.read_bytes(), self._ca_key_file.read_bytes()))
            if kept.since <= now and kept.until > now + VALID_FOR:
                return kept
            problem = f"is valid from {kept.since.isoformat()} to {kept.until.isoformat()}"
        except (FileNotFoundError, ValueError, TypeError) as error:
            problem = f"or {self._ca_key_file} cannot be used ({error})"
        report(f"{self.ca_file} {problem}; clients need the new kubeconfig")
        made = Authority.create("polyver", now=now)
        write_file(self.ca_file, made.pair.certificate)
        write_file(self._ca_key_file, made.pair.key)
        return made


def _digest(file: Path) -> str:
    """Compute the digest of a file; return an empty string if the file does not exist."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except FileNotFoundError:
        return ""


def _is_key(content: bytes) -> bool:
    """Report whether the content of a file looks like a complete private key.

    This check needs no cryptography library, which would load slowly.
    """
    found = _KEY.fullmatch(content.strip())
    if found is None:
        return False
    try:
        der = base64.b64decode(found[1])
    except binascii.Error:
        return False
    # A DER sequence states its length; for these keys the length is always one byte.
    return len(der) > 2 and der[0] == 0x30 and der[1] == len(der) - 2
