"""Stores copies of package contents, by their digests.

So a user who edits a package does not change the revisions that were made from it before.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from polyver.compositions.runtimes.process._digests import copy_folder, file_digest, folder_digest
from polyver.compositions.runtimes.process._packages import (
    Folder,
    PackageUnusable,
    Requirement,
    Source,
    Wheel,
)
from polyver.compositions.runtimes.process._pip import EnvironmentInstaller
from polyver.kube.http.files import FolderFailed, private_folder, write_file
from polyver.kube.http.worker_threads import DaemonThreadPool
from polyver.kube.objects.codec import encode_json

__all__ = ["PackageCopies", "hex_of"]

_UNFINISHED_FOR = 3600.0


class _Fetched(msgspec.Struct, frozen=True):
    """Record of a downloaded wheel: the requirement of a user, and the digest of the wheel."""

    requirement: str
    digest: str


_fetched = msgspec.json.Decoder(_Fetched)


def hex_of(digest: str) -> str:
    """Return the hexadecimal digits of a digest, for file names: `sha256:ab…` becomes `ab…`."""
    algorithm, _, found = digest.partition(":")
    if algorithm != "sha256" or len(found) != 64 or set(found) - set("0123456789abcdef"):
        raise PackageUnusable(f'"{digest}" is not the digest of a folder or a wheel')
    return found


class PackageCopies:
    """A folder with copies of package contents."""

    def __init__(
        self, folder: Path, logs: Path, installer: EnvironmentInstaller, aside: DaemonThreadPool
    ) -> None:
        self._folder = folder
        self._logs = logs
        self._installer = installer
        self._aside = aside

    async def keep(self, source: Source) -> str:
        """Store a copy of a package's content. Return the digest of the copy."""
        try:
            match source:
                case Folder(path):
                    return await self._aside.run(lambda: self._keep_folder(path))
                case Wheel(path):
                    return await self._aside.run(lambda: self._keep_wheel(path))
                case Requirement():
                    return await self._fetch(source)
        except OSError as error:
            fact = f"nothing can be stored in {self._folder}: {error.strerror or error}"
            raise FolderFailed(fact) from None

    def kept(self, digest: str) -> Path | None:
        """Return the copy with this digest, which is a folder or a wheel; None if there is none."""
        folder = self._folder / hex_of(digest)
        if not folder.is_dir():
            return None
        with suppress(OSError):
            os.utime(folder)  # least recently used copies are removed first
        wheels = list(folder.glob("*.whl")) if not (folder / "source").is_dir() else []
        return wheels[0] if wheels else folder / "source"

    def tidy(self) -> None:
        """Remove the files of killed processes, and the records of wheels that were removed."""
        long_ago = time.time() - _UNFINISHED_FOR
        for each in self._folder.glob(".*"):
            with suppress(OSError):
                if each.stat().st_mtime < long_ago:
                    shutil.rmtree(each, ignore_errors=True)
        for each in self._folder.glob("requirement-*.json"):
            if self._fetched(each) is None:
                each.unlink(missing_ok=True)

    def _keep_folder(self, path: Path) -> str:
        digest = folder_digest(path)
        if self.kept(digest):
            return digest
        unfinished = self._unfinished()
        try:
            digest = copy_folder(path, unfinished / "source")
            self._put(unfinished, digest)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        return digest

    def _keep_wheel(self, path: Path) -> str:
        unfinished = self._unfinished()
        try:
            copy = Path(shutil.copyfile(path, unfinished / path.name))
            digest = file_digest(copy)
            self._put(unfinished, digest)
        except OSError as error:
            fact = f"{path} cannot be copied: {error.strerror or error}"
            raise PackageUnusable(fact) from None
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        return digest

    async def _fetch(self, requirement: Requirement) -> str:
        """Download the wheel of a requirement and store it. Return the digest of the wheel.

        If polyver has already stored a wheel for this requirement, use that wheel, even if the
        package index now offers another one.
        """
        name = hashlib.sha256(requirement.text.encode()).hexdigest()
        record = self._folder / f"requirement-{name}.json"
        if (digest := self._fetched(record)) is not None and self.kept(digest):
            return digest
        unfinished = self._unfinished()
        try:
            log = self._logs / f"fetch-{name[:12]}.log"
            await self._installer.download(requirement.text, unfinished, log)
            wheels = list(unfinished.glob("*.whl"))
            if len(wheels) != 1:
                raise PackageUnusable(f"there is no wheel of {requirement.text}")
            digest = await self._aside.run(lambda: self._keep_wheel(wheels[0]))
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        write_file(record, encode_json(_Fetched(requirement.text, digest)))
        return digest

    def _fetched(self, record: Path) -> str | None:
        try:
            digest = _fetched.decode(record.read_bytes()).digest
            return digest if (self._folder / hex_of(digest)).is_dir() else None
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, PackageUnusable):
            return None

    def _unfinished(self) -> Path:
        folder = self._folder / f".{os.getpid()}-{secrets.token_hex(4)}"
        private_folder(folder)
        return folder

    def _put(self, unfinished: Path, digest: str) -> None:
        final = self._folder / hex_of(digest)
        try:
            unfinished.rename(final)
        except OSError:
            if not final.is_dir():
                # if the copy exists, another process has stored the same content
                raise
