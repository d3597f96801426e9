"""Back-off for reverting changes by other clients.

The first change is reverted immediately, each repeated change after a longer delay.

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
    """For each key (an object), the time at which changes of the object may be reverted again."""

    def __init__(self, clock: Clock, backoff: Backoff, *, quiet: float) -> None:
        """After `quiet` seconds without a revert, the back-off of a key begins again."""
        self._clock = clock
        self._backoff = backoff
        self._quiet = quiet
        self._known: dict[K, tuple[int, float]] = {}
        self._tidied = 0
        """The number of keys after the last clean-up."""

    def left(self, key: K) -> float:
        """Return the seconds until a key may be reverted; 0 if it may be reverted now."""
        _, due = self._known.get(key, (0, 0.0))
        return max(due - self._clock.time(), 0.0)

    def spend(self, key: K) -> None:
        """Record that a key is reverted now."""
        now = self._clock.time()
        times, due = self._known.get(key, (0, 0.0))
        times = times + 1 if now < due + self._quiet else 1
        self._known[key] = times, now + self._backoff.delay(times, spread=chance())
        if len(self._known) > 2 * self._tidied + _FEW:
            self._known = {k: x for k, x in self._known.items() if now < x[1] + self._quiet}
            self._tidied = len(self._known)
