"""Periodic compaction of old revisions in the store."""

from __future__ import annotations

import asyncio

from polyver.kube.store import Store, StoreClosed, StoreFailed

__all__ = ["compact_regularly"]

_EVERY = 300.0


async def compact_regularly(store: Store, *, every: float = _EVERY) -> None:
    """Compact the store at each interval, up to the revision at the previous interval.

    A watch or a paged list can therefore continue for at least one interval after its start.
    """
    before = store.revision
    while True:
        await asyncio.sleep(every)
        now = store.revision
        try:
            if before > store.compacted:
                await store.compact(before)
        except StoreClosed:
            return
        except StoreFailed:
            continue  # the disk failed; the next interval tries again
        before = now
