"""Cache of recently used entries, so that most reads of one entry do not query the database."""

from __future__ import annotations

from polyver.kube.store.interface import StoreEntry

__all__ = ["Recent"]

_MOST = 8 * 1024 * 1024


class Recent:
    """Current entries up to a total size; the least recently used are dropped first.

    An entry is not cached while it is being changed: until the outcome is known, only the database
    is right.
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
        """Cache an entry, unless it is being changed."""
        if entry.key in self._changing:
            return
        self._forget(entry.key)
        self._entries[entry.key] = entry
        self._size += len(entry.value)
        while self._size > self._most:
            self._forget(next(iter(self._entries)))

    def begin(self, key: str) -> None:
        """Drop an entry that is being changed; several changes may be in progress."""
        self._forget(key)
        self._changing[key] = self._changing.get(key, 0) + 1

    def end(self, key: str) -> None:
        """Record that a change succeeded or failed."""
        left = self._changing.pop(key) - 1
        if left:
            self._changing[key] = left

    def _forget(self, key: str) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._size -= len(entry.value)
