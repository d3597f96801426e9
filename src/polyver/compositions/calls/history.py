"""The calls of each function revision over time, for the checks of rollouts."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field

from polyver.client import Clock
from polyver.core.rollout_checks import ObservedCalls

__all__ = ["CallHistory"]

_BOUNDS = [0.001 * 1.1**number for number in range(120)]
"""Upper bounds of the buckets for durations, in seconds: from 1 ms to 85 s.

Each bound is 10 % higher than the one before.
"""
_SLOT = 5.0
"""Initial length, in seconds, of the time slots in which calls are counted. The length doubles when
slots are merged.
"""
_MOST_SLOTS = 256
_MOST_REVISIONS = 1000


@dataclass(slots=True)
class _Slot:
    """The calls of one function revision that ended within one period."""

    start: float
    errors: int = 0
    durations: dict[int, int] = field(default_factory=dict)
    """Number of calls in each bucket of durations, by the index of the bucket in `_BOUNDS`."""

    def count(self, bucket: int, number: int = 1) -> None:
        self.durations[bucket] = self.durations.get(bucket, 0) + number

    def add(self, other: _Slot) -> None:
        self.errors += other.errors
        for bucket, number in other.durations.items():
            self.count(bucket, number)


class CallHistory:
    """Counts the calls of function revisions in slots of time, with a limited number of slots.

    When one revision has too many slots, the slots of all revisions are merged in pairs: two
    neighbouring slots become one that covers twice the time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started_at = clock.now().timestamp() - clock.time()
        """The Unix time at which the monotonic clock was 0, computed when this process started."""
        self._slots: dict[str, list[_Slot]] = {}
        self._length = _SLOT

    def observe(self, revision: str, seconds: float, *, failed: bool) -> None:
        """Count a call that has ended after `seconds`."""
        now = self._started_at + self._clock.time()
        slots = self._slots.get(revision)
        if slots is None:
            if len(self._slots) >= _MOST_REVISIONS:
                return
            slots = self._slots[revision] = []
        if not slots or now - slots[-1].start >= self._length:
            slots.append(_Slot(now))
            if len(slots) > _MOST_SLOTS:
                self._merge()
        slots[-1].count(bisect_left(_BOUNDS, seconds))
        slots[-1].errors += failed

    def _merge(self) -> None:
        self._length *= 2
        for slots in self._slots.values():
            merged = slots[::2]
            for slot, following in zip(merged, slots[1::2], strict=False):
                slot.add(following)
            slots[:] = merged

    def forget(self, revision: str) -> None:
        """Remove the calls of a function revision that does not exist any more."""
        self._slots.pop(revision, None)

    def since(self, revisions: Iterable[str], time: float) -> ObservedCalls:
        """Return the calls of these revisions since a Unix time, together.

        A slot that began before this time is left out, so a few of the first calls may be missing.
        """
        found = _Slot(time)
        for revision in revisions:
            for slot in self._slots.get(revision, ()):
                if slot.start >= time:
                    found.add(slot)
        count = sum(found.durations.values())
        return ObservedCalls(count, found.errors, _percentile(found.durations, 0.99))


def _percentile(durations: dict[int, int], share: float) -> float:
    """Return the duration, in seconds, within which a share of the calls ended.

    `share` is this share of all calls, such as 0.99. The result is the upper bound of a bucket. It
    is 0 if there are no calls.
    """
    left = math.ceil(share * sum(durations.values()))
    for bucket in sorted(durations):
        left -= durations[bucket]
        if left <= 0:
            return _BOUNDS[min(bucket, len(_BOUNDS) - 1)]
    return 0.0
