"""Histograms of durations as Prometheus defines them, without the Prometheus library."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

__all__ = ["Times"]


class Times:
    """A histogram of durations in seconds.

    It has, for each bound, the number of durations up to this bound; and the sum of all durations.

    >>> times = Times((0.1, 1.0))
    >>> times.observe(0.5)
    >>> times.buckets()
    [('0.1', 0.0), ('1.0', 1.0), ('+Inf', 1.0)]
    """

    __slots__ = ("_bounds", "_counts", "seconds")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.seconds = 0.0

    def observe(self, seconds: float) -> None:
        self.seconds += seconds
        self._counts[bisect_left(self._bounds, seconds)] += 1

    def buckets(self) -> list[tuple[str, float]]:
        """List each bound, as a string, with the number of durations up to this bound."""
        bounds = [*map(str, self._bounds), "+Inf"]
        return list(zip(bounds, map(float, accumulate(self._counts)), strict=True))
