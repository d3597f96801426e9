"""The authorities behind the certificates of functions: who signs, who is believed, until when.

Functions read their certificates once, when they start. So a new authority is believed for a day
before it signs anything, and the old one for a day after it has signed the last time: by then
whoever knew only the old one has been started anew.
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
"""How long a new authority is believed before it signs, and an old one after."""
REPLACED_BEFORE = datetime.timedelta(days=730)
"""How long before its end an authority gets a successor: every leaf ends before its authority."""
CALLER = "polyver"
"""The name in the certificate of whoever calls functions."""


@dataclass(frozen=True, slots=True)
class FunctionAuthority:
    """An authority, and since when it is believed."""

    serial: str
    since: datetime.datetime
    until: datetime.datetime


@dataclass(frozen=True, slots=True)
class CreateFunctionAuthority:
    """Make an authority that follows the others."""


@dataclass(frozen=True, slots=True)
class DropFunctionAuthority:
    """Believe an authority no longer."""

    serial: str


def plan(
    signers: Sequence[FunctionAuthority], now: datetime.datetime
) -> CreateFunctionAuthority | DropFunctionAuthority | None:
    """The next step, with the oldest authority first; none if nothing is to be done now.

    >>> plan([], datetime.datetime(2026, 1, 1))
    Create()
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
    """Who signs: the newest that all have had the time to hear of."""
    heard = [each for each in signers if now - each.since >= OVERLAP]
    return heard[-1] if heard else signers[0]


def renewed_at(since: datetime.datetime, until: datetime.datetime) -> datetime.datetime:
    """When a certificate is to be replaced: two thirds of its life are over."""
    return since + (until - since) * 2 / 3


@dataclass(frozen=True)
class IssuedCertificate:
    """A certificate with its key, and the authorities that its holder believes."""

    pair: Pair
    bundle: bytes

    @property
    def renewed_at(self) -> datetime.datetime:
        """When it is to be replaced, if nothing else happens."""
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
    """All that sign, or have signed; kept as one document, which is replaced as a whole."""

    known: tuple[tuple[FunctionAuthority, Authority], ...] = ()

    @classmethod
    def decode(cls, content: bytes) -> Self:
        """What was kept; ValueError if it was not."""
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
        """What everyone believes: the newest first, since it is looked for most."""
        return b"".join(authority.pem for _, authority in reversed(self.known))

    def advanced(self, now: datetime.datetime) -> Authorities:
        """With every step taken that is to be taken now; itself if there is none."""
        match plan(self._signers, now):
            case CreateFunctionAuthority():
                made = Authority.create(f"polyver-functions {now:%Y-%m-%d}", now=now)
                # To the second, as documents have it.
                kept = _Kept(PemPair.of(made.pair), now.replace(microsecond=0))
                return Authorities((*self.known, _known(kept))).advanced(now)
            case DropFunctionAuthority(serial):
                left = tuple(each for each in self.known if each[0].serial != serial)
                return Authorities(left).advanced(now)
        return self

    def server(self, names: Collection[str], now: datetime.datetime) -> IssuedCertificate:
        """A certificate for a function that has these names."""
        # The first becomes the common name, which may have 64 letters at most.
        ordered = sorted(names, key=len)
        return IssuedCertificate(self._signing(now).server(*ordered, now=now), self.bundle)

    def client(self, now: datetime.datetime) -> IssuedCertificate:
        """A certificate for whoever calls functions."""
        return IssuedCertificate(self._signing(now).client(CALLER, now=now), self.bundle)

    @property
    def _signers(self) -> list[FunctionAuthority]:
        return [signer for signer, _ in self.known]

    def signer(self, now: datetime.datetime) -> FunctionAuthority:
        """Who signs now."""
        return signing(self._signers, now)

    def _signing(self, now: datetime.datetime) -> Authority:
        chosen = self.signer(now)
        return next(authority for signer, authority in self.known if signer is chosen)

    def signed(self, leaf: x509.Certificate, now: datetime.datetime) -> bool:
        """Whether who signs now has signed a certificate."""
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
    """Why a certificate has to be replaced now; nothing if it has not.

    Authorities must have been advanced to this time. Believing one too many is no reason.
    """
    try:
        leaf = x509.load_pem_x509_certificate(issued.pair.certificate)
        believed = set(x509.load_pem_x509_certificates(issued.bundle))
        shown = _names(leaf)
    except (ValueError, x509.ExtensionNotFound):
        return "it cannot be read"
    if now >= renewed_at(leaf.not_valid_before_utc, leaf.not_valid_after_utc):
        return "two thirds of its life are over"
    if not believed >= {authority.certificate for _, authority in authorities.known}:
        return "there is another authority to believe"
    if not authorities.signed(leaf, now):
        return "another authority signs now"
    return "" if shown >= set(names) else "there are other names"


def _names(leaf: x509.Certificate) -> set[str]:
    """The hosts that a certificate is for; a client's is for none."""
    purposes = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    if ExtendedKeyUsageOID.SERVER_AUTH not in purposes:
        return set()
    hosts = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = {str(each) for each in hosts.get_values_for_type(x509.IPAddress)}
    return addresses | set(hosts.get_values_for_type(x509.DNSName))


def server_names(revision: str, *, namespace: str = "") -> tuple[str, ...]:
    """The names under which a revision is called: on this machine, and as a Service.

    >>> server_names("fn-1", namespace="polyver-system")[-1]
    'fn-1.polyver-system.svc.cluster.local'
    """
    local = ("localhost", "127.0.0.1", "::1", revision)
    if not namespace:
        return local
    service = f"{revision}.{namespace}"
    return (*local, service, f"{service}.svc", f"{service}.svc.cluster.local")
