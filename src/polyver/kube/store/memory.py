"""A store in memory, for tests and trials. Its content is lost when the process ends."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from operator import attrgetter
from typing import Self

from polyver.kube.store._watch_hub import Hub, Watcher
from polyver.kube.store.interface import (
    FutureRevision,
    StoreClosed,
    StoreEntry,
    StoreEvent,
    StorePage,
    StoreWrite,
    check_revision,
)

__all__ = ["MemoryStore"]


class MemoryStore:
    """A store that keeps all revisions of all keys in dictionaries."""

    def __init__(self) -> None:
        self._log: list[StoreEvent] = []
        self._history: dict[str, list[StoreEvent]] = {}
        self._keys: list[str] = []
        self._revision = 0
        self._compacted = 0
        self._hub = Hub()
        self._open = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def problem(self) -> str:
        return ""

    @property
    def revision(self) -> int:
        return self._revision

    @property
    def compacted(self) -> int:
        return self._compacted

    def get(self, key: str) -> StoreEntry | None:
        self._check_open()
        return self._at(key, self._revision)

    def _at(self, key: str, revision: int) -> StoreEntry | None:
        events = self._history.get(key, [])
        found = bisect_right(events, revision, key=_revision)
        if not found or events[found - 1].deleted:
            return None
        return events[found - 1].entry

    def page(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> StorePage:
        self._check_open()
        at = revision or self._revision
        check_revision(at, newest=self._revision, compacted=self._compacted)
        start = bisect_left(self._keys, prefix)
        end = bisect_left(self._keys, prefix + "\U0010ffff")
        if after:
            start = max(start, bisect_right(self._keys, after))
        found = [entry for key in self._keys[start:end] if (entry := self._at(key, at))]
        page = found[:limit] if limit else found
        return StorePage(page, at, len(found) - len(page))

    async def write(self, change: StoreWrite) -> StoreEntry:
        self._check_open()
        event = change.made(self.get(change.key), self._revision + 1)
        self._revision += 1
        if change.key not in self._history:
            insort(self._keys, change.key)
        self._history.setdefault(change.key, []).append(event)
        self._log.append(event)
        self._hub.publish(event)
        return event.entry

    def watch(self, prefix: str, revision: int) -> Watcher:
        self._check_open()
        check_revision(revision, newest=self._revision, compacted=self._compacted)
        start = bisect_right(self._log, revision, key=_revision)
        past = (event for event in self._log[start:] if event.entry.key.startswith(prefix))
        return self._hub.watch(prefix, past, self._revision)

    async def compact(self, revision: int) -> None:
        if revision > self._revision:
            raise FutureRevision(revision, self._revision)
        self._compacted = max(self._compacted, revision)
        self._log = self._log[bisect_right(self._log, revision, key=_revision) :]
        for key, events in list(self._history.items()):
            # Keep the newest event at or before the revision: it is the state at the revision.
            kept = events[max(0, bisect_right(events, revision, key=_revision) - 1) :]
            if len(kept) == 1 and kept[0].deleted and kept[0].entry.revision <= revision:
                del self._history[key]
                del self._keys[bisect_left(self._keys, key)]
            else:
                self._history[key] = kept

    def _check_open(self) -> None:
        if not self._open:
            raise StoreClosed("the store was closed")

    async def close(self) -> None:
        self._open = False
        self._hub.close()


_revision = attrgetter("entry.revision")
