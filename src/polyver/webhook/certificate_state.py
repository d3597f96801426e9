"""What is kept of authorities and a certificate, wherever it is kept, and what each step changes.

It is one document, which is replaced as a whole: whoever ends between two steps, or loses a race
for one, goes on with what the document says.
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
    """The certificate that is shown."""

    pair: PemPair
    signer: str
    names: list[str]
    since: datetime.datetime

    def state(self) -> LeafState:
        return LeafState(self.signer, frozenset(self.names), self.since, self.pair.until)


class CertificateDocument(msgspec.Struct):
    """The document."""

    authorities: list[PemPair] = []
    leaf: Leaf | None = None
    published: list[str] = []
    published_at: datetime.datetime | None = None
    observed: bool = False

    @classmethod
    def decode(cls, content: bytes) -> CertificateDocument:
        """What was written; ValueError if it was not."""
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
        """The newest first: it is the one that is looked for most."""
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
        """Whether the certificate is not yet signed by the newest authority."""
        return self.leaf is not None and self.leaf.signer not in self.serials[-1:]

    def lasting(self, now: datetime.datetime) -> datetime.timedelta:
        """How long ago the bundle was published."""
        return now - (self.published_at or now)

    def take(self, step: Step, names: Sequence[str], now: datetime.datetime) -> None:
        """Note a step; publishing and observing have been done by then."""
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
        # The first becomes the common name, which may have 64 letters at most.
        ordered = sorted(names, key=len)
        return Leaf(PemPair.of(authority.server(*ordered, now=now)), signer, ordered, now)


_kept = msgspec.json.Decoder(CertificateDocument)
