"""Estimates with a least and a most, which end at the largest number of 64 bits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

__all__ = ["ENDLESS", "NOTHING", "ONE", "UNKNOWN", "Bounds", "Called", "cut", "fixed"]

ENDLESS: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the most that something costs, or that is in something."""

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
    """A number, or the largest that there is."""
    return min(number, ENDLESS)


def _scaled(number: int, factor: float) -> int:
    return cut(math.ceil(float(number) * factor))


def fixed(number: int) -> Bounds:
    """Bounds that meet."""
    return Bounds(number, number)


UNKNOWN: Final = Bounds(0, ENDLESS)
ONE: Final = Bounds(1, 1)
NOTHING: Final = Bounds(0, 0)


@dataclass(frozen=True, slots=True)
class Called:
    """What a call costs, and how large its result is, if that is known."""

    cost: Bounds
    size: Bounds | None = None
