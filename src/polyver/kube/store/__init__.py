"""Where the embedded server keeps its objects; nobody else opens it."""

from polyver.kube.store.interface import (
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
from polyver.kube.store.memory import MemoryStore
from polyver.kube.store.sqlite import SqliteStore

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
