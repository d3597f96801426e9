"""Certificates for servers and clients.

All keys are elliptic-curve keys, because creating RSA keys would make the start slow.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID_FOR = datetime.timedelta(days=365)
AUTHORITY_VALID_FOR = 10 * VALID_FOR
VALID_SINCE = datetime.timedelta(hours=1)
"""The validity of a certificate begins this long before its creation.

So a machine whose clock is up to one hour behind accepts the certificate immediately.
"""


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, both in PEM format."""

    certificate: bytes
    key: bytes


class PemPair(msgspec.Struct, frozen=True):
    """A certificate and its private key in PEM format as strings, for JSON documents."""

    certificate: str
    key: str

    @classmethod
    def of(cls, pair: Pair) -> Self:
        return cls(pair.certificate.decode(), pair.key.decode())

    @property
    def pair(self) -> Pair:
        return Pair(self.certificate.encode(), self.key.encode())

    @property
    def serial(self) -> str:
        return f"{self._read().serial_number:x}"

    @property
    def since(self) -> datetime.datetime:
        return self._read().not_valid_before_utc

    @property
    def until(self) -> datetime.datetime:
        return self._read().not_valid_after_utc

    def _read(self) -> x509.Certificate:
        return x509.load_pem_x509_certificate(self.certificate.encode())


msgspec.json.Decoder(PemPair)  # prepared at import: see polyver.kube.objects.codec.prepare


@dataclass(frozen=True)
class Authority:
    """A certificate authority (CA), which signs certificates for servers and clients."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def create(cls, name: str, *, now: datetime.datetime) -> Self:
        key = new_key()
        subject = _name(name, ())
        # Python 3.13 and later refuse a CA without these extensions.
        certificate = (
            _builder(subject, subject, key, now, AUTHORITY_VALID_FOR)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(certificates=True), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .sign(key, hashes.SHA256())
        )
        return cls(certificate, key)

    @classmethod
    def load(cls, kept: Pair) -> Self:
        """Load a stored CA; raise ValueError if its key does not belong to its certificate."""
        key = load_key(kept.key)
        certificate = x509.load_pem_x509_certificate(kept.certificate)
        if certificate.public_key() != key.public_key():
            raise ValueError("the certificate does not match the key")
        return cls(certificate, key)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def pair(self) -> Pair:
        """The certificate and the key of the CA, in the form in which they are stored."""
        return Pair(self.pem, key_pem(self.key))

    @property
    def since(self) -> datetime.datetime:
        """The time from which the CA is valid."""
        return self.certificate.not_valid_before_utc

    @property
    def until(self) -> datetime.datetime:
        """The time at which the CA expires.

        No certificate that it signed is valid after this time.
        """
        return self.certificate.not_valid_after_utc

    def server(self, *hosts: str, now: datetime.datetime) -> Pair:
        names = x509.SubjectAlternativeName([_host(host) for host in hosts])
        return self._issue(hosts[0], (), ExtendedKeyUsageOID.SERVER_AUTH, [names], now)

    def client(self, user: str, *groups: str, now: datetime.datetime) -> Pair:
        return self._issue(user, groups, ExtendedKeyUsageOID.CLIENT_AUTH, [], now)

    def _issue(
        self,
        name: str,
        groups: Sequence[str],
        purpose: x509.ObjectIdentifier,
        extensions: Sequence[x509.ExtensionType],
        now: datetime.datetime,
    ) -> Pair:
        key = new_key()
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        builder = _builder(_name(name, groups), self.certificate.subject, key, now, VALID_FOR)
        for extension in [x509.ExtendedKeyUsage([purpose]), issuer, *extensions]:
            builder = builder.add_extension(extension, critical=False)
        builder = builder.add_extension(_usage(certificates=False), critical=True)
        certificate = builder.sign(self.key, hashes.SHA256())
        return Pair(certificate.public_bytes(serialization.Encoding.PEM), key_pem(key))


def new_key() -> ec.EllipticCurvePrivateKey:
    """Create a private key."""
    return ec.generate_private_key(ec.SECP256R1())


def load_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """Load a stored private key; raise ValueError if it is not an elliptic-curve key."""
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("the key is not an elliptic-curve key")  # noqa: TRY004 - its content is wrong
    return key


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Encode a private key as PEM."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime.datetime,
    lasting: datetime.timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - VALID_SINCE)
        .not_valid_after(now + lasting)
    )


def _name(common: str, organizations: Sequence[str]) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(*, certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not certificates,
        key_cert_sign=certificates,
        crl_sign=certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
