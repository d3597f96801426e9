"""The webhook server's own CA and certificate in a folder, rotated before they expire.

One file has the whole state, and is replaced as a whole. polyver copies the CA bundle, the
certificate and the key from it to further files, for other programs.
"""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from polyver.kube.http.background import repeated
from polyver.kube.http.files import FolderFailed, private_folder, refusal, write_file
from polyver.kube.http.logs import Log
from polyver.webhook.certificate_state import CertificateDocument
from polyver.webhook.rotation import Observe, Publish, Step, plan
from polyver.webhook.served_certificate import OLD_PAIR, FilePairs, LoadedPair

__all__ = ["BundleFile", "Publisher", "WebhookCertificates"]

_OBSERVED_AFTER = datetime.timedelta(days=1)
_ROTATE_EVERY = 3600.0
_MOST_STEPS = 16


class Publisher(Protocol):
    """Distributes the CA bundle to all clients that must trust the certificate."""

    def publish(self, bundle: bytes) -> None: ...

    def observed(self, bundle: bytes, lasting: datetime.timedelta) -> bool:
        """Report whether all clients trust the bundle, which was published a time `lasting` ago."""
        ...


@dataclass(frozen=True, slots=True)
class BundleFile:
    """A file with the CA bundle, from which people copy the bundle to `caBundle`.

    polyver cannot observe whether people have copied it. So it waits for a day, and then assumes
    that they have.
    """

    path: Path

    def publish(self, bundle: bytes) -> None:
        write_file(self.path, bundle)

    def observed(self, bundle: bytes, lasting: datetime.timedelta) -> bool:
        return lasting >= _OBSERVED_AFTER and self.path.read_bytes() == bundle


class WebhookCertificates:
    """The CAs and the certificate in one folder; the certificate is valid for the hosts `names`."""

    def __init__(
        self, folder: Path, names: Sequence[str], publisher: Publisher | None = None
    ) -> None:
        self._folder = folder
        self._names = names
        self._publisher = publisher or BundleFile(self.bundle_file)
        self._files = FilePairs(self.certificate_file, self.key_file)

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

    # The interface of a PairSource.

    @property
    def shown(self) -> LoadedPair:
        return self._files.shown

    @property
    def trust(self) -> str:
        return f"CA bundle in {self.bundle_file.absolute()}"

    async def start(self) -> None:
        begun = self._file.exists()
        steps = await asyncio.to_thread(self.advance, _now())
        if begun and steps:
            taken = ", ".join(type(step).__name__.lower() for step in steps)
            Log().warning("certificates recreated", folder=str(self._folder), steps=taken)
        await self._files.start()

    async def follow(self, log: Log) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._files.follow(log))
            rotate = partial(self._rotate, log)
            group.create_task(repeated(rotate, every=_ROTATE_EVERY, log=log, failing=OLD_PAIR))

    async def _rotate(self, log: Log) -> None:
        for step in await asyncio.to_thread(self.advance, _now()):
            log.info("certificates rotated", step=type(step).__name__.lower())

    # Rotation.

    def advance(self, now: datetime.datetime) -> list[Step]:
        """Take all steps of the rotation that are due now; return the steps that were taken."""
        taken: list[Step] = []
        try:
            private_folder(self._folder)
            kept = self._read()
            while len(taken) < _MOST_STEPS and (step := plan(kept.state(), self._names, now)):
                if not self._act(kept, step, now):
                    break
                kept.take(step, self._names, now)
                write_file(self._file, kept.encode())
                taken.append(step)
            self._write(kept)
        except OSError as error:
            hint = "choose another folder with --certificates"
            raise FolderFailed(refusal(error, self._folder), hint=hint) from None
        return taken

    def _read(self) -> CertificateDocument:
        if not self._file.exists():
            return CertificateDocument()
        try:
            return CertificateDocument.decode(self._file.read_bytes())
        except ValueError:
            hint = "move it, and trust the new ca.crt"
            raise FolderFailed(f"{self._file} has unexpected content", hint=hint) from None

    def _act(self, kept: CertificateDocument, step: Step, now: datetime.datetime) -> bool:
        """Do the work of a step that is not a change of the document, such as to publish a bundle.

        Return False if the rotation must wait before this step.
        """
        match step:
            case Publish():
                self._publisher.publish(kept.bundle)
            case Observe():
                return self._publisher.observed(kept.bundle, kept.lasting(now))
        return True

    def _write(self, kept: CertificateDocument) -> None:
        """Write the files for other programs, but only those files whose content has changed."""
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


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
