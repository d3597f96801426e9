"""The environments in which functions run as processes. Each package digest has one environment.

An environment is a folder with a copy of the package, with a Python virtual environment in which
the package is installed, or with both. polyver builds it once and keeps it. The record file of an
environment is written last: the environment is complete if this file exists. So after a crash,
polyver recognizes an incomplete environment. File locks ensure that only one process builds or
removes an environment, and that an environment in use is never removed.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path
from urllib.parse import unquote, urlparse

import msgspec

from polyver.compositions.runtimes.process._locks import FileLock
from polyver.compositions.runtimes.process._packages import PackageUnusable
from polyver.compositions.runtimes.process._pip import EnvironmentInstaller, bin_of, libraries_of
from polyver.compositions.runtimes.process._projects import (
    FunctionCommand,
    FunctionProject,
    command_of,
    read_project,
)
from polyver.compositions.runtimes.process._sources import hex_of
from polyver.kube.http.files import private_folder, write_file
from polyver.kube.http.worker_threads import DaemonThreadPool
from polyver.kube.objects.codec import encode_json

__all__ = ["Environments", "FunctionEnvironment"]

_ASK_EVERY = 0.1
_AT_A_TIME = 2
_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor} of {sys.base_prefix}"


class _Record(msgspec.Struct, frozen=True):
    """The record of a complete environment, which is stored as a file."""

    at: str
    """The folder of the environment. An environment does not work in another folder."""
    python: str
    """The version and location of the Python with which the environment was created.

    Empty if no Python project was installed in it.
    """
    command: FunctionCommand


_record = msgspec.json.Decoder(_Record)


@dataclass(frozen=True, slots=True)
class FunctionEnvironment:
    """The environment of a function. It has a lock until `release` is called."""

    folder: Path
    command: FunctionCommand
    _lock: FileLock

    @property
    def source(self) -> Path | None:
        """The copy of the package's folder, in which the command of the package runs.

        None if the environment has no copy.
        """
        found = self.folder / "source"
        return found if found.is_dir() else None

    @property
    def programs(self) -> Path | None:
        """The folder with the installed programs; None if nothing was installed."""
        found = bin_of(_installed(self.folder))
        return found if found.is_dir() else None

    def release(self) -> None:
        """Release the lock, after which the environment may be removed."""
        self._lock.release()


class Environments:
    """The folder with all environments."""

    def __init__(
        self, folder: Path, logs: Path, installer: EnvironmentInstaller, aside: DaemonThreadPool
    ) -> None:
        self._folder = folder
        self._logs = logs
        self._installer = installer
        self._aside = aside
        self._builds = asyncio.Semaphore(_AT_A_TIME)

    async def take(self, digest: str, source: Path | None) -> FunctionEnvironment | None:
        """Return the environment for a package digest, locked. Build it from `source` if necessary.

        If `source` is None and the environment does not exist, return None. If another task or
        process builds the environment, wait until it is complete.
        """
        while True:
            if (found := self._use(digest)) is not None:
                return found
            if source is None:
                return None
            lock = FileLock.take(self._lock_of(digest), shared=False)
            if lock is None:
                await asyncio.sleep(_ASK_EVERY)
                continue
            try:
                if self._record(digest) is None:
                    async with self._builds:
                        await self._build(digest, source)
            finally:
                lock.release()

    def _use(self, digest: str) -> FunctionEnvironment | None:
        lock = FileLock.take(self._lock_of(digest), shared=True)
        if lock is None:
            return None
        record = self._record(digest)
        if record is None:
            lock.release()
            return None
        with suppress(OSError):
            os.utime(self._record_of(digest))  # least recently used environments are removed first
        return FunctionEnvironment(Path(record.at), record.command, lock)

    def _lock_of(self, digest: str) -> Path:
        return self._folder / f"{hex_of(digest)}.lock"

    def _record_of(self, digest: str) -> Path:
        return self._folder / f"{hex_of(digest)}.json"

    def _record(self, digest: str) -> _Record | None:
        """Return the record of the environment for a digest; None if it cannot be used."""
        try:
            found = _record.decode(self._record_of(digest).read_bytes())
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None
        at = Path(found.at)
        if at.parent != self._folder or not at.is_dir() or found.python not in ("", _PYTHON):
            return None
        return found if not found.python or (bin_of(_installed(at)) / "python").exists() else None

    async def _build(self, digest: str, source: Path) -> None:
        folder = self._folder / f"{hex_of(digest)}.{secrets.token_hex(4)}"
        log = self._logs / f"build-{hex_of(digest)[:12]}.log"
        try:
            # Remove incomplete environments. A process that was killed during a build has left
            # them.
            await self._aside.run(lambda: self._remove_folders(digest))
            private_folder(folder)
            command, is_python = await self._filled(folder, source, log)
            record = _Record(str(folder), _PYTHON if is_python else "", command)
            write_file(self._record_of(digest), encode_json(record))
        except BaseException as error:
            await self._aside.run(lambda: _remove(folder))
            if not isinstance(error, OSError):
                raise
            raise PackageUnusable(f"{folder} cannot be made: {error.strerror or error}") from None

    async def _filled(self, folder: Path, source: Path, log: Path) -> tuple[FunctionCommand, bool]:
        is_wheel = source.suffix == ".whl" and source.is_file()
        project = FunctionProject(is_python=True) if is_wheel else read_project(source)
        if project.command is not None:
            await self._aside.run(lambda: shutil.copytree(source, folder / "source"))
        if not project.is_python:
            assert project.command is not None
            return project.command, False
        environment, what = _installed(folder), source
        if not is_wheel:
            # The installation may create files. The stored copy of the package must not contain
            # them.
            what = folder / "build"
            await self._aside.run(lambda: shutil.copytree(source, folder / "build"))
        await self._installer.make(environment, log)
        await self._installer.install(environment, str(what), log)
        if not is_wheel:
            await self._aside.run(lambda: shutil.rmtree(folder / "build"))
        return project.command or _command_in(environment, what), True

    async def tidy(self, *, keep: int, sources: Path) -> None:
        """Remove incomplete environments, and old ones that are not in use.

        Of the environments that are not in use, the `keep` most recently used ones stay.
        """
        await self._aside.run(lambda: self._tidy(keep, sources))

    def _tidy(self, keep: int, sources: Path) -> None:
        known = {*self._digests(), *(f"sha256:{each.name}" for each in sources.glob("?" * 64))}
        by_age = sorted(known, key=lambda digest: self._last_used(digest, sources), reverse=True)
        unused = [digest for digest in by_age if self._tidied(digest)]
        for digest in unused[keep:]:
            self._forget(digest, sources)

    def _digests(self) -> Iterator[str]:
        for each in self._folder.iterdir():
            name = each.name.partition(".")[0]
            with suppress(PackageUnusable):
                hex_of(f"sha256:{name}")
                yield f"sha256:{name}"

    def _last_used(self, digest: str, sources: Path) -> float:
        times = [0.0]
        for each in (self._record_of(digest), sources / hex_of(digest)):
            with suppress(OSError):
                times.append(each.stat().st_mtime)
        return max(times)

    def _tidied(self, digest: str) -> bool:
        """Remove incomplete environments of a digest. Return False if one of them is in use."""
        lock = FileLock.take(self._lock_of(digest), shared=False)
        if lock is None:
            return False
        try:
            record = self._record(digest)
            self._remove_folders(digest, but=record.at if record else "")
        finally:
            lock.release()
        return True

    def _forget(self, digest: str, sources: Path) -> None:
        lock = FileLock.take(self._lock_of(digest), shared=False)
        if lock is None:
            return
        try:
            self._record_of(digest).unlink(missing_ok=True)
            self._remove_folders(digest)
            _remove(sources / hex_of(digest))
        finally:
            lock.remove()

    def _remove_folders(self, digest: str, *, but: str = "") -> None:
        for each in self._folder.glob(f"{hex_of(digest)}.*"):
            if each.is_dir() and str(each) != but:
                _remove(each)


def _installed(folder: Path) -> Path:
    return folder / "python"


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _command_in(environment: Path, installed: Path) -> FunctionCommand:
    """Return the command of the Python distribution that was installed from a folder or a wheel."""
    libraries = libraries_of(environment)
    has_module = (libraries / "function" / "main.py").is_file()
    found = next((each for each in _local(libraries) if _origin(each) == installed), None)
    if found is None:
        if has_module:
            return command_of("it", [], has_module=True)
        raise PackageUnusable("nothing was installed")
    scripts = [each.name for each in found.entry_points if each.group == "console_scripts"]
    return command_of(found.name, scripts, has_module=has_module)


def _local(libraries: Path) -> Iterator[Distribution]:
    yield from distributions(path=[str(libraries)])


def _origin(distribution: Distribution) -> Path | None:
    """Return the path from which a distribution was installed; None for a package index."""
    try:
        found = _direct.decode(distribution.read_text("direct_url.json") or "")
    except msgspec.MsgspecError:
        return None
    return Path(unquote(urlparse(found.url).path))


class _Direct(msgspec.Struct):
    url: str


_direct = msgspec.json.Decoder(_Direct)
