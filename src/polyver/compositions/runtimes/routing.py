"""Runtime that passes each function revision on to one of two other runtimes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from polyver.compositions.calls import Endpoint
from polyver.compositions.runtimes.interface import DesiredRevision, Runtime, ServingStatus
from polyver.compositions.runtimes.metrics import Figures

__all__ = ["ChosenRuntime"]


class ChosenRuntime:
    """Passes each function revision on to the external runtime, or to the configured runtime."""

    def __init__(self, external: Runtime, configured: Runtime) -> None:
        """Create a runtime. `external` serves revisions with an address, `configured` the rest."""
        self._external = external
        self._configured = configured
        self._by: dict[str, Runtime] = {}

    async def digest(self, package: str, *, address: str = "") -> str:
        return await self._for(address).digest(package, address=address)

    async def serve(self, wanted: DesiredRevision) -> ServingStatus:
        chosen = self._for(wanted.address)
        before = self._by.get(wanted.name)
        self._by[wanted.name] = chosen
        served = await chosen.serve(wanted)
        if before not in (None, chosen):
            await before.end(wanted.name)
        return served

    async def end(self, name: str) -> None:
        self._by.pop(name, None)
        # End it in both runtimes. After a restart of polyver, it is unknown which runtime served
        # it.
        await self._external.end(name)
        await self._configured.end(name)

    async def reach(self, name: str, endpoint: str) -> Endpoint:
        return await self._by.get(name, self._configured).reach(name, endpoint)

    def observe(self, changed: Callable[[str], None]) -> None:
        for each in (self._external, self._configured):
            each.observe(changed)

    def figures(self) -> Iterator[Figures]:
        yield from self._external.figures()
        yield from self._configured.figures()

    async def close(self) -> None:
        await self._external.close()
        await self._configured.close()

    def _for(self, address: str) -> Runtime:
        return self._external if address else self._configured
