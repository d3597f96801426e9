"""Serves functions while `polyver render` or `polyver plan` runs, and calls them."""

from __future__ import annotations

import asyncio
import datetime
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from polyver.cli.output import printable
from polyver.compositions.calls import Caller, CallFailure, Endpoint, FunctionFailed
from polyver.compositions.decisions import ResolvedStep
from polyver.compositions.lineages import content_digest
from polyver.compositions.messages import Request, Response
from polyver.compositions.runtime_choice import certificates_in, logs_folder, process_runtime
from polyver.compositions.runtimes import DesiredRevision, ServingStatus
from polyver.compositions.runtimes.external import InvalidAddress, reached, read_address
from polyver.compositions.runtimes.process import without_again
from polyver.compositions.settings import PackageSettings
from polyver.core import PolyverError
from polyver.kube.http.logs import Log

if TYPE_CHECKING:
    from polyver.compositions.runtimes.process import ProcessRuntime

__all__ = ["FunctionNotServed", "FunctionServer", "ServedRevision", "functions"]

Tell = Callable[[str], None]
_UNDER_WAY = ("Building", "Starting")


class FunctionNotServed(PolyverError):
    """A function cannot be called, because it could not be started or does not respond."""


@dataclass(frozen=True, slots=True)
class ServedRevision:
    """A function revision to serve, and the places that errors about it name."""

    wanted: DesiredRevision
    at: str
    """The place of the Function or FunctionRevision: in a file, or on a cluster."""
    address_at: str
    """The place of the address, if the revision has one."""
    hint: str = ""
    """How to make a function available that this machine cannot run."""


class _Quiet(Log):
    """Ignores log messages. The command reports problems as errors instead."""

    def warning(self, event: str, **facts: object) -> None:
        del event, facts


class FunctionServer:
    """Serves function revisions and calls them. It starts only the processes that are needed."""

    def __init__(self, folder: Path, settings: PackageSettings) -> None:
        self._folder = folder
        self._settings = settings
        self._runtime: ProcessRuntime | None = None
        self._news = asyncio.Event()
        self._caller = Caller()
        self._endpoints: dict[str, Endpoint] = {}
        self._running: dict[str, DesiredRevision] = {}
        """The revisions that run as processes of this machine."""
        self.answers: dict[str, Response] = {}
        """The last response of each step, by the name of the step."""

    async def digest(self, package: str, address: str) -> str:
        """Return the digest of the content of a package.

        If `address` is set, an external server serves the function, and the digest is derived from
        the package reference.
        """
        return content_digest(package) if address else await self._processes.digest(package)

    @property
    def _processes(self) -> ProcessRuntime:
        if self._runtime is None:
            self._runtime = process_runtime(self._folder, self._settings, log=_Quiet())
            self._runtime.observe(lambda _: self._news.set())
        return self._runtime

    async def serve(self, revisions: Iterable[ServedRevision]) -> None:
        """Start to serve function revisions, and wait until all of them can be called.

        Raise FunctionNotServed if one of them fails.
        """
        waiting = {}
        for each in revisions:
            if each.wanted.address:
                self._endpoints[each.wanted.name] = self._elsewhere(each)
            else:
                waiting[each.wanted.name] = each
        with _progress() as tell:
            while waiting:
                self._news.clear()
                for name in [*waiting]:
                    served = await self._served(waiting[name])
                    tell(f"{name}: {served.message or served.reason}")
                    if served.healthy:
                        self._running[name] = waiting.pop(name).wanted
                        self._endpoints[name] = await self.reach(name, "")
                if waiting:
                    await self._news.wait()

    async def _served(self, each: ServedRevision) -> ServingStatus:
        name = each.wanted.name
        served = await self._processes.serve(each.wanted)
        if not served.healthy and served.reason not in _UNDER_WAY:
            log = logs_folder(self._folder) / f"{name}.log"
            hint = f"its output is in {log}" if log.is_file() else each.hint
            fact = f"{name} is not served: {without_again(served.message)}"
            raise FunctionNotServed(fact, at=each.at, hint=hint)
        return served

    async def reach(self, name: str, endpoint: str) -> Endpoint:
        """Return the endpoint of a revision.

        A process that has ended and was started again has another endpoint than before. Raise
        FunctionNotServed if the process does not run at the moment.
        """
        del endpoint
        wanted = self._running.get(name)
        if wanted is None:
            return self._endpoints[name]
        served = await self._processes.serve(wanted)
        if not served.healthy:
            raise FunctionNotServed(without_again(served.message) or served.reason)
        return await self._processes.reach(name, served.endpoint)

    def _elsewhere(self, each: ServedRevision) -> Endpoint:
        name = each.wanted.name
        try:
            address = read_address(each.wanted.address)
        except InvalidAddress as error:
            raise FunctionNotServed(error.fact, at=each.address_at, hint=error.hint) from None
        if not address.secure:
            return Endpoint(name, address.target)
        now = datetime.datetime.now(datetime.UTC)
        trust = certificates_in(self._folder).trust(name, now=now)
        return reached(name, str(address), trust)

    def asking(self, seconds: float) -> _Asking:
        """Return a callable that calls functions. All its calls together may take `seconds`."""
        now = asyncio.get_running_loop().time()
        return _Asking(self._caller, self._endpoints, self.answers, seconds, now + seconds)

    async def close(self) -> None:
        """Close the connections to functions, and end the processes."""
        await self._caller.close()
        if self._runtime is not None:
            await self._runtime.close()


@dataclass(frozen=True, slots=True)
class _Asking:
    caller: Caller
    endpoints: Mapping[str, Endpoint]
    answers: dict[str, Response]
    within: float
    until: float

    async def __call__(self, step: ResolvedStep, request: Request) -> Response:
        left = self.until - asyncio.get_running_loop().time()
        if left <= 0:
            fact = f"was not called: the pipeline took more than {self.within:g}s"
            raise FunctionFailed(CallFailure.DEADLINE, fact, revision=step.revision)
        within = max(round(left, 2), 0.01)
        answer = await self.caller.call(self.endpoints[step.revision], request, within=within)
        self.answers[step.name] = answer
        return answer


@asynccontextmanager
async def functions(folder: Path, settings: PackageSettings) -> AsyncIterator[FunctionServer]:
    """Yield a FunctionServer, and close it at the end, even if the task is cancelled."""
    found = FunctionServer(folder, settings)
    try:
        yield found
    finally:
        await asyncio.shield(found.close())


@contextmanager
def _progress() -> Iterator[Tell]:
    """Show the progress in one line, if stderr is a terminal. Otherwise, print nothing."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status("") as status:
        yield lambda text: status.update(escape(printable(text)))
