"""A clock that stands still until it is moved."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

_QUIET = 10  # turns; what comes in from outside the loop is seen after one or two
_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


class _Timer:
    def __init__(self, act: Callable[[], None]) -> None:
        self.act = act

    def cancel(self) -> None:
        self.act = lambda: None


class VirtualClock:
    """Time passes when a test says so, and all that was to happen until then happens in order."""

    def __init__(self) -> None:
        self._time = 0.0
        self._timers: list[tuple[float, int, _Timer]] = []
        self._count = itertools.count()

    def now(self) -> datetime:
        return _BEGINNING + timedelta(seconds=self._time)

    def time(self) -> float:
        return self._time

    def call_later(self, seconds: float, act: Callable[[], None]) -> _Timer:
        timer = _Timer(act)
        heapq.heappush(self._timers, (self._time + seconds, next(self._count), timer))
        return timer

    async def advance(self, seconds: float) -> None:
        end = self._time + seconds
        await settle()
        while self._timers and self._timers[0][0] <= end:
            self._time, _, timer = heapq.heappop(self._timers)
            timer.act()
            await settle()
        self._time = end


async def settle(turns: int = 200) -> None:
    """Let everything run that can without time passing; it ends early when nothing more can."""
    # Where a loop does not show what is to run next, all turns are taken.
    waiting = getattr(asyncio.get_running_loop(), "_ready", (None,))
    quiet = 0
    while turns and quiet < _QUIET:
        await asyncio.sleep(0)
        turns -= 1
        quiet = 0 if waiting else quiet + 1


async def until(holds: Callable[[], bool], *, turns: int = 20_000) -> None:
    """Let everything run until something holds; a test that waits in vain fails."""
    for _ in range(turns):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came about")
