"""Time as a thing that is passed in, so that what waits can be tested without waiting."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

__all__ = ["Backoff", "Clock", "SystemClock", "Timer", "chance", "sleep", "timestamp"]

chance = random.SystemRandom().random
"""Between 0 and 1, only to come apart from others; not the one that a program may have seeded."""


class Timer(Protocol):
    """Something that will happen, unless it is cancelled."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """The time of day, a time that never goes back, and what is to happen later."""

    def now(self) -> datetime: ...

    def time(self) -> float: ...

    def call_later(self, seconds: float, act: Callable[[], None]) -> Timer: ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def time(self) -> float:
        return time.monotonic()

    def call_later(self, seconds: float, act: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, act)


async def sleep(clock: Clock, seconds: float) -> None:
    """Wait for some time of this clock."""
    over = asyncio.Event()
    timer = clock.call_later(seconds, over.set)
    try:
        await over.wait()
    finally:
        timer.cancel()


def timestamp(clock: Clock) -> str:
    """The time of day as objects write it."""
    return clock.now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait before trying again: longer each time, up to a limit, never in step.

    >>> [Backoff(first=1, most=5).delay(failures, spread=0) for failures in (1, 2, 3, 4)]
    [1.0, 2.0, 4.0, 5.0]
    """

    first: float = 0.01
    most: float = 30.0
    factor: float = 2.0
    jitter: float = 0.5
    """At most this part is taken away, so that those who failed together come back apart."""

    def delay(self, failures: int, *, spread: float) -> float:
        """After so many failures in a row; `spread` is chance, from 0 to 1."""
        # The exponent is limited because a float overflows long before a patient loop ends.
        longest = self.first * self.factor ** min(max(failures - 1, 0), 60)
        return float(min(longest, self.most) * (1 - self.jitter * spread))
