"""What the server and its users prove themselves with, kept in a folder that only its owner reads.

Certificates are made once and again when they are about to end. What they say is noted beside them,
because the library that reads certificates takes long to load.
"""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from polyver.objects.codec import encode_json
from polyver.server._http import User
from polyver.server.identity import ADMIN, MASTERS, VIEWER
from polyver.serving.addresses import local_names
from polyver.serving.files import FolderFailed, private_folder, write_file

if TYPE_CHECKING:
    import ssl

    from polyver.tls import Authority

__all__ = ["Credentials", "server_names"]

_RENEWED_BEFORE = datetime.timedelta(days=30)
_SERVICE = ("kubernetes", "kubernetes.default", "kubernetes.default.svc")


class _Noted(msgspec.Struct):
    """What the certificates in the folder say."""

    names: list[str]
    until: datetime.datetime


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
    def open(cls, folder: Path, names: Sequence[str], *, now: datetime.datetime) -> Self:
        """Those in a folder; what is missing, about to end, or for other names is made anew."""
        kept = cls(folder)
        try:
            private_folder(folder)
            kept._ensure_tokens()
            if not kept._serve_for(names, now):
                kept._make(names, now)
        except OSError as error:
            raise FolderFailed(f"{folder} cannot be used: {error.strerror or error}") from None
        return kept

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
        from polyver.serving.listening import tls_context

        return tls_context(self.server_cert_file, self.server_key_file, clients=self.ca_file)

    @property
    def token(self) -> str:
        """The administrator's."""
        return self._token_file("admin").read_text().strip()

    @property
    def viewer_token(self) -> str:
        """Of a user who may read everything but secrets."""
        return self._token_file("viewer").read_text().strip()

    @property
    def page_token(self) -> str:
        """Of who may see the page; the API does not take it."""
        return self._token_file("page").read_text().strip()

    def account_key(self) -> bytes:
        """The private key that tokens of service accounts are signed with; made when first asked.

        Not at the start: the library that makes keys takes long to load.
        """
        file = self.folder / "accounts.key"
        if not file.exists():
            from polyver.tls import key_pem, new_key

            write_file(file, key_pem(new_key()))
        return file.read_bytes()

    @property
    def tokens(self) -> dict[str, User]:
        return {self.token: ADMIN, self.viewer_token: VIEWER}

    def _token_file(self, name: str) -> Path:
        return self.folder / f"{name}.token"

    def _ensure_tokens(self) -> None:
        for name in ("admin", "viewer", "page"):
            file = self._token_file(name)
            if not file.exists() or not file.read_text().strip():
                write_file(file, secrets.token_urlsafe(32).encode())

    def _serve_for(self, names: Sequence[str], now: datetime.datetime) -> bool:
        try:
            noted = _noted.decode(self._note.read_bytes())
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return False
        there = all(file.exists() for file in self._files)
        return there and set(names) <= set(noted.names) and noted.until - now > _RENEWED_BEFORE

    @property
    def _note(self) -> Path:
        return self.folder / "certificates.json"

    @property
    def _files(self) -> tuple[Path, ...]:
        server = (self.server_cert_file, self.server_key_file)
        return (self.ca_file, *server, self.client_cert_file, self.client_key_file)

    def _make(self, names: Sequence[str], now: datetime.datetime) -> None:
        from polyver.tls import VALID_FOR

        # Written last: a note without its certificates would be believed.
        self._note.unlink(missing_ok=True)
        authority = self._authority(now)
        server = authority.server(*names, now=now)
        admin = authority.client(ADMIN.name, MASTERS, now=now)
        write_file(self.server_cert_file, server.certificate)
        write_file(self.server_key_file, server.key)
        write_file(self.client_cert_file, admin.certificate)
        write_file(self.client_key_file, admin.key)
        write_file(self._note, encode_json(_Noted(list(names), now + VALID_FOR)))

    def _authority(self, now: datetime.datetime) -> Authority:
        """The one that was kept, as long as it outlives what it is to sign."""
        from polyver.tls import VALID_FOR, Authority, Pair

        key_file = self.folder / "ca.key"
        try:
            kept = Authority.load(Pair(self.ca_file.read_bytes(), key_file.read_bytes()))
            if kept.until > now + VALID_FOR:
                return kept
        except (FileNotFoundError, ValueError, TypeError):
            pass
        made = Authority.create("polyver", now=now)
        write_file(self.ca_file, made.pair.certificate)
        write_file(key_file, made.pair.key)
        return made
