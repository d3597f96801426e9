"""Informers for the sources of the page, and their errors.

While an informer has an error, the page may show outdated data.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from polyver.client import Change, Client, GroupVersionResource, Informer, Key
from polyver.core.plain import Object
from polyver.web.view_model import PageModel

__all__ = ["PageInformers", "PageSource", "WatchedCollection"]

T = TypeVar("T")

_BREATH = 50
_ODD = object()


@dataclass(frozen=True, slots=True)
class WatchedCollection(Generic[T]):
    """A collection of objects that a source watches."""

    resource: GroupVersionResource
    keep: Callable[[Object], T]
    """Returns the data of an object that the informer keeps in memory."""
    observe: Callable[[Change[T]], Awaitable[None]]
    metadata: bool = False
    namespace: str = ""
    fields: str = ""
    """The field selector of the watched objects."""


class PageSource(ABC):
    """Base class of the part of the page for one capability.

    A source watches objects, and writes lineages and dependents to the page model.
    """

    capability: ClassVar[str]
    description: ClassVar[str]
    """A few words about the lineages, such as `kinds and their API versions`, for a heading."""

    @abstractmethod
    def open(self, book: PageModel, following: PageInformers) -> None:
        """Write what is already known to the model, and start to watch objects."""


class PageInformers:
    """The informers of the page, which run while the page is in use."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._informers: dict[
            tuple[PageSource, GroupVersionResource], tuple[Informer[Any], asyncio.Task[None]]
        ] = {}
        self._odd: set[tuple[GroupVersionResource, Key]] = set()
        self._told = 0

    def follow(self, source: PageSource, watched: WatchedCollection[Any]) -> None:
        """Start watching a collection for a source, unless it is watched already."""
        key = (source, watched.resource)
        if key in self._informers:
            return

        async def observe(change: Change[Any]) -> None:
            # A list may have thousands of items. Pause here, so that other requests run.
            self._told += 1
            if self._told % _BREATH == 0:
                await asyncio.sleep(0)
            before, after = self._readable(watched.resource, change)
            if before != after:
                await watched.observe(Change(change.key, before, after))

        def keep(obj: Object) -> Any:
            try:
                return watched.keep(obj)
            except Exception:
                # One malformed object must not hide all other objects.
                return _ODD

        informer: Informer[Any] = Informer(
            self._client,
            watched.resource,
            keep=keep,
            handler=observe,
            metadata=watched.metadata,
            namespace=watched.namespace,
            fields=watched.fields,
        )
        task = asyncio.create_task(informer.run())
        self._informers[key] = (informer, task)

    def _readable(self, resource: GroupVersionResource, change: Change[Any]) -> tuple[Any, Any]:
        """Return the old and the new state of an object; None for a state that cannot be read."""
        place = (resource, change.key)
        if change.after is _ODD:
            self._odd.add(place)
        else:
            self._odd.discard(place)
        before, after = change.before, change.after
        return None if before is _ODD else before, None if after is _ODD else after

    async def unfollow(self, source: PageSource, resource: GroupVersionResource) -> dict[Key, Any]:
        """Stop watching a collection for a source; return the last known state of its objects."""
        if (source, resource) not in self._informers:
            return {}
        informer, task = self._informers.pop((source, resource))
        await _ended(task)
        self._odd = {each for each in self._odd if each[0] != resource}
        return {key: known for key, known in informer.known.items() if known is not _ODD}

    @property
    def problems(self) -> dict[str, str]:
        """The reasons why data on the page may be outdated, by collection."""
        found = {
            resource: f"{'/'.join(filter(None, key))} is malformed"
            for resource, key in sorted(self._odd, key=str)
        }
        for (_, resource), (informer, _) in self._informers.items():
            if informer.problem is not None:
                found[resource] = str(informer.problem)
        named = {f"{each.plural}.{each.group}": why for each, why in found.items()}
        return dict(sorted(named.items()))

    @property
    def is_synced(self) -> bool:
        """True if all watched collections have been read completely."""
        return all(informer.synced.is_set() for informer, _ in self._informers.values())

    async def synced(self, patience: float) -> None:
        """Wait until all collections have been read, but at most `patience` seconds.

        Collections that are added during the wait must also be read.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while not self.is_synced:
                    for informer, _ in [*self._informers.values()]:
                        await informer.synced.wait()

    async def close(self) -> None:
        """Stop all informers."""
        for _, task in self._informers.values():
            task.cancel()
        for _, task in self._informers.values():
            await _ended(task)
        self._informers.clear()


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait((task,))
