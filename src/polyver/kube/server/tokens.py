"""Signed tokens of service accounts: JSON Web Tokens with one algorithm and one key.

The header of a token names an algorithm, but the server ignores this name. So a client cannot
choose the algorithm.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec

__all__ = ["ISSUER", "BadToken", "ClaimReference", "Claims", "PrivateClaims", "TokenSigner"]

ISSUER = "https://kubernetes.default.svc.cluster.local"
_HALF = 32
_REMEMBERED = 1024


class BadToken(Exception):
    """Raised if a token is not valid.

    The message is empty if the token is from another issuer or has another format.
    """


class ClaimReference(msgspec.Struct, frozen=True, omit_defaults=True):
    """An object that a token names: its name and its uid."""

    name: str
    uid: str = ""


class PrivateClaims(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The part of the claims that names the service account, and the object of a bound token."""

    namespace: str
    node: ClaimReference | None = None
    pod: ClaimReference | None = None
    secret: ClaimReference | None = None
    serviceaccount: ClaimReference


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a token. Times are in seconds since 1970."""

    aud: tuple[str, ...]
    exp: int
    iat: int
    iss: str = ISSUER
    jti: str
    about: PrivateClaims = msgspec.field(name="kubernetes.io")
    nbf: int
    sub: str


class _Issued(msgspec.Struct):
    iss: str = ""


_claims = msgspec.json.Decoder(Claims)
_issued = msgspec.json.Decoder(_Issued)


class TokenSigner:
    """Signs tokens with a private key, and checks them. The key is loaded at the first use."""

    def __init__(self, key: Callable[[], bytes]) -> None:
        self._pem = key
        self._read = lru_cache(_REMEMBERED)(self._verified)

    def sign(self, claims: Claims) -> str:
        """Return the token that contains these claims and their signature."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, utils

        header = msgspec.json.encode({"alg": "ES256", "kid": self._key_id})
        text = f"{_encoded(header)}.{_encoded(msgspec.json.encode(claims))}"
        signed = self._key.sign(text.encode(), ec.ECDSA(hashes.SHA256()))
        halves = (each.to_bytes(_HALF, "big") for each in utils.decode_dss_signature(signed))
        return f"{text}.{_encoded(b''.join(halves))}"

    def read(self, token: str) -> Claims:
        """Check the signature of a token and return its claims.

        The caller must check the claims.
        """
        try:
            _, content, _ = token.split(".")
            issuer = _issued.decode(_decoded(content)).iss
        except (ValueError, msgspec.MsgspecError):
            raise BadToken from None
        if issuer != ISSUER:
            raise BadToken
        return self._read(token)

    def _verified(self, token: str) -> Claims:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, utils

        text, _, signature = token.rpartition(".")
        try:
            halves = _decoded(signature)
            pair = int.from_bytes(halves[:_HALF], "big"), int.from_bytes(halves[_HALF:], "big")
            signed = utils.encode_dss_signature(*pair)
            self._key.public_key().verify(signed, text.encode(), ec.ECDSA(hashes.SHA256()))
            return _claims.decode(_decoded(text.partition(".")[2]))
        except (InvalidSignature, ValueError, msgspec.MsgspecError):
            raise BadToken("go-jose/go-jose: error in cryptographic primitive") from None

    @cached_property
    def _key(self) -> ec.EllipticCurvePrivateKey:
        from polyver.kube.http.tls import load_key

        return load_key(self._pem())

    @cached_property
    def _key_id(self) -> str:
        from cryptography.hazmat.primitives import serialization

        public = self._key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return _encoded(hashlib.sha256(public).digest())


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    if not text.isascii():
        raise binascii.Error("not base64")
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
