"""The certificate authorities (CAs) that sign certificates of functions, and the rotation of CAs.

Functions read their certificates and trusted CAs only when they start. Therefore a new CA is
trusted for a day before it signs, and an old CA is trusted for a day after its last signature.
During the first day, functions that do not trust the new CA yet are restarted.
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
"""Time for which a new CA is trusted before it signs, and for which an old CA is trusted after it
has signed for the last time.
"""
REPLACED_BEFORE = datetime.timedelta(days=730)
"""The time before its expiry at which a CA is replaced. All certificates that a CA has signed
expire before the CA expires.
"""
CALLER = "polyver"
"""Common name in the client certificate with which polyver calls functions."""


@dataclass(frozen=True, slots=True)
class FunctionAuthority:
    """A CA: its serial number, the time since which it is trusted, and its expiry."""

    serial: str
    since: datetime.datetime
    until: datetime.datetime


@dataclass(frozen=True, slots=True)
class CreateFunctionAuthority:
    """Rotation step: create a CA, which becomes the newest CA."""


@dataclass(frozen=True, slots=True)
class DropFunctionAuthority:
    """Rotation step: do not trust a CA any more."""

    serial: str


def plan(
    signers: Sequence[FunctionAuthority], now: datetime.datetime
) -> CreateFunctionAuthority | DropFunctionAuthority | None:
    """Return the next rotation step. Return None if no step is due.

    `signers` begins with the oldest CA.

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
    """Return the CA that signs. It is the newest CA that has been trusted for long enough."""
    heard = [each for each in signers if now - each.since >= OVERLAP]
    return heard[-1] if heard else signers[0]


def renewed_at(since: datetime.datetime, until: datetime.datetime) -> datetime.datetime:
    """Return the time at which to replace a certificate: after two thirds of its lifetime."""
    return since + (until - since) * 2 / 3


@dataclass(frozen=True)
class IssuedCertificate:
    """A certificate with its key, and the CAs that its holder trusts."""

    pair: Pair
    bundle: bytes

    @property
    def renewed_at(self) -> datetime.datetime:
        """The latest time at which the certificate is replaced."""
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
    """All trusted CAs. They are stored as one document. Each change replaces the whole document."""

    known: tuple[tuple[FunctionAuthority, Authority], ...] = ()

    @classmethod
    def decode(cls, content: bytes) -> Self:
        """Decode a stored document; raise ValueError if its content is invalid."""
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
        """The certificates of all trusted CAs in PEM, newest first."""
        return b"".join(authority.pem for _, authority in reversed(self.known))

    def advanced(self, now: datetime.datetime) -> Authorities:
        """Perform all rotation steps that are due.

        Return the result, or `self` if no step is due.
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
        """Issue a server certificate for a function that is called by these names."""
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
        """Return the CA that signs at this time."""
        return signing(self._signers, now)

    def _signing(self, now: datetime.datetime) -> Authority:
        chosen = self.signer(now)
        return next(authority for signer, authority in self.known if signer is chosen)

    def signed(self, leaf: x509.Certificate, now: datetime.datetime) -> bool:
        """Report whether a certificate is signed by the CA that signs at this time."""
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
    """Return the reason to replace a certificate now. Return "" if there is no reason.

    `authorities` must be in the state of `now` (see `advanced`). A certificate whose holder trusts
    more CAs than necessary is not replaced.
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
    """Return the hosts in a server certificate. The result is empty for a client certificate."""
    purposes = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    if ExtendedKeyUsageOID.SERVER_AUTH not in purposes:
        return set()
    hosts = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = {str(each) for each in hosts.get_values_for_type(x509.IPAddress)}
    return addresses | set(hosts.get_values_for_type(x509.DNSName))


def server_names(revision: str, *, namespace: str = "") -> tuple[str, ...]:
    """Return the names by which a revision is called: local names, and those of its Service.

    >>> server_names("fn-1", namespace="polyver-system")[-1]
    'fn-1.polyver-system.svc.cluster.local'
    """
    local = ("localhost", "127.0.0.1", "::1", revision)
    if not namespace:
        return local
    service = f"{revision}.{namespace}"
    return (*local, service, f"{service}.svc", f"{service}.svc.cluster.local")
