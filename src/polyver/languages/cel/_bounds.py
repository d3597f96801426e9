"""Lower and upper bounds of estimated costs and sizes.

No bound is higher than the largest unsigned 64-bit integer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

__all__ = ["ENDLESS", "NOTHING", "ONE", "UNKNOWN", "Bounds", "Called", "cut", "fixed"]

ENDLESS: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Bounds:
    """The minimum and maximum of a cost or of a size."""

    least: int
    most: int

    def plus(self, other: Bounds) -> Bounds:
        return Bounds(cut(self.least + other.least), cut(self.most + other.most))

    def times(self, other: Bounds) -> Bounds:
        return Bounds(cut(self.least * other.least), cut(self.most * other.most))

    def by(self, factor: float) -> Bounds:
        return Bounds(_scaled(self.least, factor), _scaled(self.most, factor))

    def union(self, other: Bounds) -> Bounds:
        return Bounds(min(self.least, other.least), max(self.most, other.most))


def cut(number: int) -> int:
    """Limit a number to the largest unsigned 64-bit integer."""
    return min(number, ENDLESS)


def _scaled(number: int, factor: float) -> int:
    return cut(math.ceil(float(number) * factor))


def fixed(number: int) -> Bounds:
    """Build bounds whose minimum and maximum are the same number."""
    return Bounds(number, number)


UNKNOWN: Final = Bounds(0, ENDLESS)
ONE: Final = Bounds(1, 1)
NOTHING: Final = Bounds(0, 0)


@dataclass(frozen=True, slots=True)
class Called:
    """The estimated cost of a call, and the size of its result (None if the size is unknown)."""

    cost: Bounds
    size: Bounds | None = None
