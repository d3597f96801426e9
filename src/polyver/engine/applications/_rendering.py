"""Rendering beside the event loop: with a deadline, a few at a time, from what is read once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from polyver.capabilities.definitions.kinds import GROUP, REVISIONS, STORED
from polyver.capabilities.definitions.publishing import known_revision
from polyver.capabilities.definitions.rendering import (
    Engines,
    Rendered,
    cluster_version,
    render,
    revisions_of,
)
from polyver.client import Client, Clock, Object, Resource, find
from polyver.core import PolyverError, listed
from polyver.serving.aside import Aside

__all__ = ["DEADLINE", "Renderer", "TookTooLong"]

DEADLINE: Final = 20.0
_PAUSE: Final = 60.0
"""For how many seconds a version that took too long is not tried with other applications."""
_REVISIONS = Resource(GROUP, STORED, REVISIONS.names.plural)
_KEPT: Final = 1000
_HERE, _PROGRAMS = 2, 4
"""How many at once: those in this process keep the API from the processor, programs do not."""
_BUILT_IN: Final = frozenset({"gotemplate"})

_Name = tuple[str, str]
"""The namespace and the name of a DefinitionRevision."""


class TookTooLong(PolyverError):
    """A rendering that was given up, or not begun because another one was."""

    reason = "TookTooLong"


class Renderer:
    """Renders applications; DefinitionRevisions, which never change, are kept."""

    def __init__(
        self, client: Client, engines: Engines, clock: Clock, *, deadline: float = DEADLINE
    ) -> None:
        self._client = client
        self._engines = engines
        self._clock = clock
        self._deadline = deadline
        self._here, self._programs = Aside(_HERE), Aside(_PROGRAMS)
        self._kept: OrderedDict[tuple[str, str, str], Object] = OrderedDict()
        self._slow: dict[_Name, float] = {}
        """Until when what took too long is left alone: it must not keep all others waiting."""
        self._cluster: Mapping[str, Object] = {}
        self.count = 0
        """How many were rendered so far."""

    async def render(
        self, application: Object, resolutions: Sequence[Object], *, revision: str
    ) -> Rendered:
        """What an application means; what is wrong with it, or takes too long, is an error."""
        if slow := self._slow_of(resolutions):
            fact = f"{listed(slow)} took longer than {self._deadline:g} seconds just now"
            return Rendered(errors=(TookTooLong(fact, hint=_HINT),))
        revisions = await self._revisions(resolutions)
        if not self._cluster:
            self._cluster = {"clusterVersion": cluster_version(await self._client.release())}
        self.count += 1
        work = partial(
            render,
            application,
            resolutions,
            revisions,
            self._engines,
            app_revision=revision,
            context=self._cluster,
        )
        aside = self._here if _BUILT_IN.issuperset(_engines(revisions)) else self._programs
        try:
            async with asyncio.timeout(self._deadline):
                return await aside.run(partial(_caught, work))
        except TimeoutError:
            until = self._clock.time() + _PAUSE
            self._slow |= dict.fromkeys(revisions, until)
            fact = f"rendering took longer than {self._deadline:g} seconds"
            return Rendered(errors=(TookTooLong(fact, hint=_HINT),))

    def _slow_of(self, resolutions: Sequence[Object]) -> list[str]:
        if not self._slow:
            return []
        now = self._clock.time()
        self._slow = {name: until for name, until in self._slow.items() if now < until}
        return sorted(name for _, name in revisions_of(resolutions) & self._slow.keys())

    async def _revisions(self, resolutions: Sequence[Object]) -> dict[_Name, Object]:
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


def _caught(work: Callable[[], Rendered]) -> Rendered:
    """What is rendered; an engine that breaks is told of like everything else that goes wrong."""
    try:
        return work()
    except Exception as error:
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return Rendered(errors=(EngineBroke(f"rendering ended with {said[:_LONGEST]}"),))


class EngineBroke(PolyverError):
    """A mistake in an engine."""

    reason = "EngineBroke"


_LONGEST: Final = 500
_HINT: Final = "it is tried again in a minute; templates should do less"


def _engines(revisions: Mapping[_Name, Object]) -> Iterable[str]:
    """What the templates of these are written for."""
    for each in revisions.values():
        known = known_revision(each)
        yield from (known.content.get("schematic") or ()) if known is not None else ()
