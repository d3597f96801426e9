"""Rendering beside the event loop: with a deadline, a few at a time, from what is read once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import Final

from polyver.capabilities.definitions.kinds import GROUP, REVISIONS, STORED
from polyver.capabilities.definitions.rendering import Engines, Rendered, render, revisions_of
from polyver.client import Client, Object, Resource, find
from polyver.core import PolyverError
from polyver.serving.aside import Aside

__all__ = ["DEADLINE", "Renderer", "TookTooLong"]

DEADLINE: Final = 30.0
_REVISIONS = Resource(GROUP, STORED, REVISIONS.names.plural)
_KEPT: Final = 1000
_AT_ONCE: Final = 2
"""More of them would only keep each other, and the API, from the processor."""


class TookTooLong(PolyverError):
    """A rendering that was given up."""


class Renderer:
    """Renders applications; DefinitionRevisions, which never change, are kept."""

    def __init__(self, client: Client, engines: Engines, *, deadline: float = DEADLINE) -> None:
        self._client = client
        self._engines = engines
        self._deadline = deadline
        self._aside = Aside(_AT_ONCE)
        self._kept: OrderedDict[tuple[str, str, str], Object] = OrderedDict()
        self.count = 0
        """How many were rendered so far."""

    async def render(
        self, application: Object, resolutions: Sequence[Object], *, revision: str
    ) -> Rendered:
        """What an application means; what is wrong with it, or takes too long, is an error."""
        revisions = await self._revisions(resolutions)
        self.count += 1
        work = partial(
            render, application, resolutions, revisions, self._engines, app_revision=revision
        )
        try:
            async with asyncio.timeout(self._deadline):
                return await self._aside.run(work)
        except TimeoutError:
            fact = f"rendering takes longer than {self._deadline:g} seconds"
            hint = "it is tried again; templates should do less"
            return Rendered(errors=(TookTooLong(fact, hint=hint),))

    async def _revisions(self, resolutions: Sequence[Object]) -> dict[tuple[str, str], Object]:
        digests = {each["revision"]: each["digest"] for each in resolutions}
        found = {}
        for namespace, name in revisions_of(resolutions):
            read = await self._revision(namespace, name, digests[name])
            if read is not None:
                found[namespace, name] = read
        return found

    async def _revision(self, namespace: str, name: str, digest: str) -> Object | None:
        key = namespace, name, digest
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
            return kept
        found = await find(self._client, _REVISIONS, name, namespace)
        # What has another digest is none that was asked for, and may be put right.
        if found is not None and (found.get("spec") or {}).get("digest") == digest:
            self._kept[key] = found
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return found
