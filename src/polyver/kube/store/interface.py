"""What the server needs of a store: bytes under keys, revisions, compare-and-swap, a log to watch.

A revision is one change anywhere in the store; revisions only grow. A value is kept as it will be
sent, with its own revision already in it, so that reading never encodes.
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
    """What is under a key: the value, the revision that wrote it, and the one that created it."""

    key: str
    value: bytes
    revision: int
    created: int


class StorePage(NamedTuple):
    """Some entries in the order of their keys, as of a revision, and how many come after them."""

    entries: list[StoreEntry]
    revision: int
    remaining: int


class StoreEvent(NamedTuple):
    """One change: what is under the key now, or was when it was deleted, and what was before."""

    entry: StoreEntry
    previous: StoreEntry | None
    deleted: bool


@dataclass(frozen=True, slots=True)
class StoreWrite:
    """A write that happens only if the key is as it was read.

    The value is in two parts, between which the store puts the revision that it assigns.
    """

    key: str
    head: bytes
    tail: bytes
    expected: int
    """The revision that must be there now; 0 means that nothing may be there."""
    delete: bool = False
    """Whether to take the key away; watchers get the value as the last state."""

    def made(self, current: StoreEntry | None, revision: int) -> StoreEvent:
        """What the change does to what is there now, if that is what it expects."""
        if (current.revision if current else 0) != self.expected:
            raise Conflict(self, current)
        value = b"%b%d%b" % (self.head, revision, self.tail)
        created = current.created if current else revision
        return StoreEvent(StoreEntry(self.key, value, revision, created), current, self.delete)


class Conflict(PolyverError):
    """The key is not as it was read."""

    def __init__(self, change: StoreWrite, current: StoreEntry | None) -> None:
        found = f"revision {current.revision}" if current else "nothing"
        wanted = f"revision {change.expected}" if change.expected else "nothing"
        super().__init__(f"{change.key} holds {found}, expected {wanted}")
        self.change = change
        self.current = current


class Compacted(PolyverError):
    """A revision that the log no longer reaches."""

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
    """Refuse a revision that is yet to come, or that the log no longer reaches."""
    if revision > newest:
        raise FutureRevision(revision, newest)
    if revision < compacted:
        raise Compacted(revision, compacted)


class Lagging(PolyverError):
    """A watcher that takes events more slowly than they come, and was let go."""


class StoreClosed(PolyverError):
    """The store was closed."""


class StoreFailed(PolyverError):
    """The disk refused; nothing of what was asked has happened."""


class StoreDamaged(StoreFailed):
    """A file that is no longer a whole store."""


class StoreMissing(StoreFailed):
    """A store that was expected to hold something, and is missing or empty."""


class StoreLocked(PolyverError):
    """Another process has the data open."""


class StoreWatch(Protocol):
    """Events under a prefix in the order of their revisions, each once, none left out."""

    def __aiter__(self) -> AsyncIterator[StoreEvent]: ...

    async def __anext__(self) -> StoreEvent: ...

    @property
    def revision(self) -> int:
        """Up to where everything was handed over, or waits to be."""

    @property
    def waiting(self) -> bool:
        """Whether there is something to hand over, if only that it has ended."""

    async def batch(self, patience: float) -> list[StoreEvent]:
        """All events that wait; none if none comes within so many seconds."""

    def close(self) -> None: ...


class Store(Protocol):
    """Memory and SQLite; the server alone opens one."""

    @property
    def problem(self) -> str:
        """Why the disk cannot be relied upon now; nothing if the last write went well."""

    @property
    def revision(self) -> int:
        """The newest revision."""

    @property
    def compacted(self) -> int:
        """The newest revision whose predecessors may be gone."""

    def get(self, key: str) -> StoreEntry | None:
        """What is under a key now."""

    def page(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> StorePage:
        """Entries under a prefix; behind a key; at most so many; now, or as of a revision."""

    async def write(self, change: StoreWrite) -> StoreEntry:
        """Make a change; when this returns it is durable. A deletion returns the last state."""

    def watch(self, prefix: str, revision: int) -> StoreWatch:
        """Every change under a prefix that comes after a revision."""

    async def compact(self, revision: int) -> None:
        """Forget what was replaced up to a revision."""

    async def close(self) -> None:
        """Finish what was asked, and let go of the data."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...
