"""Clocks. Code that waits gets its clock as an argument, so that tests need not wait."""

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
"""Returns a random number between 0 and 1, for jitter.

It does not depend on the seed of Python's module `random`.
"""


class Timer(Protocol):
    """A scheduled call that can be cancelled."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """The time of day, a monotonic time, and scheduled calls."""

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
    """Wait until a number of seconds has passed on this clock."""
    over = asyncio.Event()
    timer = clock.call_later(seconds, over.set)
    try:
        await over.wait()
    finally:
        timer.cancel()


def timestamp(clock: Clock) -> str:
    """Return the time of day in the format of Kubernetes objects: 2026-01-31T12:00:00Z."""
    return clock.now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential back-off with an upper limit and jitter.

    >>> [Backoff(first=1, most=5).delay(failures, spread=0) for failures in (1, 2, 3, 4)]
    [1.0, 2.0, 4.0, 5.0]
    """

    first: float = 0.01
    most: float = 30.0
    factor: float = 2.0
    jitter: float = 0.5
    """The maximum share of a delay that is randomly subtracted: 0.5 for up to half of the delay.

    So clients do not all retry at the same time.
    """

    def delay(self, failures: int, *, spread: float) -> float:
        """Return the delay in seconds after a number of failures in a row.

        `spread` is a random number in [0, 1], which selects the jitter.
        """
        # The exponent is limited because a float would overflow in a loop that retries for long.
        longest = self.first * self.factor ** min(max(failures - 1, 0), 60)
        return float(min(longest, self.most) * (1 - self.jitter * spread))
