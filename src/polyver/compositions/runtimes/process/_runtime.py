"""Runtime that serves each function revision by a child process of polyver."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from polyver.client import Clock, SystemClock
from polyver.compositions.calls import CertificateFolder, Endpoint
from polyver.compositions.lineages import content_digest
from polyver.compositions.runtimes.external import reached
from polyver.compositions.runtimes.interface import DesiredRevision, ServingStatus
from polyver.compositions.runtimes.metrics import Figures
from polyver.compositions.runtimes.process._children import ProcessRuntimeContext
from polyver.compositions.runtimes.process._environments import Environments, FunctionEnvironment
from polyver.compositions.runtimes.process._locks import FileLock
from polyver.compositions.runtimes.process._memory import usual_memory
from polyver.compositions.runtimes.process._packages import Packages, PackageUnusable
from polyver.compositions.runtimes.process._pip import EnvironmentInstaller
from polyver.compositions.runtimes.process._restarts import Timing
from polyver.compositions.runtimes.process._revision import Serving
from polyver.compositions.runtimes.process._sources import PackageCopies
from polyver.kube.http.files import FolderFailed, private_folder, refusal
from polyver.kube.http.logs import Log
from polyver.kube.http.worker_threads import DaemonThreadPool

__all__ = ["PackageChanged", "ProcessRuntime"]

_KEPT = 16
_LOGS_KEPT = 200


class PackageChanged(PackageUnusable):
    """The content of the package has changed since the function revision was created."""

    reason = "Changed"


class ProcessRuntime:
    """Serves function revisions by child processes. All of its files are in one folder."""

    def __init__(
        self,
        folder: Path,
        packages: Packages,
        certificates: CertificateFolder,
        *,
        timing: Timing | None = None,
        memory: int | None = None,
        look: float = 5.0,
        kept: int = _KEPT,
        clock: Clock | None = None,
        log: Log | None = None,
    ) -> None:
        """Create a runtime.

        `memory` is the memory limit of each function in bytes; 0 means no limit, and None means
        half of the machine's memory. `look` is the number of seconds between memory checks. `kept`
        is the number of unused environments to keep.
        """
        folder = folder.absolute()
        timing = timing or Timing()
        self._packages = packages
        self._kept = kept
        self._log = log or Log()
        self._aside = aside = DaemonThreadPool()
        self._logs = folder / "logs"
        self._sources_at = folder / "sources"
        self._lock = _prepared(folder)
        installer = EnvironmentInstaller(folder, timeout=timing.build)
        self._sources = PackageCopies(self._sources_at, self._logs, installer, aside)
        self._environments = Environments(folder / "environments", self._logs, installer, aside)
        self._surroundings = ProcessRuntimeContext(
            certificates,
            self._logs,
            self._lock.folder,
            timing,
            usual_memory() if memory is None else memory,
            look,
            clock or SystemClock(),
            self._log,
            aside,
        )
        self._serving: dict[str, Serving] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._observers: list[Callable[[str], None]] = []
        self._tidied: asyncio.Task[None] | None = None
        self._is_untidy = False
        self._closed = False

    async def digest(self, package: str, *, address: str = "") -> str:
        if address:
            return content_digest(package)
        return await self._sources.keep(self._packages.find(package))

    async def serve(self, wanted: DesiredRevision) -> ServingStatus:
        known = self._serving.get(wanted.name)
        if known is not None and _content(known.wanted) == _content(wanted):
            return known.served
        if known is not None:
            await self.end(wanted.name)
        if self._closed:
            return ServingStatus(reason="Ending", message="polyver is ending")
        found = Serving(wanted, self._surroundings, self._environment, self._changed)
        self._serving[wanted.name] = found
        if self._tidied is None:
            self._tidy_soon()  # files of processes that were killed
        return found.served

    async def end(self, name: str) -> None:
        serving = self._serving.pop(name, None)
        if serving is not None:
            task = asyncio.create_task(self._end(serving))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def reach(self, name: str, endpoint: str) -> Endpoint:
        now = self._surroundings.clock.now()
        return reached(name, endpoint, self._surroundings.certificates.trust(name, now=now))

    def observe(self, changed: Callable[[str], None]) -> None:
        self._observers.append(changed)

    async def close(self) -> None:
        self._closed = True
        if self._tidied is not None:
            self._tidied.cancel()
        for task in self._ending:
            task.cancel()
        ends = [each.end(drain=0) for each in self._serving.values()]
        self._serving.clear()
        await asyncio.gather(*ends, *self._ending, return_exceptions=True)
        self._lock.release()

    def figures(self) -> Iterator[Figures]:
        for name, each in self._serving.items():
            yield Figures(name, up=each.served.healthy, restarts=each.restarts)

    async def _end(self, serving: Serving) -> None:
        try:
            await serving.end(drain=self._surroundings.timing.drain)
        finally:
            if serving.wanted.name not in self._serving:
                self._surroundings.certificates.forget(serving.wanted.name)
            self._tidy_soon()

    async def _environment(self, wanted: DesiredRevision) -> FunctionEnvironment:
        """Return an environment with the content of a revision, and build it if necessary.

        If the package has changed since the revision was created, the environment still has the
        content that the package had at that time.
        """
        self._packages.locate(wanted.package)
        found = await self._environments.take(wanted.digest, None)
        if found is not None:
            return found
        source = self._sources.kept(wanted.digest)
        if source is None:
            digest = await self._sources.keep(self._packages.find(wanted.package))
            source = self._sources.kept(wanted.digest)
            if source is None:
                fact = f"the package {wanted.package} has other content now: {digest}"
                raise PackageChanged(fact, hint=f"the revision needs that with {wanted.digest}")
        built = await self._environments.take(wanted.digest, source)
        assert built is not None
        return built

    def _tidy_soon(self) -> None:
        self._is_untidy = not self._closed
        if self._is_untidy and (self._tidied is None or self._tidied.done()):
            self._tidied = asyncio.create_task(self._tidy())

    async def _tidy(self) -> None:
        while self._is_untidy:
            self._is_untidy = False
            try:
                await self._environments.tidy(keep=self._kept, sources=self._sources_at)
                await self._aside.run(self._sources.tidy)
                await self._aside.run(lambda: _keep_newest(self._logs, _LOGS_KEPT))
            except Exception as error:
                self._log.failure("unused environments cannot be removed", error)

    def _changed(self, name: str) -> None:
        for each in self._observers:
            each(name)


def _content(wanted: DesiredRevision) -> tuple[str, str]:
    return wanted.package, wanted.digest


class _Work:
    """A folder for the files of child processes. `release` removes the folder."""

    def __init__(self, folder: Path, lock: FileLock) -> None:
        self.folder = folder
        self._lock = lock

    def release(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.remove()


def _prepared(folder: Path) -> _Work:
    try:
        for each in (folder, *(folder / name for name in _FOLDERS)):
            private_folder(each)
        _remove_left(folder / "work")
        name = secrets.token_hex(4)
        lock = FileLock.take(folder / "work" / f"{name}.lock", shared=False)
        assert lock is not None
        private_folder(folder / "work" / name)
        return _Work(folder / "work" / name, lock)
    except OSError as error:
        raise FolderFailed(refusal(error, folder)) from None


_FOLDERS = ("sources", "environments", "logs", "work")


def _remove_left(work: Path) -> None:
    """Remove the files of processes that were killed and so could not remove them."""
    for each in work.glob("*.lock"):
        lock = FileLock.take(each, shared=False)
        if lock is not None:
            shutil.rmtree(each.with_suffix(""), ignore_errors=True)
            lock.remove()


def _keep_newest(folder: Path, most: int) -> None:
    ages: list[tuple[float, Path]] = []
    for each in folder.iterdir():
        with contextlib.suppress(OSError):
            ages.append((each.stat().st_mtime, each))
    for _, each in sorted(ages, reverse=True)[most:]:
        each.unlink(missing_ok=True)
