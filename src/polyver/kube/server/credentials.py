"""What the server and its users prove themselves with, kept in a folder that only its owner reads.

Certificates are made once, and again when they are about to end, are not valid yet (they were made
while the clock was ahead) or are damaged. What they say is noted beside them, with a digest of each
file, because the library that reads certificates takes long to load.
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
    """What the certificates in the folder say."""

    names: list[str]
    until: datetime.datetime
    since: datetime.datetime | None = None
    digests: dict[str, str] = {}
    """Of the files, by their names."""


_noted = msgspec.json.Decoder(_Noted)


def server_names(host: str) -> list[str]:
    """What clients may call a server that listens on a host.

    >>> server_names("10.1.2.3")[:2]
    ['10.1.2.3', 'localhost']
    """
    return list(dict.fromkeys((*local_names(host), *_SERVICE)))


@dataclass(frozen=True)
class Credentials:
    """The files, all in one folder."""

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
        """Those in a folder; what is missing, not valid now, or for other names is made anew.

        `report` is called with the reason when something that was there is made again.
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
        """True if the folder has credentials already."""
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
        """TLS with client certificates for those who have one.

        When `load_cert_chain` is called again, new connections get the new certificate, and none
        that is open is dropped.
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
        """The administrator's."""
        return self._token("admin")

    @property
    def viewer_token(self) -> str:
        """Of a user who may read everything but secrets."""
        return self._token("viewer")

    @property
    def page_token(self) -> str:
        """Of who may see the page; the API does not take it."""
        return self._token("page")

    def account_key(self) -> bytes:
        """The private key that tokens of service accounts are signed with; made when first asked.

        Not at the start: the library that makes keys takes long to load.
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
        """Refuse a key that is damaged: a new one would end all tokens that it has signed."""
        file = self._account_key_file
        if file.exists() and not _is_key(file.read_bytes()):
            hint = "put it back from a backup, or delete it: tokens of service accounts then end"
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
            hint = "delete it, and the next start makes a new one"
            raise FolderFailed(f"{file} holds no token", hint=hint)
        return found.decode()

    def _problem(self, names: Sequence[str], now: datetime.datetime) -> str:
        """Return why the certificates cannot be used; nothing if they can."""
        try:
            noted = _noted.decode(self._note.read_bytes())
        except FileNotFoundError:
            return f"{self._note} is missing"
        except (msgspec.DecodeError, UnicodeDecodeError):
            return f"{self._note} is damaged"
        return self._misfit(noted, names, now)

    def _misfit(self, noted: _Noted, names: Sequence[str], now: datetime.datetime) -> str:
        """Return why certificates with such a note cannot be used."""
        if noted.since is None:
            return f"{self._note} was written by an older polyver"
        if noted.since > now:
            return f"{self.server_cert_file} is not valid before {noted.since.isoformat()}"
        if noted.until - now <= _RENEWED_BEFORE:
            return f"{self.server_cert_file} ends at {noted.until.isoformat()}"
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

        # Written last: a note without its certificates would be believed.
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
        """The one that was kept, as long as it is valid and outlives what it is to sign."""
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
    """Return the digest of a file; nothing if there is none."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except FileNotFoundError:
        return ""


def _is_key(content: bytes) -> bool:
    """Return True if a file looks like a whole private key, without a cryptography library."""
    found = _KEY.fullmatch(content.strip())
    if found is None:
        return False
    try:
        der = base64.b64decode(found[1])
    except binascii.Error:
        return False
    # A DER sequence says its own length, here always in one byte.
    return len(der) > 2 and der[0] == 0x30 and der[1] == len(der) - 2
