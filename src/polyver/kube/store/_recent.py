"""Entries that were read or written lately, so that most reads of one entry ask no database."""

from __future__ import annotations

from polyver.kube.store.interface import StoreEntry

__all__ = ["Recent"]

_MOST = 8 * 1024 * 1024


class Recent:
    """Entries as they are now, as many as fit; those that nobody asked for go first.

    One is not kept while it is being changed: until that is told, only the database knows.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._entries: dict[str, StoreEntry] = {}
        self._size = 0
        self._changing: dict[str, int] = {}

    def get(self, key: str) -> StoreEntry | None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._entries[key] = entry
        return entry

    def keep(self, entry: StoreEntry) -> None:
        """Remember what was read, unless it is about to be another."""
        if entry.key in self._changing:
            return
        self._forget(entry.key)
        self._entries[entry.key] = entry
        self._size += len(entry.value)
        while self._size > self._most:
            self._forget(next(iter(self._entries)))

    def begin(self, key: str) -> None:
        """An entry is being changed; several changes may be under way."""
        self._forget(key)
        self._changing[key] = self._changing.get(key, 0) + 1

    def end(self, key: str) -> None:
        """A change is done, or has failed."""
        left = self._changing.pop(key) - 1
        if left:
            self._changing[key] = left

    def _forget(self, key: str) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._size -= len(entry.value)
