"""Back-off for reverting changes by other clients.

The first change of an object is reverted immediately, and each further change after a longer delay.
So another controller that repeats its change again and again does not keep this controller busy.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from polyver.client import Backoff, Clock, chance

__all__ = ["RevertBackoff"]

K = TypeVar("K", bound=Hashable)
_FEW = 100


class RevertBackoff(Generic[K]):
    """Computes, for each key (an object), when a change of the object may be reverted."""

    def __init__(self, clock: Clock, backoff: Backoff, *, quiet: float) -> None:
        """Create the back-off. After `quiet` seconds without a revert, delays are short again."""
        self._clock = clock
        self._backoff = backoff
        self._quiet = quiet
        self._known: dict[K, tuple[int, float]] = {}
        self._tidied = 0
        """The number of keys that were left after the last removal of old keys."""

    def left(self, key: K) -> float:
        """Return the seconds until the object may be reverted; 0 if it may be reverted now."""
        _, due = self._known.get(key, (0, 0.0))
        return max(due - self._clock.time(), 0.0)

    def spend(self, key: K) -> None:
        """Record that the object is reverted now, which makes the next delay longer."""
        now = self._clock.time()
        times, due = self._known.get(key, (0, 0.0))
        times = times + 1 if now < due + self._quiet else 1
        self._known[key] = times, now + self._backoff.delay(times, spread=chance())
        if len(self._known) > 2 * self._tidied + _FEW:
            self._known = {k: x for k, x in self._known.items() if now < x[1] + self._quiet}
            self._tidied = len(self._known)
