"""The webhook's own authority and certificate, kept in a folder, and rotated before they end.

All of it is in one file, which is replaced as a whole: a process that is killed between two steps
goes on with the second. The other files are written from it, for those who read them.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec
from cryptography import x509

from polyver.objects.codec import encode_json
from polyver.serving.files import FolderFailed, private_folder, write_file
from polyver.tls import Authority, Pair
from polyver.webhook.rotation import (
    AuthorityState,
    Create,
    Drop,
    Issue,
    LeafState,
    Observe,
    Publish,
    State,
    Step,
    plan,
)

__all__ = ["BundleFile", "Certificates", "Publisher"]

_OBSERVED_AFTER = datetime.timedelta(days=1)
_MOST_STEPS = 16


class Publisher(Protocol):
    """Brings the bundle of authorities to those who must believe the certificate."""

    def publish(self, bundle: bytes) -> None: ...

    def observed(self, bundle: bytes, lasting: datetime.timedelta) -> bool:
        """Whether all have this bundle, which was published that long ago."""
        ...


@dataclass(frozen=True, slots=True)
class BundleFile:
    """A file that people copy into `caBundle`.

    Nobody tells when they have, so they are given a day.
    """

    path: Path

    def publish(self, bundle: bytes) -> None:
        write_file(self.path, bundle)

    def observed(self, bundle: bytes, lasting: datetime.timedelta) -> bool:
        return lasting >= _OBSERVED_AFTER and self.path.read_bytes() == bundle


class _Pair(msgspec.Struct):
    certificate: str
    key: str


class _Leaf(msgspec.Struct):
    pair: _Pair
    signer: str
    names: list[str]
    since: datetime.datetime

    def state(self) -> LeafState:
        return LeafState(self.signer, frozenset(self.names), self.since, _until(self.pair))


class _Kept(msgspec.Struct):
    """What the file holds."""

    authorities: list[_Pair] = []
    leaf: _Leaf | None = None
    published: list[str] = []
    published_at: datetime.datetime | None = None
    observed: bool = False

    @property
    def serials(self) -> list[str]:
        return [_serial(each) for each in self.authorities]

    @property
    def bundle(self) -> bytes:
        """The newest first: it is the one that is looked for most."""
        return "".join(each.certificate for each in reversed(self.authorities)).encode()

    def state(self) -> State:
        return State(
            tuple(AuthorityState(_serial(each), _until(each)) for each in self.authorities),
            self.leaf.state() if self.leaf else None,
            tuple(self.published),
            self.observed,
        )


class Certificates:
    """Those in one folder, for one set of names."""

    def __init__(
        self, folder: Path, names: Sequence[str], publisher: Publisher | None = None
    ) -> None:
        self._folder = folder
        # The first becomes the common name, which may have 64 letters at most.
        self._names = sorted(names, key=len)
        self._publisher = publisher or BundleFile(self.bundle_file)

    @property
    def bundle_file(self) -> Path:
        return self._folder / "ca.crt"

    @property
    def certificate_file(self) -> Path:
        return self._folder / "tls.crt"

    @property
    def key_file(self) -> Path:
        return self._folder / "tls.key"

    @property
    def _file(self) -> Path:
        return self._folder / "certificates.json"

    def advance(self, now: datetime.datetime) -> list[Step]:
        """Take every step that is to be taken now; returns those that were."""
        taken: list[Step] = []
        try:
            private_folder(self._folder)
            kept = self._read()
            while len(taken) < _MOST_STEPS and (step := plan(kept.state(), self._names, now)):
                if not self._take(kept, step, now):
                    break
                write_file(self._file, encode_json(kept))
                taken.append(step)
            self._write(kept)
        except OSError as error:
            problem = f"{self._folder} cannot be used: {error.strerror or error}"
            raise FolderFailed(problem, hint="choose another with --certificates") from None
        return taken

    def _read(self) -> _Kept:
        if not self._file.exists():
            return _Kept()
        try:
            kept = msgspec.json.decode(self._file.read_bytes(), type=_Kept)
            kept.state()
        except (msgspec.MsgspecError, UnicodeDecodeError, ValueError):
            hint = "move it away, and trust the new ca.crt"
            raise FolderFailed(f"{self._file} is not what was written there", hint=hint) from None
        return kept

    def _take(self, kept: _Kept, step: Step, now: datetime.datetime) -> bool:
        """Take a step; False if it has to be waited for."""
        match step:
            case Create():
                kept.authorities.append(_texts(Authority.create("polyver-webhook", now=now).pair))
                kept.observed = False
            case Publish():
                self._publisher.publish(kept.bundle)
                kept.published, kept.published_at = list(step.serials), now
                kept.observed = False
            case Observe():
                lasting = now - (kept.published_at or now)
                kept.observed = self._publisher.observed(kept.bundle, lasting)
                return kept.observed
            case Issue():
                kept.leaf = self._issued(kept, step.signer, now)
            case Drop():
                kept.authorities.pop(kept.serials.index(step.serial))
        return True

    def _issued(self, kept: _Kept, signer: str, now: datetime.datetime) -> _Leaf:
        found = kept.authorities[kept.serials.index(signer)]
        authority = Authority.load(Pair(found.certificate.encode(), found.key.encode()))
        pair = _texts(authority.server(*self._names, now=now))
        return _Leaf(pair, signer, self._names, now)

    def _write(self, kept: _Kept) -> None:
        """The files for others, as far as they say something else."""
        if kept.leaf is None:
            return
        pair = kept.leaf.pair
        contents = {
            self.bundle_file: kept.bundle,
            self.key_file: pair.key.encode(),
            self.certificate_file: pair.certificate.encode(),
        }
        for file, content in contents.items():
            if not file.exists() or file.read_bytes() != content:
                write_file(file, content)


def _texts(pair: Pair) -> _Pair:
    return _Pair(pair.certificate.decode(), pair.key.decode())


def _read_certificate(pair: _Pair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate.encode())


def _serial(pair: _Pair) -> str:
    return f"{_read_certificate(pair).serial_number:x}"


def _until(pair: _Pair) -> datetime.datetime:
    return _read_certificate(pair).not_valid_after_utc
