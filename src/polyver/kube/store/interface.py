"""Interface of a store: bytes under keys, revisions, compare-and-swap, a log to watch.

A revision is one change anywhere in the store; revisions only grow. A value is stored as it is sent
to clients, with its own revision in it, so that reading never encodes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

from polyver.core import PolyverError

__all__ = [
    "Compacted",
    "Conflict",
    "FutureRevision",
    "Lagging",
    "Store",
    "StoreClosed",
    "StoreDamaged",
    "StoreEntry",
    "StoreEvent",
    "StoreFailed",
    "StoreLocked",
    "StoreMissing",
    "StorePage",
    "StoreWatch",
    "StoreWrite",
    "check_revision",
]


class StoreEntry(NamedTuple):
    """A key and its value, the revision that wrote it, and the revision that created it."""

    key: str
    value: bytes
    revision: int
    created: int


class StorePage(NamedTuple):
    """Entries sorted by key as of a revision, and the number of entries after them."""

    entries: list[StoreEntry]
    revision: int
    remaining: int


class StoreEvent(NamedTuple):
    """One change: the new entry, or the last one if it was deleted, and the entry before."""

    entry: StoreEntry
    previous: StoreEntry | None
    deleted: bool


@dataclass(frozen=True, slots=True)
class StoreWrite:
    """A write that happens only if the key is unchanged since it was read.

    The value has two parts; the store inserts the revision that it assigns between them.
    """

    key: str
    head: bytes
    tail: bytes
    expected: int
    """The revision that the key must have now; 0 if the key must not exist."""
    delete: bool = False
    """True to delete the key; watchers get the value as the last state."""

    def made(self, current: StoreEntry | None, revision: int) -> StoreEvent:
        """Return the event of this write; raise `Conflict` if the current entry differs."""
        if (current.revision if current else 0) != self.expected:
            raise Conflict(self, current)
        value = b"%b%d%b" % (self.head, revision, self.tail)
        created = current.created if current else revision
        return StoreEvent(StoreEntry(self.key, value, revision, created), current, self.delete)


class Conflict(PolyverError):
    """The key has changed since it was read."""

    def __init__(self, change: StoreWrite, current: StoreEntry | None) -> None:
        found = f"revision {current.revision}" if current else "nothing"
        wanted = f"revision {change.expected}" if change.expected else "nothing"
        super().__init__(f"{change.key} holds {found}, expected {wanted}")
        self.change = change
        self.current = current


class Compacted(PolyverError):
    """A revision that is no longer in the log."""

    def __init__(self, revision: int, oldest: int) -> None:
        super().__init__(f"revision {revision} is compacted", hint=f"the oldest is {oldest}")
        self.revision = revision
        self.oldest = oldest


class FutureRevision(PolyverError):
    """A revision that has not been written yet."""

    def __init__(self, revision: int, current: int) -> None:
        super().__init__(f"revision {revision} is yet to come", hint=f"now is {current}")
        self.revision = revision
        self.current = current


def check_revision(revision: int, *, newest: int, compacted: int) -> None:
    """Raise `FutureRevision` or `Compacted` if a revision cannot be read."""
    if revision > newest:
        raise FutureRevision(revision, newest)
    if revision < compacted:
        raise Compacted(revision, compacted)


class Lagging(PolyverError):
    """A watcher that reads more slowly than events come, and was stopped."""


class StoreClosed(PolyverError):
    """The store was closed."""


class StoreFailed(PolyverError):
    """The disk refused the request; nothing of it was done."""


class StoreDamaged(StoreFailed):
    """A file that is not an intact store."""


class StoreMissing(StoreFailed):
    """A store that should have content, but is missing or empty."""


class StoreLocked(PolyverError):
    """Another process uses the data."""


class StoreWatch(Protocol):
    """Events under a prefix in the order of their revisions, each exactly once."""

    def __aiter__(self) -> AsyncIterator[StoreEvent]: ...

    async def __anext__(self) -> StoreEvent: ...

    @property
    def revision(self) -> int:
        """The revision up to which all events were delivered or are pending."""

    @property
    def waiting(self) -> bool:
        """True if an event, or the end of the watch, is pending."""

    async def batch(self, patience: float) -> list[StoreEvent]:
        """Return all pending events; none if none comes within the timeout in seconds."""

    def close(self) -> None: ...


class Store(Protocol):
    """A store in memory or in SQLite; only the server opens one."""

    @property
    def problem(self) -> str:
        """The reason why the disk is not reliable now; empty if the last write succeeded."""

    @property
    def revision(self) -> int:
        """The newest revision."""

    @property
    def compacted(self) -> int:
        """The compacted revision; older ones may be gone."""

    def get(self, key: str) -> StoreEntry | None:
        """Return the current entry of a key, or None."""

    def page(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> StorePage:
        """Return entries under a prefix, after a key, up to a limit, now or as of a revision."""

    async def write(self, change: StoreWrite) -> StoreEntry:
        """Write a change, which is durable when this returns; a deletion returns the last state."""

    def watch(self, prefix: str, revision: int) -> StoreWatch:
        """Watch every change under a prefix after a revision."""

    async def compact(self, revision: int) -> None:
        """Delete entries that were replaced up to a revision."""

    async def close(self) -> None:
        """Finish pending writes and close the store."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...
