"""Runtime for function revisions that external servers serve, at addresses from annotations."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from polyver.client import Clock, SystemClock, sleep
from polyver.compositions.calls import Endpoint, FunctionFailed, Trust, probe
from polyver.compositions.lineages import content_digest
from polyver.compositions.runtimes.interface import ENDPOINT, DesiredRevision, ServingStatus
from polyver.compositions.runtimes.metrics import Figures
from polyver.core import PolyverError

__all__ = ["ExternalRuntime", "FunctionAddress", "InvalidAddress", "reached", "read_address"]

_PLAIN = "http://"
_SECURE = "https://"


class InvalidAddress(PolyverError):
    """The string is not a valid address of a function."""


class FunctionAddress(NamedTuple):
    """The address of a function, and whether the function serves with TLS."""

    target: str
    secure: bool

    def __str__(self) -> str:
        return self.target if self.secure else f"{_PLAIN}{self.target}"


def read_address(text: str) -> FunctionAddress:
    """Parse the address of a function: HOST:PORT or https://HOST:PORT, or http:// without TLS.

    >>> read_address("http://localhost:9443"), str(read_address("[::1]:9443"))
    (FunctionAddress(target='localhost:9443', secure=False), '[::1]:9443')
    """
    secure = not text.startswith(_PLAIN)
    target = text.strip().removeprefix(_SECURE).removeprefix(_PLAIN).removesuffix("/")
    host, _, port = target.rpartition(":")
    named = host.startswith("[") and host.endswith("]") if ":" in host else host
    right = port.isascii() and port.isdecimal() and 0 < int(port[:6]) < 65536
    if not named or not right or any(each in target for each in "/@?# \t\n"):
        hint = "write HOST:PORT, or http://HOST:PORT for a function without TLS"
        raise InvalidAddress(f'"{text}" is not the address of a function', at=ENDPOINT, hint=hint)
    return FunctionAddress(target, secure)


def reached(name: str, endpoint: str, trust: Trust) -> Endpoint:
    """Build the endpoint for calls of a revision from `status.endpoint` of its FunctionRevision."""
    if endpoint.startswith(_PLAIN):
        return Endpoint(name, endpoint.removeprefix(_PLAIN))
    return Endpoint(name, endpoint, trust)


@dataclass(frozen=True, slots=True)
class ProbeTiming:
    """Intervals and timeouts of health probes, in seconds."""

    every: float = 10.0
    while_silent: float = 1.0
    """Interval between probes while the server does not answer."""
    answer: float = 5.0
    """Timeout of one probe."""
    silence: float = 30.0
    """If a revision does not answer for this time, polyver does not call it any more."""


class ExternalRuntime:
    """Sends health probes to the external servers that serve function revisions."""

    def __init__(
        self,
        trust: Callable[[str], Awaitable[Trust]],
        *,
        asking: ProbeTiming | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Create a runtime. `trust` returns the certificates for the probes of a revision."""
        self._trust = trust
        self._asking = asking or ProbeTiming()
        self._clock: Clock = clock or SystemClock()
        self._asked: dict[str, _Asked] = {}
        self._observers: list[Callable[[str], None]] = []

    async def digest(self, package: str, *, address: str = "") -> str:
        del address
        return content_digest(package)

    async def serve(self, wanted: DesiredRevision) -> ServingStatus:
        known = self._asked.get(wanted.name)
        if known is not None and known.wanted == wanted:
            return known.served
        await self.end(wanted.name)
        try:
            address = read_address(wanted.address)
        except InvalidAddress as error:
            return ServingStatus(reason="InvalidEndpoint", message=str(error))
        found = self._asked[wanted.name] = _Asked(wanted)
        found.task = asyncio.create_task(self._ask(found, address))
        return found.served

    async def end(self, name: str) -> None:
        asked = self._asked.pop(name, None)
        if asked is not None and asked.task is not None:
            asked.task.cancel()
            await asyncio.wait([asked.task])

    async def reach(self, name: str, endpoint: str) -> Endpoint:
        return reached(name, endpoint, await self._trust(name))

    def observe(self, changed: Callable[[str], None]) -> None:
        self._observers.append(changed)

    def figures(self) -> Iterator[Figures]:
        for name, each in self._asked.items():
            yield Figures(name, up=each.served.healthy)

    async def close(self) -> None:
        for name in list(self._asked):
            await self.end(name)

    async def _ask(self, asked: _Asked, address: FunctionAddress) -> None:
        answered = float("-inf")
        while True:
            problem, now = await self._problem(asked.wanted.name, str(address)), self._clock.time()
            if not problem:
                answered = now
                served = ServingStatus(str(address), "Serving", f"it answers at {address}")
                self._tell(asked, served)
            elif now - answered >= self._asking.silence:
                self._tell(asked, ServingStatus(reason="NotAnswering", message=problem))
            pause = self._asking.while_silent if problem else self._asking.every
            await sleep(self._clock, pause)

    async def _problem(self, name: str, endpoint: str) -> str:
        try:
            await probe(await self.reach(name, endpoint), within=self._asking.answer)
        except (FunctionFailed, PolyverError) as error:
            return str(error)
        return ""

    def _tell(self, asked: _Asked, served: ServingStatus) -> None:
        if served != asked.served:
            asked.served = served
            for each in self._observers:
                each(asked.wanted.name)


@dataclass(eq=False)
class _Asked:
    wanted: DesiredRevision
    served: ServingStatus = field(default_factory=ServingStatus)
    task: asyncio.Task[None] | None = None
