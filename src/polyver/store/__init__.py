"""Where the embedded server keeps its objects; nobody else opens it."""

from polyver.store.memory import MemoryStore
from polyver.store.port import (
    Change,
    Compacted,
    Conflict,
    Entry,
    Event,
    FutureRevision,
    Lagging,
    Page,
    Store,
    StoreClosed,
    StoreDamaged,
    StoreFailed,
    StoreLocked,
    StoreMissing,
    Watch,
)
from polyver.store.sqlite import SqliteStore

__all__ = [
    "Change",
    "Compacted",
    "Conflict",
    "Entry",
    "Event",
    "FutureRevision",
    "Lagging",
    "MemoryStore",
    "Page",
    "SqliteStore",
    "Store",
    "StoreClosed",
    "StoreDamaged",
    "StoreFailed",
    "StoreLocked",
    "StoreMissing",
    "Watch",
]
