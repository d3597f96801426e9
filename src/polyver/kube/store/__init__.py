"""Stores for the objects of the embedded API server; no other part of polyver opens a store."""

from polyver.kube.store.interface import (
    Compacted,
    Conflict,
    FutureRevision,
    Lagging,
    Store,
    StoreClosed,
    StoreDamaged,
    StoreEntry,
    StoreEvent,
    StoreFailed,
    StoreLocked,
    StoreMissing,
    StorePage,
    StoreWatch,
    StoreWrite,
)
from polyver.kube.store.memory import MemoryStore
from polyver.kube.store.sqlite import SqliteStore

__all__ = [
    "Compacted",
    "Conflict",
    "FutureRevision",
    "Lagging",
    "MemoryStore",
    "SqliteStore",
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
]
