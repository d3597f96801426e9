"""Forgetting: what was replaced a while ago is no longer needed by anyone who still listens."""

from __future__ import annotations

import asyncio

from polyver.kube.store import Store, StoreClosed, StoreFailed

__all__ = ["keep_house"]

_EVERY = 300.0


async def keep_house(store: Store, *, every: float = _EVERY) -> None:
    """Compact up to where the store was the time before, again and again.

    A watch or a list in pages that was begun meanwhile goes on for at least that long.
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
            continue  # the disk refused; there will be another time
        before = now
