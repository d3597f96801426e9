"""The certificate authorities (CAs) that sign certificates of functions, and the rotation of CAs.

Functions read their certificates and trusted CAs only when they start. Therefore polyver trusts a
new CA for a day before this CA signs certificates, and trusts an old CA for a day after it has
signed for the last time. During the first day, polyver restarts the functions that do not trust the
new CA yet.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Self

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import ExtendedKeyUsageOID

from polyver.kube.http.tls import Authority, Pair, PemPair
from polyver.kube.objects.codec import encode_json

__all__ = [
    "CALLER",
    "OVERLAP",
    "Authorities",
    "CreateFunctionAuthority",
    "DropFunctionAuthority",
    "FunctionAuthority",
    "IssuedCertificate",
    "plan",
    "renewal",
    "renewed_at",
    "server_names",
    "signing",
]

OVERLAP = datetime.timedelta(days=1)
"""Time for which polyver trusts a new CA before it signs, and an old CA after its last signature.
"""
REPLACED_BEFORE = datetime.timedelta(days=730)
"""polyver replaces a CA this long before the CA expires.

All certificates that the CA has signed expire earlier than the CA.
"""
CALLER = "polyver"
"""Common name in the client certificate with which polyver calls functions."""


@dataclass(frozen=True, slots=True)
class FunctionAuthority:
    """A CA: its serial number, the time from which it is trusted, and its expiry."""

    serial: str
    since: datetime.datetime
    until: datetime.datetime


@dataclass(frozen=True, slots=True)
class CreateFunctionAuthority:
    """Rotation step: create a CA, which is then the newest one."""


@dataclass(frozen=True, slots=True)
class DropFunctionAuthority:
    """Rotation step: no longer trust the CA with this serial number."""

    serial: str


def plan(
    signers: Sequence[FunctionAuthority], now: datetime.datetime
) -> CreateFunctionAuthority | DropFunctionAuthority | None:
    """Return the next rotation step that is due at `now`; None if no step is due.

    `signers` are the trusted CAs, oldest first.

    >>> plan([], datetime.datetime(2026, 1, 1))
    CreateFunctionAuthority()
    """
    for each in signers:
        if each.until <= now:
            return DropFunctionAuthority(each.serial)
    if not signers or signers[-1].until - now <= REPLACED_BEFORE:
        return CreateFunctionAuthority()
    oldest, newest = signers[0], signers[-1]
    settled = now - newest.since >= 2 * OVERLAP
    return DropFunctionAuthority(oldest.serial) if settled and oldest is not newest else None


def signing(signers: Sequence[FunctionAuthority], now: datetime.datetime) -> FunctionAuthority:
    """Return the CA that signs at `now`: the newest CA that was trusted for at least `OVERLAP`.

    If there is no such CA, return the oldest one.
    """
    heard = [each for each in signers if now - each.since >= OVERLAP]
    return heard[-1] if heard else signers[0]


def renewed_at(since: datetime.datetime, until: datetime.datetime) -> datetime.datetime:
    """Return the time at which polyver replaces a certificate: after two thirds of its lifetime."""
    return since + (until - since) * 2 / 3


@dataclass(frozen=True)
class IssuedCertificate:
    """A certificate with its key, and the CAs that the owner of the certificate trusts."""

    pair: Pair
    bundle: bytes

    @property
    def renewed_at(self) -> datetime.datetime:
        """The time at which polyver replaces the certificate because of its age.

        polyver may replace it earlier for another reason.
        """
        leaf = x509.load_pem_x509_certificate(self.pair.certificate)
        return renewed_at(leaf.not_valid_before_utc, leaf.not_valid_after_utc)


class _Kept(msgspec.Struct, frozen=True):
    pair: PemPair
    since: datetime.datetime


class _Document(msgspec.Struct, frozen=True):
    authorities: tuple[_Kept, ...] = ()


_document = msgspec.json.Decoder(_Document)


@dataclass(frozen=True)
class Authorities:
    """All trusted CAs. They are stored in one document, and each change replaces this document."""

    known: tuple[tuple[FunctionAuthority, Authority], ...] = ()

    @classmethod
    def decode(cls, content: bytes) -> Self:
        """Decode a stored document. Raise ValueError if its content is invalid."""
        try:
            document = _document.decode(content)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ValueError(str(error)) from None
        return cls(tuple(_known(each) for each in document.authorities))

    def encode(self) -> bytes:
        kept = (_Kept(PemPair.of(each.pair), signer.since) for signer, each in self.known)
        return encode_json(_Document(tuple(kept)))

    @property
    def bundle(self) -> bytes:
        """The certificates of all trusted CAs, in PEM, newest first."""
        return b"".join(authority.pem for _, authority in reversed(self.known))

    def advanced(self, now: datetime.datetime) -> Authorities:
        """Return the CAs after all rotation steps that are due at `now`.

        Return `self` if no step is due.
        """
        match plan(self._signers, now):
            case CreateFunctionAuthority():
                made = Authority.create(f"polyver-functions {now:%Y-%m-%d}", now=now)
                # The stored time has no fraction of a second.
                kept = _Kept(PemPair.of(made.pair), now.replace(microsecond=0))
                return Authorities((*self.known, _known(kept))).advanced(now)
            case DropFunctionAuthority(serial):
                left = tuple(each for each in self.known if each[0].serial != serial)
                return Authorities(left).advanced(now)
        return self

    def server(self, names: Collection[str], now: datetime.datetime) -> IssuedCertificate:
        """Issue a server certificate for a function that clients call by these host names."""
        # The first name becomes the common name, which may have at most 64 characters.
        ordered = sorted(names, key=len)
        return IssuedCertificate(self._signing(now).server(*ordered, now=now), self.bundle)

    def client(self, now: datetime.datetime) -> IssuedCertificate:
        """Issue the client certificate with which polyver calls functions."""
        return IssuedCertificate(self._signing(now).client(CALLER, now=now), self.bundle)

    @property
    def _signers(self) -> list[FunctionAuthority]:
        return [signer for signer, _ in self.known]

    def signer(self, now: datetime.datetime) -> FunctionAuthority:
        """Return the CA that signs at `now`."""
        return signing(self._signers, now)

    def _signing(self, now: datetime.datetime) -> Authority:
        chosen = self.signer(now)
        return next(authority for signer, authority in self.known if signer is chosen)

    def signed(self, leaf: x509.Certificate, now: datetime.datetime) -> bool:
        """Report whether the CA that signs at `now` has signed this certificate."""
        try:
            leaf.verify_directly_issued_by(self._signing(now).certificate)
        except (ValueError, TypeError, InvalidSignature):
            return False
        return True


def _known(kept: _Kept) -> tuple[FunctionAuthority, Authority]:
    authority = Authority.load(kept.pair.pair)
    return FunctionAuthority(kept.pair.serial, kept.since, authority.until), authority


def renewal(
    issued: IssuedCertificate,
    authorities: Authorities,
    names: Collection[str],
    now: datetime.datetime,
) -> str:
    """Return why to replace a certificate now, such as `it cannot be read`; "" for no reason.

    `authorities` must be the result of `advanced(now)`. A certificate is not replaced if the only
    difference is that its owner trusts more CAs than necessary.
    """
    try:
        leaf = x509.load_pem_x509_certificate(issued.pair.certificate)
        believed = set(x509.load_pem_x509_certificates(issued.bundle))
        shown = _names(leaf)
    except (ValueError, x509.ExtensionNotFound):
        return "it cannot be read"
    if now >= renewed_at(leaf.not_valid_before_utc, leaf.not_valid_after_utc):
        return "two thirds of its lifetime are over"
    if not believed >= {authority.certificate for _, authority in authorities.known}:
        return "its holder does not trust all authorities"
    if not authorities.signed(leaf, now):
        return "the authority that signed it signs no longer"
    return "" if shown >= set(names) else "it does not contain all names"


def _names(leaf: x509.Certificate) -> set[str]:
    """Return the host names in a server certificate; none for a client certificate."""
    purposes = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    if ExtendedKeyUsageOID.SERVER_AUTH not in purposes:
        return set()
    hosts = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = {str(each) for each in hosts.get_values_for_type(x509.IPAddress)}
    return addresses | set(hosts.get_values_for_type(x509.DNSName))


def server_names(revision: str, *, namespace: str = "") -> tuple[str, ...]:
    """Return the host names by which polyver may call a revision.

    With a namespace, they include the names of the revision's Service.

    >>> server_names("fn-1", namespace="polyver-system")[-1]
    'fn-1.polyver-system.svc.cluster.local'
    """
    local = ("localhost", "127.0.0.1", "::1", revision)
    if not namespace:
        return local
    service = f"{revision}.{namespace}"
    return (*local, service, f"{service}.svc", f"{service}.svc.cluster.local")
