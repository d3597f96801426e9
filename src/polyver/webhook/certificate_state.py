"""The document with the CAs and the serving certificate, and the changes that rotation makes.

The CAs and the certificate are in one document, which is replaced as a whole. If a process stops
between two steps of the rotation, it later continues from the state in the document. So does a
replica if another replica has taken the last step.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import msgspec

from polyver.kube.http.tls import Authority, PemPair
from polyver.kube.objects.codec import encode_json
from polyver.webhook.rotation import (
    AuthorityState,
    Create,
    Drop,
    Issue,
    LeafState,
    Observe,
    Publish,
    RotationState,
    Step,
)

__all__ = ["CertificateDocument", "Leaf"]


class Leaf(msgspec.Struct, frozen=True):
    """The serving certificate, with its key and the serial number of the CA that signed it."""

    pair: PemPair
    signer: str
    names: list[str]
    since: datetime.datetime

    def state(self) -> LeafState:
        return LeafState(self.signer, frozenset(self.names), self.since, self.pair.until)


class CertificateDocument(msgspec.Struct):
    """The stored document: the CAs, the serving certificate, and the progress of the rotation."""

    authorities: list[PemPair] = []
    leaf: Leaf | None = None
    published: list[str] = []
    published_at: datetime.datetime | None = None
    observed: bool = False

    @classmethod
    def decode(cls, content: bytes) -> CertificateDocument:
        """Decode a document; raise ValueError if it is not valid."""
        try:
            kept = _kept.decode(content)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ValueError(str(error)) from None
        kept.state()
        return kept

    def encode(self) -> bytes:
        return encode_json(self)

    @property
    def serials(self) -> list[str]:
        return [each.serial for each in self.authorities]

    @property
    def bundle(self) -> bytes:
        """The CA certificates, the newest first, because clients need the newest CA most often."""
        return "".join(each.certificate for each in reversed(self.authorities)).encode()

    def state(self, *, shown: bool = False) -> RotationState:
        return RotationState(
            tuple(AuthorityState(each.serial, each.until, each.since) for each in self.authorities),
            self.leaf.state() if self.leaf else None,
            tuple(self.published),
            self.observed,
            shown,
        )

    @property
    def is_to_switch(self) -> bool:
        """True if another CA than the newest one has signed the serving certificate."""
        return self.leaf is not None and self.leaf.signer not in self.serials[-1:]

    def lasting(self, now: datetime.datetime) -> datetime.timedelta:
        """Return how long ago the bundle was published."""
        return now - (self.published_at or now)

    def take(self, step: Step, names: Sequence[str], now: datetime.datetime) -> None:
        """Make the changes of a rotation step in the document.

        The caller must first do the other work of the step, such as publishing the bundle.
        """
        match step:
            case Create():
                made = Authority.create("polyver-webhook", now=now).pair
                self.authorities.append(PemPair.of(made))
                self.observed = False
            case Publish():
                self.published, self.published_at = list(step.serials), now
                self.observed = False
            case Observe():
                self.observed = True
            case Issue():
                self.leaf = self._issued(step.signer, names, now)
            case Drop():
                self.authorities.pop(self.serials.index(step.serial))

    def _issued(self, signer: str, names: Sequence[str], now: datetime.datetime) -> Leaf:
        found = self.authorities[self.serials.index(signer)]
        authority = Authority.load(found.pair)
        # The first name becomes the common name, which may have at most 64 characters.
        ordered = sorted(names, key=len)
        return Leaf(PemPair.of(authority.server(*ordered, now=now)), signer, ordered, now)


_kept = msgspec.json.Decoder(CertificateDocument)
