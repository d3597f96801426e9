"""Periodic compaction of old revisions in the store."""

from __future__ import annotations

import asyncio

from polyver.kube.store import Store, StoreClosed, StoreFailed

__all__ = ["keep_house"]

_EVERY = 300.0


async def keep_house(store: Store, *, every: float = _EVERY) -> None:
    """Compact at each interval up to the revision of the interval before.

    A watch or a paged list that starts between can therefore continue for at least one interval.
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
