"""The interface of a store: values (bytes) by key, with revisions and watches.

A write is a compare-and-swap: it happens only if the key still has the expected revision. Each
write in the store gets the next revision number. A value is the JSON that clients receive. It
contains the revision of its last write, so that a read does not have to encode anything.
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
    """A key and its value, with the revisions of its creation and of its last write."""

    key: str
    value: bytes
    revision: int
    created: int


class StorePage(NamedTuple):
    """Some entries of a list in the order of their keys, in the state of the store at `revision`.

    `remaining` is the number of further entries of the list, after these.
    """

    entries: list[StoreEntry]
    revision: int
    remaining: int


class StoreEvent(NamedTuple):
    """One change of a key.

    `entry` is the state after the change; for a deletion it is the last state of the object.
    `previous` is the state before the change, or None for a new key.
    """

    entry: StoreEntry
    previous: StoreEntry | None
    deleted: bool


@dataclass(frozen=True, slots=True)
class StoreWrite:
    """A write that happens only if the key still has the revision `expected`.

    The store gives the write the next revision. The written value consists of `head`, the digits of
    this revision, and `tail`.
    """

    key: str
    head: bytes
    tail: bytes
    expected: int
    """The revision that the key must have before the write; 0 if the key must not exist."""
    delete: bool = False
    """True if the write deletes the key.

    Watchers then get the value as the last state of the object.
    """

    def made(self, current: StoreEntry | None, revision: int) -> StoreEvent:
        """Build the event for this write.

        If the key has another revision than expected, raise `Conflict`.
        """
        if (current.revision if current else 0) != self.expected:
            raise Conflict(self, current)
        value = b"%b%d%b" % (self.head, revision, self.tail)
        created = current.created if current else revision
        return StoreEvent(StoreEntry(self.key, value, revision, created), current, self.delete)


class Conflict(PolyverError):
    """Raised by a write if the key does not have the expected revision.

    The reason is another write that changed the key.
    """

    def __init__(self, change: StoreWrite, current: StoreEntry | None) -> None:
        found = f"revision {current.revision}" if current else "nothing"
        wanted = f"revision {change.expected}" if change.expected else "nothing"
        super().__init__(f"{change.key} holds {found}, expected {wanted}")
        self.change = change
        self.current = current


class Compacted(PolyverError):
    """Raised if a revision cannot be read any more: the store was compacted up to a newer one."""

    def __init__(self, revision: int, oldest: int) -> None:
        super().__init__(f"revision {revision} is compacted", hint=f"the oldest is {oldest}")
        self.revision = revision
        self.oldest = oldest


class FutureRevision(PolyverError):
    """Raised if a revision cannot be read or watched yet, because no write has reached it."""

    def __init__(self, revision: int, current: int) -> None:
        super().__init__(
            f"revision {revision} is in the future", hint=f"the current one is {current}"
        )
        self.revision = revision
        self.current = current


def check_revision(revision: int, *, newest: int, compacted: int) -> None:
    """Raise `FutureRevision` or `Compacted` if a revision cannot be read."""
    if revision > newest:
        raise FutureRevision(revision, newest)
    if revision < compacted:
        raise Compacted(revision, compacted)


class Lagging(PolyverError):
    """Raised by a watch that has ended, because its reader was too slow for the events."""


class StoreClosed(PolyverError):
    """Raised by operations of a store or of a watch after it was closed."""


class StoreFailed(PolyverError):
    """Raised if the file of a store cannot be read or written. A failed write has no effect."""


class StoreDamaged(StoreFailed):
    """Raised if the file of a store is damaged, or is not an SQLite database."""


class StoreMissing(StoreFailed):
    """Raised if a store should exist, but its file is missing or empty."""


class StoreLocked(PolyverError):
    """Raised if another process uses the folder of the store."""


class StoreWatch(Protocol):
    """A watch: delivers each event of the keys with a prefix once, in the order of revisions."""

    def __aiter__(self) -> AsyncIterator[StoreEvent]: ...

    async def __anext__(self) -> StoreEvent: ...

    @property
    def revision(self) -> int:
        """The revision up to which the watch has all events: they are delivered or pending."""

    @property
    def waiting(self) -> bool:
        """True if the reader has something to do: an event is pending, or the watch has ended."""

    async def batch(self, timeout: float) -> list[StoreEvent]:
        """Wait until an event is pending, at most `timeout` seconds; return all pending events."""

    def close(self) -> None: ...


class Store(Protocol):
    """A store, in memory or in a SQLite file. Only the API server opens one."""

    @property
    def problem(self) -> str:
        """The reason why the disk cannot be read or written now; "" if it can."""

    @property
    def revision(self) -> int:
        """The revision of the newest write in the store."""

    @property
    def compacted(self) -> int:
        """The revision up to which the store was compacted; older revisions cannot be read."""

    def get(self, key: str) -> StoreEntry | None:
        """Return the current entry of a key; None if the key does not exist."""

    def page(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> StorePage:
        """List the entries whose keys begin with `prefix` and come after the key `after`.

        A `limit` of 0 means no limit. A `revision` of 0 means the current state.
        """

    async def write(self, change: StoreWrite) -> StoreEntry:
        """Write a change durably; return the new entry. For a deletion, return the last entry."""

    def watch(self, prefix: str, revision: int) -> StoreWatch:
        """Watch every change after a revision to the keys that begin with `prefix`."""

    async def compact(self, revision: int) -> None:
        """Delete the old states of keys that were replaced at or before a revision."""

    async def close(self) -> None:
        """Finish pending writes and close the store."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...
