"""How many composite resources call a revision at a time, so that a slow one has few workers.

Each revision has a lane. Who finds it full waits for a moment if it gets on, and is sent away
otherwise, to be called back when there is room: no worker stands behind one that does not answer.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Container, Hashable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Generic, TypeVar

from polyver.client import Clock

__all__ = ["Lanes"]

K = TypeVar("K", bound=Hashable)
_MOMENT: Final = 0.25


@dataclass(slots=True)
class _Lane(Generic[K]):
    inside: dict[K, float] = field(default_factory=dict)
    """Since when each is in it."""
    parked: OrderedDict[K, None] = field(default_factory=OrderedDict)
    """Those that were sent away."""
    called: set[K] = field(default_factory=set)
    """Those that were called back, and are not here yet."""
    failing: bool = False
    """Whether the last one to leave had no answer: then one at a time is enough to find out."""
    left: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_needless(self) -> bool:
        return not (self.inside or self.parked or self.called or self.failing)


class Lanes(Generic[K]):
    """The lanes of all revisions."""

    def __init__(self, wake: Callable[[K], None], clock: Clock, *, width: int) -> None:
        self._wake = wake
        self._clock = clock
        self._width = width
        self._lanes: dict[str, _Lane[K]] = {}
        self._called: dict[K, set[str]] = {}

    async def enter(self, key: K, revisions: Iterable[str]) -> bool:
        """Whether there is room in all lanes, now or in a moment; else the key is woken later."""
        names = sorted(set(revisions))
        until = self._clock.time() + _MOMENT
        while full := next((name for name in names if not self._has_room(name)), ""):
            lane = self._lanes[full]
            left = until - self._clock.time()
            gets_on = left > 0 and not self._is_slow(lane) and await _left(lane, left)
            if not gets_on and not self._has_room(full):
                self._lanes[full].parked[key] = None
                return False
        for name in names:
            lane = self._lanes.setdefault(name, _Lane())
            lane.parked.pop(key, None)
            lane.called.discard(key)
            lane.inside[key] = self._clock.time()
        return True

    def leave(
        self, key: K, revisions: Iterable[str], *, answered: Container[str] = (), silent: str = ""
    ) -> None:
        """A key is done with its calls; which revisions answered, and which one did not."""
        for name in set(revisions):
            lane = self._lanes.get(name)
            if lane is None:
                continue
            lane.inside.pop(key, None)
            if name == silent or name in answered:
                lane.failing = name == silent
            lane.left.set()
            lane.left = asyncio.Event()
            self._call_back(name, lane)

    def settle(self, key: K) -> None:
        """Work on a key has ended; if it was called back and did not come, others may."""
        for name in self._called.pop(key, ()):
            lane = self._lanes.get(name)
            if lane is not None:
                lane.called.discard(key)
                self._call_back(name, lane)

    def open(self, revision: str) -> None:
        """There is reason to think that a revision answers now: all who were sent away may come."""
        lane = self._lanes.get(revision)
        if lane is not None:
            lane.failing = False
            self._call_back(revision, lane)

    def _has_room(self, name: str) -> bool:
        lane = self._lanes.get(name)
        return lane is None or len(lane.inside) < (1 if lane.failing else self._width)

    def _is_slow(self, lane: _Lane[K]) -> bool:
        oldest = min(lane.inside.values(), default=self._clock.time())
        return lane.failing or self._clock.time() - oldest > _MOMENT

    def _call_back(self, name: str, lane: _Lane[K]) -> None:
        room = (1 if lane.failing else self._width) - len(lane.inside) - len(lane.called)
        for key in [*islice(lane.parked, max(room, 0))]:
            del lane.parked[key]
            lane.called.add(key)
            self._called.setdefault(key, set()).add(name)
            self._wake(key)
        if lane.is_needless:
            del self._lanes[name]


async def _left(lane: _Lane[K], seconds: float) -> bool:
    """Whether somebody leaves before some time is over."""
    try:
        async with asyncio.timeout(seconds):
            return await lane.left.wait()
    except TimeoutError:
        return False
