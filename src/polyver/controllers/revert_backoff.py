"""How often what others change is put back: at once, and then ever more slowly.

Somebody who changes it again and again, such as another controller, must not keep a loop busy.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from polyver.client import Backoff, Clock, chance

__all__ = ["RevertBackoff"]

K = TypeVar("K", bound=Hashable)
_FEW = 100


class RevertBackoff(Generic[K]):
    """For each key, when it may be put back again."""

    def __init__(self, clock: Clock, backoff: Backoff, *, quiet: float) -> None:
        """After `quiet` seconds in which nothing had to be put back, all is forgotten."""
        self._clock = clock
        self._backoff = backoff
        self._quiet = quiet
        self._known: dict[K, tuple[int, float]] = {}
        self._tidied = 0
        """How many were left when all that is over was forgotten last."""

    def left(self, key: K) -> float:
        """How many seconds to wait; 0 if it may be put back now."""
        _, due = self._known.get(key, (0, 0.0))
        return max(due - self._clock.time(), 0.0)

    def spend(self, key: K) -> None:
        """It is put back now."""
        now = self._clock.time()
        times, due = self._known.get(key, (0, 0.0))
        times = times + 1 if now < due + self._quiet else 1
        self._known[key] = times, now + self._backoff.delay(times, spread=chance())
        if len(self._known) > 2 * self._tidied + _FEW:
            self._known = {k: x for k, x in self._known.items() if now < x[1] + self._quiet}
            self._tidied = len(self._known)
